from __future__ import annotations

import pytest

from traceparse.ingest.decode import (
    decode_args,
    decode_block,
    decode_event,
    event_from,
    is_json,
)


def test_a_block_decodes_to_the_fields_that_tables_keep():
    events = decode_block(
        b'{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": "stream 7", "new": [1],'
        b' "ts": 1712195495519689.047, "dur": 5, "args": {"correlation": 18446744073709551615}}'
    )
    assert events is not None
    (event,) = events
    assert (event.ph, event.cat, event.name, event.pid, event.tid) == (
        "X",
        "kernel",
        "k",
        0,
        "stream 7",
    )
    assert bytes(event.ts) == b"1712195495519689.047"
    assert decode_args([event])[0][0].correlation == 2**64 - 1


@pytest.mark.parametrize(
    "text",
    [b'{"name": 5}', b'{"name": "a" "b"}', b'{"name": "\xff"}', b'{"ts": NaN}', b"[" * 9999],
)
def test_an_odd_block_is_said(text):
    assert decode_block(text) is None


def test_an_odd_event_is_said():
    assert decode_event(b'{"name": 5}') is None
    assert decode_event(b'{"name": "x"}') is not None


def test_an_object_of_any_types_becomes_an_event():
    event = event_from(
        {
            "ph": "X",
            "name": 5,
            "cat": None,
            "pid": "1.5",
            "tid": [3],
            "ts": "1.25",
            "dur": None,
            "args": {"device": "0", "Collective name": 7, "stream": "1e2"},
        }
    )
    assert (event.name, event.cat, event.pid, event.tid) == ("5", None, "1.5", None)
    assert (bytes(event.ts), bytes(event.dur)) == (b"1.25", b"")
    (args,), repaired = decode_args([event])
    assert (args.device, args.collective, args.stream) == ("0", "7", "1e2")
    assert repaired == {"odd_type": 1}


def test_lone_surrogates_are_replaced():
    event = event_from({"name": "a\ud800", "pid": "b\ud800", "ts": "\ud800"})
    assert (event.name, event.pid, bytes(event.ts)) == ("a?", "b?", b"?")


def test_events_without_arguments_get_empty_ones():
    events = decode_block(b'{"ph": "X"}, {"args": null}, {"args": {"stream": 3}}')
    assert events is not None
    args, repaired = decode_args(events)
    assert ([a.stream for a in args], repaired) == ([None, None, 3], {})


def test_arguments_of_an_odd_type_do_not_spoil_their_neighbors():
    events = decode_block(
        b'{"args": [1]}, {"args": {"stream": [2], "device": 4}}, {"args": {"stream": 3}}, {}'
    )
    assert events is not None
    args, repaired = decode_args(events)
    assert [(a.stream, a.device) for a in args] == [
        *((None, None), (None, 4)),
        *((3, None), (None, None)),
    ]
    assert repaired == {"odd_type": 2}


def test_arguments_deeper_than_python_reads_are_left_out():
    deep = b'{"args": {"x": ' + b"[" * 900 + b"]" * 900 + b'}}, {"args": {"stream": [7]}}'
    events = decode_block(deep)
    if events is not None:  # how deep the block's decoder goes depends on its version
        assert [a.stream for a in decode_args(events)[0]] == [None, None]


@pytest.mark.parametrize(
    ("text", "expected"), [(b"7", True), (b'{"a": [1]}', True), (b"{", False), (b"", False)]
)
def test_json_or_not(text, expected):
    assert is_json(text) is expected


def test_bytes_that_are_no_utf8_in_arguments():
    events = decode_block(b'{"args": {"Collective name": "all\xff", "device": 3}}')
    assert events is not None
    (args,), repaired = decode_args(events)
    assert (args.collective, args.device, repaired) == ("all\ufffd", 3, {"not_utf8": 1})
