from __future__ import annotations

import pytest

from traceparse.ingest.decode import decode_args, decode_block, decode_piece


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
    assert decode_args([event])[0].correlation == 2**64 - 1


@pytest.mark.parametrize(
    "text",
    [b'{"name": 5}', b'{"name": "a" "b"}', b'{"name": "\xff"}', b'{"ts": NaN}', b"[" * 9999],
)
def test_an_odd_block_is_said(text):
    assert decode_block(text) is None


def test_an_odd_event_is_read_leniently():
    event = decode_piece(
        b'{"ph": "X", "name": 5, "cat": null, "pid": 1.5, "tid": [3], "ts": NaN, "dur": null,'
        b' "args": {"device": "0", "correlation": {}, "Collective name": 7, "stream": 1e2}}'
    )
    assert event is not None
    assert (event.name, event.cat, event.pid, event.tid) == ("5", None, "1.5", None)
    assert (bytes(event.ts), bytes(event.dur)) == (b"nan", b"")
    (args,) = decode_args([event])
    assert (args.device, args.correlation, args.collective) == ("0", None, "7")
    assert args.stream == "1e2"


def test_bytes_that_are_no_utf8_and_lone_surrogates_are_replaced():
    event = decode_piece(b'{"name": "a\xffb\\ud800"}')
    assert event is not None
    assert event.name == "a\ufffdb?"


@pytest.mark.parametrize("text", [b'{"name": "x', b"5", b"[" * 99999, b"", b'{"a" 1}'])
def test_what_is_no_event_is_none(text):
    assert decode_piece(text) is None


def test_events_without_arguments_get_empty_ones():
    events = decode_block(b'{"ph": "X"}, {"args": null}, {"args": {"stream": 3}}')
    assert events is not None
    assert [args.stream for args in decode_args(events)] == [None, None, 3]


def test_arguments_of_an_odd_type_do_not_spoil_their_neighbors():
    events = decode_block(b'{"args": [1]}, {"args": {"stream": [2]}}, {"args": {"stream": 3}}')
    assert events is not None
    assert [args.stream for args in decode_args(events)] == [None, None, 3]
