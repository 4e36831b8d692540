from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.ingest import ahead as module
from traceparse.ingest.ahead import ahead

BIG = b"x" * module._SMALL


@given(st.lists(st.binary(max_size=9)))
def test_the_bytes_are_the_same(blocks):
    assert b"".join(ahead(iter(blocks))) == b"".join(blocks)


def test_small_blocks_are_put_together():
    assert [len(block) for block in ahead(iter([b"ab"] * 3 + [BIG] * 2))] == [
        6 + len(BIG),
        len(BIG),
    ]


def test_an_error_comes_out_in_its_place():
    def blocks():
        yield BIG
        raise ValueError("broken")

    found = ahead(blocks())
    assert next(found) == BIG
    with pytest.raises(ValueError, match="broken"):
        next(found)


def test_whoever_stops_reading_ends_the_thread():
    made = []

    def blocks():
        while True:
            made.append(threading.current_thread())
            yield BIG

    found = ahead(blocks())
    next(found)
    found.close()
    assert not made[0].is_alive()
    assert made[0] is not threading.current_thread()
    assert len(made) <= module._MOST_BLOCKS + 3
