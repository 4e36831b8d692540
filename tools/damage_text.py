"""Damage inside an event: text that is no JSON, or not what was meant (rows 3 to 14)."""

from __future__ import annotations

from tools.damage_base import (
    EVENTS,
    LINED,
    TEXTUAL,
    Damaged,
    Trace,
    damaged,
    kind,
    last_end,
    raw,
    write,
)
from tools.damage_clean import ALL_REDUCE, GEMM, LEGACY, clean

__all__: list[str] = []

WRITERS = (*EVENTS, "leg")  # anything may hold such a name, the oldest writer too
WORDS = ("inf", "-inf", "nan", "NaN", "Infinity", "-Infinity", "-nan")


def _byte(value: int) -> str:
    """Return the character that :func:`write` turns into this byte."""
    return chr(0xE000 + value)


def _named(trace: Trace, **names: str) -> Trace:
    """Give events names, by handle."""
    for handle, name in names.items():
        trace = trace.edit(handle, name=name)
    return trace


def _misspelled(trace: Trace, **names: str) -> Trace:
    """Give events names as they stand in the file, between quotes."""
    return _named(trace, **{handle: raw(f'"{name}"') for handle, name in names.items()})


def _first(layout: str) -> tuple[str, str]:
    """Return the handles of an operator and of a kernel that a layout has."""
    return ("op2", "kernel2") if layout == "leg" else ("op2", "gemm2")


# -- 3: a quote that the oldest writer forgot ------------------------------------------------


def _without_quote(*handles: str) -> bytes:
    """Write the legacy list with the quote before ``tid`` missing in some events."""
    marked = LEGACY
    for handle in handles:
        marked = marked.edit(handle, tid=f"-{handle}-")
    data = write(marked, "leg")
    for handle in handles:
        tid = str(LEGACY.events[handle]["tid"]).encode()
        data = data.replace(f'"tid": "-{handle}-"'.encode(), b'tid": ' + tid)
    return data


@kind(3, "no quote before tid, in the flow events of pytorch#33961", ("leg",))
def quote_before_tid(_layout: str) -> Damaged:
    """Every flow event to the GPU lacks the quote; such events are not kept anyway."""
    handles = [f"to{number}" for number in range(1, 5)]
    return damaged(_without_quote(*handles), LEGACY, repaired={"missing_quote": 4})


@kind(3, "no quote before tid, in events with a duration", ("leg",))
def quote_before_tid_of_spans(_layout: str) -> Damaged:
    """Leave it out of an operator and a kernel."""
    return damaged(_without_quote("op2", "kernel3"), LEGACY, repaired={"missing_quote": 2})


# -- 4: bytes that are no UTF-8 ---------------------------------------------------------------


@kind(4, "names with bytes that are no UTF-8", WRITERS)
def not_utf8(layout: str) -> Damaged:
    """Use Latin-1, a character that breaks off before the closing quote, a stray byte."""
    trace, (op, kernel) = clean(layout), _first(layout)
    bad = {op: f"gr{_byte(0xF6)}{_byte(0xDF)}e", kernel: f"gemm {_byte(0xE4)}{_byte(0xB8)}"}
    good = {op: "gr\ufffd\ufffde", kernel: "gemm \ufffd"}
    if layout != "leg":
        bad["reduce2"] = f"{ALL_REDUCE}{_byte(0xFF)}"
        good["reduce2"] = f"{ALL_REDUCE}\ufffd"
    data = write(_misspelled(trace, **bad), layout)
    return damaged(data, _named(trace, **good), repaired={"not_utf8": len(bad)})


@kind(4, "a collective's name with bytes that are no UTF-8")
def not_utf8_in_arguments(layout: str) -> Damaged:
    """Break what decides that the kernel is a collective: its name alone would not."""
    trace = clean(layout).edit("reduce2", name="Generic_4")
    bad = trace.args("reduce2", Collective_name=raw(f'"all{_byte(0xFF)}reduce"'))
    return damaged(write(bad, layout), trace, repaired={"not_utf8": 1})


@kind(4, "a header value with bytes that are no UTF-8", TEXTUAL)
def not_utf8_in_header(layout: str) -> Damaged:
    """User metadata before everything else that the header has."""
    trace = clean(layout)
    bad = Trace(trace.events, {"who": raw(f'"caf{_byte(0xE9)}"'), **trace.header}, trace.after)
    return damaged(write(bad, layout), trace, repaired={"not_utf8": 1})


# -- 5, 6, 13: words where numbers belong, and nothing at all ---------------------------------


def _without_times(layout: str, *, duration: str, time: str) -> Damaged:
    """Put words for the duration of one kernel and the time of another."""
    bad = clean(layout).edit("gemm2", dur=raw(duration)).edit("relu3", ts=raw(time))
    return damaged(
        write(bad, layout),
        clean(layout).without("gemm2", "relu3"),
        repaired={"bare_word": 2},
        lost={"duration_missing": 1, "time_missing": 1},
        notes=["launches_without_device_event"],
    )


