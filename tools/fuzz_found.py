"""Inputs that once did what nothing may do, kept as ``fixtures/fuzz/NAME.bin``.

Each is as small as it can be and says what came out of it then. ``tests/contract/test_fuzz.py``
runs all of them.
"""

from __future__ import annotations

__all__ = ["FOUND"]

_OP = b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 2}'


def _trace(event: bytes, header: bytes = b"") -> bytes:
    return b"{" + header + b'"traceEvents": [' + event + b", " + _OP + b"]}"


FOUND = {
    # UnicodeEncodeError, when the tables were made: the backend had no UTF-8
    "surrogate-in-the-backend": _trace(_OP, b'"distributedInfo": {"backend": "x\\ud800"}, '),
    # ValueError: Python reads no whole number of more than 4,300 digits
    "argument-of-5000-digits": _trace(
        _OP[:-1] + b', "args": {"External id": [' + b"9" * 5000 + b"]}}"
    ),
    # 20 seconds and more: the search for a name's end began anew at each of them
    "torn-event-full-of-names": _trace(b'{"ph": "X", "name" ~ ' + b'"name": "' * 20_000),
    # the events behind it vanished uncounted: the name seemed to close the list
    "name-that-closes-the-list": _trace(_OP.replace(b"aten::mm", b'f("}], {")')),
    # a note of 27,000 characters: it quoted the step's whole name
    "step-with-an-endless-name": _trace(
        _OP.replace(b"cpu_op", b"user_annotation").replace(
            b"aten::mm", b"ProfilerStep" + b"[" * 27_000
        )
    ),
    # the whole event before it was lost with it, and the two were counted as one
    "torn-first-key": _trace(_OP + b', {"ph"~"X", "ts": 1}, ' + _OP),
    # the events behind it were lost uncounted: what was left of it looked like a trailer
    "bracket-in-the-place-of-a-brace": _trace(_OP + b", ]" + _OP[1:]),
    # the words of the refusal depended on the size of the blocks
    "blanks-before-no-json": b" \n" * 50 + b"no JSON at all",
    # ValidationError: the native engine took a number that is past a double
    "process-beyond-a-double": _trace(_OP.replace(b'"pid": 1', b'"pid": 1e400')),
    # the native engine took a negative zero for no stream
    "stream-minus-zero": _trace(
        _OP.replace(b"cpu_op", b"kernel")[:-1] + b', "args": {"device": 0, "stream": -0}}'
    ),
    # twice their size was held: a window of nothing but blanks grew with them
    "blanks-before-a-cut-gzip": b" " * 100_000 + b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
}
