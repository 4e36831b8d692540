"""Damage around the events: the header is never worth losing them (rows 9, 12, 14, 46)."""

from __future__ import annotations

from tools.damage_base import (
    BASE_NS,
    EVENTS,
    KINETO,
    OBJECTS,
    TEXTUAL,
    Damaged,
    Trace,
    damaged,
    end_of,
    kind,
    last_end,
    raw,
    write,
)
from tools.damage_clean import clean

__all__: list[str] = []

GROUPS = [{"pg_name": "0", "pg_desc": raw('"mesh "tp""'), "pg_size": 1, "ranks": [0]}]


def _above(trace: Trace, **header: object) -> Trace:
    """Put header keys before all others, so that damage in them comes first."""
    return Trace(trace.events, {**header, **trace.header}, trace.after)


@kind(9, "unescaped quotes in user metadata", TEXTUAL)
def quote_in_metadata(layout: str) -> Damaged:
    """Write what ``add_metadata(k, 'va"l')`` gives: rank and clock are behind it."""
    bad = _above(clean(layout), note=raw('"va"l"'))
    return damaged(write(bad, layout), clean(layout), notes=["header_damaged"])


@kind(9, "backslashes in user metadata", TEXTUAL)
def backslash_in_metadata(layout: str) -> Damaged:
    r"""Name a Windows path, with a ``\u`` that is no escape."""
    bad = _above(clean(layout), note=raw(r'"C:\users\me\"'))
    return damaged(write(bad, layout), clean(layout), notes=["header_damaged"])


@kind(9, "user metadata that looks like the events", TEXTUAL)
def metadata_like_events(layout: str) -> Damaged:
    """Put the key of the events into a text before them."""
    bad = _above(clean(layout), note=raw('"see "traceEvents": [ below"'))
    return damaged(write(bad, layout), clean(layout), notes=["header_damaged"])


@kind(9, "unescaped quotes behind the events", TEXTUAL)
def quote_in_trailer(layout: str) -> Damaged:
    """Let rank and clock follow the broken key, as torch 2.4 to 2.6 write them."""
    trace = clean(layout).behind("note", "distributedInfo", "baseTimeNanoseconds")
    bad = _above(trace, note=raw('"va"l"'))
    return damaged(write(bad, layout), clean(layout), notes=["header_damaged"])


@kind(9, "a quote in the description of a process group", TEXTUAL)
def quote_in_group(layout: str) -> Damaged:
    """Break ``distributedInfo`` itself; rank and world size stand before it."""
    trace = clean(layout)
    bad = trace.head(distributedInfo=trace.header["distributedInfo"] | {"pg_config": GROUPS})
    return damaged(write(bad, layout), trace, notes=["header_damaged"])


@kind(9, "a line break and control characters in user metadata", TEXTUAL)
def control_character_in_metadata(layout: str) -> Damaged:
    """Use what JSON forbids, though nothing is ambiguous."""
    bad = _above(clean(layout), note=raw('"one\ntwo\x01"'))
    return damaged(write(bad, layout), clean(layout), repaired={"control_character": 1})


@kind(12, "log lines with raw quotes behind the events", KINETO)
def logs_with_quotes(layout: str) -> Damaged:
    """Put libkineto's own warnings there, unescaped, as older releases do."""
    lines = [raw('"Failed to parse "config" [x]"'), raw('"see "C:\\log""')]
    trace = clean(layout).behind("WARNING", "distributedInfo")
    bad = _above(trace, WARNING=lines)
    return damaged(write(bad, layout), clean(layout), notes=["header_damaged"])


@kind(12, "log lines before the trace's name, in order", OBJECTS)
def logs(layout: str) -> Damaged:
    """Write whole JSON: nothing to repair."""
    bad = clean(layout).head(INFO=["ok", "200 events"], ERROR=[]).behind("INFO", "ERROR")
    return damaged(write(bad, layout), clean(layout))


@kind(14, "no closing brackets", EVENTS)
def brackets_missing(layout: str) -> Damaged:
    """Keep the last event of a whole recording, so that only the trailer is missing."""
    trace = clean(layout)
    data = write(trace, layout)
    end = last_end(data)
    return damaged(data[:end], trace, repaired={"missing_bracket": 1})


@kind(14, "no closing brackets, and no end of the recording", EVENTS)
def recording_open(layout: str) -> Damaged:
    """Leave out the mark that ends a recording too: something was lost with it."""
    trace = clean(layout)
    data = write(trace, layout)
    end = end_of(trace, layout, len(trace.events) - 1)
    return damaged(
        data[:end], trace.without("end"), truncated=True, says=["breaks off", str(end)]
    )


@kind(14, "only the last bracket of the file is missing", OBJECTS)
def last_bracket_missing(layout: str) -> Damaged:
    """Leave all keys there."""
    data = write(clean(layout), layout).rstrip()
    return damaged(data[:-1], clean(layout), truncated=True, says=["breaks off"])


@kind(46, "keys twice in an event and in the header", EVENTS)
def keys_twice(layout: str) -> Damaged:
    """Let the last one count, as in every JSON library."""
    trace = clean(layout)
    bad = trace.edit("gemm2", dur=raw('1.000, "dur": ' + trace.events["gemm2"]["dur"]))
    if layout != "list":
        bad = bad.head(baseTimeNanoseconds=raw(f'5, "baseTimeNanoseconds": {BASE_NS}'))
    repaired = {} if layout == "list" else {"duplicate_key": 1}
    return damaged(write(bad, layout), trace, repaired=repaired)


@kind(46, "keys twice in an event that has to be repaired", EVENTS)
def keys_twice_and_quotes(layout: str) -> Damaged:
    """Count the event under both reasons."""
    trace = clean(layout).edit("gemm2", name='a "b"')
    twice = raw('1.000, "dur": ' + trace.events["gemm2"]["dur"])
    bad = trace.edit("gemm2", name=raw('"a "b""'), dur=twice)
    return damaged(
        write(bad, layout), trace, repaired={"duplicate_key": 1, "quote_in_string": 1}
    )
