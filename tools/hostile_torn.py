"""Damaged files that would take repair for ever, if it looked at anything more than once."""

from __future__ import annotations

from tools.hostile_bomb import write_plain
from tools.hostile_parts import HEAD, KERNEL, MB, TAIL, hostile, repeated

__all__: list[str] = []

_SEVERAL = "several ranks wrote this file"
_ONE_LINE = HEAD.replace(b"\n", b"")
_LAYOUTS = (("a line each", HEAD, b",\n"), ("one line", _ONE_LINE, b", "))

# -- many events, each with damage of the same kind

_TORN_EVENTS = {
    "a stray quote": KERNEL.replace(b"gemm", b'a "b" c'),
    "a bare word": KERNEL.replace(b'"tid": 7', b'"tid": N/A'),
    "a stray backslash": KERNEL.replace(b"gemm", b"C:\\windows"),
    "a bracket too many": KERNEL.replace(b'"ts": ', b'"ts": ['),
}
for _what, _event in _TORN_EVENTS.items():
    for _layout, _head, _gap in _LAYOUTS:
        hostile(f"60 MB of kernels with {_what}, {_layout}")(
            repeated(write_plain, _head + KERNEL + _gap, _event + _gap, KERNEL + TAIL, 60 * MB)
        )

# -- one event, header or trailer full of what repair looks for

_EVENT_START = b'{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "args": {"a": "'
_FILL = {
    "names": b'"name": "x" y ',
    "keys": b'"k": "x" y ',
    "keys and colons": b'"k": "',
    "quotes": b'"',
    "backslashes": b"\\",
    "escapes": b"\\q ",
    "blanks": b" ",
    "colons": b": ",
    "commas": b", ",
    "braces and commas": b"}, ",
    "closing brackets": b"}]",
    "closing brackets and blanks": b"}   ]   ",
    "closings": b"}], ",
    "closings far apart": b"}], " + b'"k": nan, ' * 97,
    "opening brackets": b"[",
    "words": b": nan,",
    "tids": b'"tid": x" ',
    "tids without end": b'"tid": x ',
    "keys of events": b'"traceEvents": [',
    "headers": b'"schemaVersion": 1 "',
    "line breaks": b"\n",
    "broken bytes": b"\xff",
    "digits": b"1",
}
for _what, _unit in _FILL.items():
    for _layout, _head, _gap in _LAYOUTS:
        _status = int(_what == "headers")
        hostile(
            f"one torn event of 15 MB: {_what}, {_layout}",
            status=_status,
            words=_SEVERAL if _status else "",
        )(
            repeated(
                write_plain,
                _head + KERNEL + _gap + _EVENT_START,
                _unit,
                b'" "}}' + _gap + KERNEL + TAIL,
                15 * MB,
            )
        )
    _status = int(_what == "keys of events")
    hostile(
        f"one torn header of 15 MB: {_what}",
        status=_status,
        words=_SEVERAL if _status else "",
    )(repeated(write_plain, b'{"a": "', _unit, b'" ", ' + HEAD[1:] + KERNEL + TAIL, 15 * MB))
    hostile(f"one torn trailer of 15 MB: {_what}")(
        repeated(write_plain, HEAD + KERNEL + b'], "a": "', _unit, b'" "}', 15 * MB)
    )
    for _layout, _head, _gap in _LAYOUTS:
        _status = int((_what, _layout) == ("headers", "a line each"))
        hostile(f"a torn last event of 250 kB: {_what}, {_layout}", status=_status)(
            repeated(
                write_plain,
                _head + KERNEL + _gap + _EVENT_START,
                _unit,
                b'" "}}' + TAIL,
                250_000,
            )
        )