@kind(5, "bare N/A among the arguments")
def not_available(layout: str) -> Damaged:
    """Occupancy of a kernel, the stream of another."""
    trace = clean(layout)
    bad = trace.args("gemm1", warps_per_SM=raw("N/A")).args("relu2", stream=raw("N/A"))
    return damaged(write(bad, layout), trace, repaired={"bare_word": 2})


@kind(5, "bare N/A as a duration and as a time")
def not_available_time(layout: str) -> Damaged:
    """Repaired, the events still have no time: they are lost, and counted."""
    return _without_times(layout, duration="N/A", time="N/A")


@kind(5, "bare N/A in the header", TEXTUAL)
def not_available_in_header(layout: str) -> Damaged:
    """Break a device property; rank and clock stand behind it."""
    bad = clean(layout).head(deviceProperties=[{"id": 0, "name": raw("N/A")}])
    return damaged(write(bad, layout), clean(layout), notes=["header_damaged"])


@kind(6, "bare inf, nan, Infinity and their kin among the arguments")
def infinite(layout: str) -> Damaged:
    """Each word in an event of its own, some within a list."""
    bad = clean(layout)
    handles = ("gemm1", "reduce1", "relu1", "gemm2", "op2", "call2", "copy3")
    for handle, word in zip(handles, WORDS, strict=True):
        bad = bad.args(handle, blocks_per_SM=raw(word), est=[1, raw(word)])
    return damaged(write(bad, layout), clean(layout), repaired={"bare_word": len(WORDS)})


@kind(6, "bare inf and nan as times")
def infinite_time(layout: str) -> Damaged:
    """No such time can be used."""
    return _without_times(layout, duration="inf", time="nan")


@kind(13, "nothing after a key")
def blank_value(layout: str) -> Damaged:
    """Leave blanks in the middle, at the beginning and at the end of the arguments."""
    bad = clean(layout)
    bad = bad.args("reduce1", Process_Group_Description=raw(""))
    bad = bad.args("record2", last=raw("")).args("gemm3", first=raw(""), kind="x")
    return damaged(write(bad, layout), clean(layout), repaired={"blank_value": 3})


@kind(13, "memory that was never set as a Process Group Description")
def garbage_value(layout: str) -> Damaged:
    """Bytes below the blank, and bytes that are no UTF-8: an event counts under each."""
    garbage = f'"{_byte(0x01)}{_byte(0x8F)}{_byte(0xFE)}{_byte(0x7F)}{_byte(0x10)}"'
    bad = clean(layout).args("reduce1", Process_Group_Description=raw(garbage))
    return damaged(
        write(bad, layout), clean(layout), repaired={"control_character": 1, "not_utf8": 1}
    )


# -- 7, 10: characters that a JSON string may not have ----------------------------------------


@kind(7, "backslashes of Windows paths in names", WRITERS)
def backslash(layout: str) -> Damaged:
    r"""No escape begins with ``\U``, ``\x`` or ``\m``; a ``\u`` without digits is none."""
    trace, (op, kernel) = clean(layout), _first(layout)
    bad = {op: r"C:\Users\x\model.py(12): go", kernel: r"D:\unit\gemm"}
    data = write(_misspelled(trace, **bad), layout)
    good = {name: text.replace("\\", "/") for name, text in bad.items()}
    return damaged(data, _named(trace, **good), repaired={"backslash": 2})


@kind(7, "a backslash before the closing quote")
def backslash_at_end(layout: str) -> Damaged:
    """Take the quote with it: the string runs on into the next key."""
    trace = clean(layout)
    data = write(_misspelled(trace, op2="C:\\dir\\"), layout)
    return damaged(data, _named(trace, op2="C:/dir/"), repaired={"backslash": 1})


@kind(7, "backslashes among the arguments")
def backslash_in_arguments(layout: str) -> Damaged:
    """Name the file of a Triton kernel, and a frame of Python on Windows."""
    trace = clean(layout)
    bad = trace.args("op2", kernel_file=raw(r'"C:\tmp\Xk\_k.py"'))
    bad = _misspelled(bad, python1=r"torch\cuda\__init__.py(219): _lazy_init")
    return damaged(write(bad, layout), trace, repaired={"backslash": 2})


@kind(7, "backslashes that are escapes by accident")
def escape_by_accident(layout: str) -> Damaged:
    r"""``C:\new\table`` is valid JSON; nobody can know that no line break was meant."""
    trace = clean(layout)
    data = write(_misspelled(trace, op2=r"C:\new\table"), layout)
    return damaged(data, _named(trace, op2="C:\new\table"))


@kind(10, "control characters and line breaks in names", WRITERS)
def control_character(layout: str) -> Damaged:
    """As they are in the file, they stay in the name."""
    trace, (op, kernel) = clean(layout), _first(layout)
    names = {op: "first\nsecond\tthird", kernel: "gemm\x01\x1b[31m\x00"}
    data = write(_misspelled(trace, **names), layout)
    return damaged(data, _named(trace, **names), repaired={"control_character": 2})


@kind(10, "line breaks among the arguments")
def control_character_in_arguments(layout: str) -> Damaged:
    """Write a call stack as text of several lines."""
    bad = clean(layout).args("op2", Call_stack=raw('"a.py(1)\nb.py(2)\n"'))
    return damaged(write(bad, layout), clean(layout), repaired={"control_character": 1})


