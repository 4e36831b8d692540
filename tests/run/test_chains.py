"""Which task waits for which: told by waits, by when things began, and by nothing more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from traceparse.rank import NEVER
from traceparse.run.chains import Chain, awaited_by_host, dependencies, follows


def chain(*rows, syncs=(), kinds=None, is_host=False):
    """Make a chain of (start, end, stream, call, launched, waits)."""
    start, end, stream, call, launched, waits = (
        np.array(column, np.int64) for column in zip(*rows, strict=True)
    )
    nothing = np.full(start.size, NEVER)
    return Chain(
        start_ns=start,
        end_ns=end,
        stream=stream,
        call=call,
        kind=np.minimum(call, 0) if kinds is None else np.array(kinds),
        work_ns=end - start,
        gaps_ns=np.zeros_like(start),
        launched_ns=launched,
        ready_ns=launched + 3,
        arrival_ns=nothing,
        tail_ns=np.zeros_like(start),
        waits=waits,
        sync_start_ns=np.array([begin for begin, _ in syncs], np.int64),
        sync_end_ns=np.array([end for _, end in syncs], np.int64),
        is_host=is_host,
    )


def edges(made):
    found = dependencies(made)
    return sorted(zip(found.awaited.tolist(), found.waiting.tolist(), strict=True))


NONE = -1


def test_a_stream_goes_on_in_the_order_of_its_starts():
    made = chain((10, 20, 0, NONE, 1, 0), (30, 40, 0, NONE, 3, 0), (20, 30, 0, NONE, 5, 0))
    before, after = follows(made)
    assert list(zip(before.tolist(), after.tolist(), strict=True)) == [(0, 2), (2, 1)]


def test_a_call_waits_for_what_was_computed_before_it():
    made = chain((10, 20, 0, NONE, 1, 0), (20, 40, 1, 0, 2, 1), (20, 30, 0, NONE, 3, 0))
    assert edges(made) == [(0, 1)]


def test_but_not_for_what_had_not_ended_when_it_began():
    made = chain((10, 20, 0, NONE, 1, 0), (15, 40, 1, 0, 2, 1), (20, 30, 0, NONE, 3, 0))
    assert edges(made) == []


def test_another_wait_is_for_the_last_call():
    made = chain(
        (10, 20, 0, NONE, 1, 0),
        (20, 40, 1, 0, 2, 1),
        (20, 30, 0, NONE, 3, 0),
        (50, 60, 0, NONE, 45, 1),
    )
    assert edges(made) == [(0, 1), (1, 3)]


def test_a_wait_before_a_call_is_for_what_came_before_that_call():
    """As FSDP does: wait for these weights, gather the next, compute."""
    made = chain(
        (10, 20, 0, NONE, 1, 0),
        (20, 30, 1, 0, 2, 1),
        (30, 99, 1, 1, 3, 2),
        (30, 60, 0, NONE, 4, 0),
    )
    assert edges(made) == [(0, 1), (0, 2), (1, 3)]


def test_of_a_call_that_had_not_ended_the_one_before_is_taken():
    """As FSDP does that gathers ahead: gather the next, wait for these weights, compute."""
    made = chain(
        (10, 20, 0, NONE, 1, 0),
        (20, 30, 1, 0, 2, 1),
        (30, 99, 1, 1, 3, 1),
        (30, 60, 0, NONE, 4, 1),
    )
    assert edges(made) == [(0, 1), (0, 2), (1, 3)]


def test_as_many_streams_are_waited_for_as_there_were_waits():
    rows = [
        (10, 20, 0, NONE, 1, 0),
        (20, 30, 1, 0, 2, 1),
        (20, 45, 2, 1, 3, 1),
        (50, 60, 0, NONE, 4, 1),
    ]
    assert edges(chain(*rows)) == [(0, 1), (0, 2), (2, 3)]  # the last to end
    rows[3] = (50, 60, 0, NONE, 4, 2)
    assert edges(chain(*rows)) == [(0, 1), (0, 2), (1, 3), (2, 3)]


def slow_host(*asked):
    """Make a chain of a host so slow that all it asked for ends before it asks for more.

    Of each: its name, a letter (small: it computes), and how many waits come before it.
    """
    streams = {"G": 1, "S": 2}
    rows, num_calls = [], 0
    for place, (name, waits) in enumerate(asked):
        is_call = name in streams
        at, call = 100 * place, num_calls if is_call else NONE
        rows.append((at, at + 20, streams.get(name, 0), call, at - 3, waits))
        num_calls += is_call
    kinds = [streams.get(name, NONE) for name, _ in asked]
    return chain(*rows, kinds=kinds)


def of_computing(made):
    """Return what computing waits for."""
    return [(one, other) for one, other in edges(made) if made.call[other] < 0]


def test_what_was_waited_for_is_not_waited_for_again():
    made = slow_host(("c", 0), ("G", 1), ("c", 1), ("S", 1), ("c", 1), ("c", 1))
    assert of_computing(made) == [(1, 2), (3, 4)]


def test_a_wait_is_for_a_collective_that_is_usually_waited_for():
    """As FSDP does: of each gather, and of the last scatter at the end."""
    forward = [("G", 1), ("c", 1)] * 3
    backward = [("G", 1), ("c", 1), ("S", 1)] * 2
    made = slow_host(("c", 0), *forward, *backward, ("c", 1))
    gathers = [place for place in range(made.num) if made.kind[place] == 1]
    assert of_computing(made) == [*((one, one + 1) for one in gathers), (12, 13)]
    assert not {(9, 10), (9, 11)} & set(edges(made))  # the scatter was over long before


def test_if_each_one_is_waited_for_it_is_the_first_that_is_left():
    """As FSDP does that gathers ahead: the next one is called before the wait."""
    ahead = [("G", 1), ("c", 1)] * 4
    made = slow_host(("c", 0), ("G", 1), *ahead, ("c", 1))
    assert of_computing(made) == [(1, 3), (2, 5), (4, 7), (6, 9), (8, 10)]


def test_a_wait_is_not_for_what_the_host_knows_to_have_ended():
    made = slow_host(("c", 0), ("S", 1), ("G", 1), ("c", 1))
    assert of_computing(made) == [(2, 3)]
    known = replace(made, sync_start_ns=np.array([250]), sync_end_ns=np.array([260]))
    assert of_computing(known) == []


def test_a_call_may_wait_for_one_of_another_stream():
    made = chain((10, 20, 0, NONE, 1, 0), (20, 30, 1, 0, 2, 1), (30, 40, 2, 1, 3, 2))
    assert edges(made) == [(0, 1), (0, 2), (1, 2)]


def test_what_begins_right_after_a_call_waited_for_it_if_nothing_else_held_it_up():
    """In a graph no wait is recorded."""
    rows = [(10, 20, 0, NONE, 1, 0), (20, 40, 1, 0, 1, 0), (41, 50, 0, NONE, 1, 0)]
    assert edges(chain(*rows)) == [(0, 1), (1, 2)]
    rows[2] = (41, 50, 0, NONE, 38, 0)  # its launch arrives then
    assert edges(chain(*rows)) == [(0, 1)]
    rows[2] = (20_000_000, 20_000_001, 0, NONE, 1, 0)  # much later
    assert edges(chain(*rows)) == [(0, 1)]


def test_a_host_waits_for_what_it_had_launched_last():
    made = chain(
        (10, 20, 0, NONE, 1, 0),
        (10, 90, 1, 0, 2, 0),
        (20, 60, 0, NONE, 3, 0),
        (95, 99, 0, NONE, 80, 0),
        syncs=[(5, 61), (85, 86), (87, 100)],
    )
    assert awaited_by_host(made).tolist() == [2, NONE, 3]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(10, 20, 0, NONE, 1, 0), (20, 40, 1, 0, 2, 0)], False),
        ([(10, 20, 0, NONE, 1, 0), (20, 40, 1, 0, 2, 1)], True),
        ([(10, 20, 0, NONE, 1, 0), (20, 40, 0, 0, 2, 0)], True),  # on one stream
        ([(10, 20, 0, NONE, 1, 0)], True),
    ],
)
def test_calls_on_a_stream_of_their_own_without_any_wait_tell_nothing(rows, told):
    assert chain(*rows).tells_waits is told
    assert chain(*rows, is_host=True).tells_waits


def test_nothing_waits_for_nothing():
    nothing = np.empty(0, np.int64)
    made = Chain(*(nothing,) * 14, is_host=False)
    assert edges(made) == []
    assert made.tells_waits