# -- 8: quotes ---------------------------------------------------------------------------------


@kind(8, "unescaped quotes in names", WRITERS)
def quotes(layout: str) -> Damaged:
    """Name what ``record_function('a "q" b')`` gives, and code of generated files."""
    trace, (op, kernel) = clean(layout), _first(layout)
    names = {op: 'a "q" b', kernel: f'{GEMM} "tuned"'}
    if layout != "leg":
        names |= {"reduce2": f'{ALL_REDUCE} "x"', "forward3": '{"device": "cpu"}'}
    data = write(_misspelled(trace, **names), layout)
    return damaged(data, _named(trace, **names), repaired={"quote_in_string": len(names)})


@kind(8, "unescaped quotes where they mislead most")
def misleading_quotes(layout: str) -> Damaged:
    """At the ends of a name, alone, before commas, with brackets that close nothing."""
    trace = clean(layout)
    names = {"op1": '"all"', "op2": '"', "op3": 'a", "b', "gemm1": 'gemm "}'}
    names |= {"forward2": '["x": {', "reduce1": f'{ALL_REDUCE}": "b', "relu1": '"}'}
    data = write(_misspelled(trace, **names), layout)
    repaired = {"quote_in_string": len(names)}
    # the products have other names now
    return damaged(data, _named(trace, **names), repaired=repaired, gone=["work_unknown"])


@kind(8, "a name that seems to close the list of events")
def closing_name(layout: str) -> Damaged:
    """Taken at its word, it would make all events behind it vanish without a trace."""
    name = 'f("}], {")'
    data = write(_misspelled(clean(layout), forward1=name), layout)
    return damaged(data, _named(clean(layout), forward1=name), repaired={"quote_in_string": 1})


@kind(8, "a name that seems to begin another event", LINED)
def opening_name(layout: str) -> Damaged:
    """Only line breaks tell that it does not; on one line nobody can."""
    name = 'x}, {"ph": "y'
    data = write(_misspelled(clean(layout), forward3=name), layout)
    return damaged(data, _named(clean(layout), forward3=name), repaired={"quote_in_string": 1})


@kind(8, "unescaped quotes among the arguments")
def quotes_in_arguments(layout: str) -> Damaged:
    """Describe process groups with quotes, in the middle and at the end."""
    trace = clean(layout)
    bad = trace.args("record1", Process_Group_Description=raw('"mesh "tp" of 8"'))
    bad = bad.args("reduce2", Process_Group_Description=raw('"a "b""'))
    return damaged(write(bad, layout), trace, repaired={"quote_in_string": 2})


@kind(8, "quotes, a backslash, a control character and bad bytes in one name")
def everything_in_a_name(layout: str) -> Damaged:
    """Count an event with four troubles under each."""
    trace = clean(layout)
    name = f'C:\\Qt "x"\x02{_byte(0xFF)}'
    data = write(_misspelled(trace, gemm2=name), layout)
    reasons = ("backslash", "control_character", "not_utf8", "quote_in_string")
    return damaged(
        data, _named(trace, gemm2='C:/Qt "x"\x02\ufffd'), repaired=dict.fromkeys(reasons, 1)
    )


# -- 14: commas -------------------------------------------------------------------------------


@kind(14, "a comma after the last argument", WRITERS)
def comma_after_arguments(layout: str) -> Damaged:
    """Of an object, and of a list within it."""
    trace, (op, kernel) = clean(layout), _first(layout)
    bad = trace.args(op, last=raw("1,")).args(kernel, last=raw("[64, 1, 1,]"))
    return damaged(write(bad, layout), trace, repaired={"trailing_comma": 2})


@kind(14, "a comma after the last event", WRITERS)
def comma_after_events(layout: str) -> Damaged:
    """As a writer leaves it that ends every event with one."""
    trace = clean(layout)
    data = write(trace, layout)
    end = last_end(data)
    return damaged(data[:end] + b"," + data[end:], trace, repaired={"trailing_comma": 1})


@kind(14, "a brace too many in an event")
def brace_too_many(layout: str) -> Damaged:
    """Close an object twice: it must not close the list, and end the trace."""
    return _closed_too_often(layout, "1}")


def _closed_too_often(layout: str, text: str) -> Damaged:
    trace = clean(layout)
    return damaged(
        write(trace.args("gemm2", last=raw(text)), layout),
        trace.args("gemm2", last=1),
        repaired={"stray_bracket": 1},
    )


@kind(14, "a brace too few in an event")
def brace_too_few(layout: str) -> Damaged:
    """Leave an object open: it must not take the events behind it."""
    trace = clean(layout)
    return damaged(
        write(trace.args("gemm2", last=raw('{"x": 1')), layout),
        trace.without("gemm2"),
        lost={"undecodable": 1},
        notes=["launches_without_device_event"],
    )


@kind(14, "brackets in an event that close the list of events")
def brackets_too_many(layout: str) -> Damaged:
    """Close everything: what follows shows that the list goes on."""
    return _closed_too_often(layout, "1}}]")
