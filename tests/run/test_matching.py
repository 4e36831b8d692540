from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.run.calls import call, device
from traceparse.run.gathered import gather_calls
from traceparse.run.instances import instances_of
from traceparse.run.matching import match

OLD = {"sequence": None, "comms_id": None}
NAMELESS = {
    **OLD,
    "collective": None,
    "dtype": None,
    "message_bytes": None,
    "group": None,
    "group_ranks": None,
    "group_size": None,
}


def found(devices, ranks):
    """Return instances as the starts of their parts, by device; and what is said."""
    calls = gather_calls(devices)
    matched, notes = match(calls, ranks)
    instances = instances_of(calls, matched, ranks)
    parts: dict[int, dict[int, int]] = {}
    for number, place, start in zip(
        instances.part_instance.tolist(),
        instances.part_device.tolist(),
        instances.part_start_ns.tolist(),
        strict=True,
    ):
        parts.setdefault(number, {})[place] = start
    return sorted(map(sorted, (part.items() for part in parts.values()))), notes, instances


def test_the_same_id_is_the_same_collective_in_any_order():
    one = device([call(10, 20, comms_id=2**64 - 1), call(30, 40, comms_id=7)])
    other = device([call(110, 120, comms_id=7), call(130, 140, comms_id=2**64 - 1)])
    parts, notes, _ = found([one, other], (0, 1))
    assert (parts, notes) == ([[(0, 10), (1, 130)], [(0, 30), (1, 110)]], [])


def test_a_sequence_counts_in_its_group_only():
    one = device([call(10, 20, sequence=1), call(30, 40, sequence=1, group="1")])
    other = device([call(110, 120, sequence=1, group="1"), call(130, 140, sequence=1)])
    assert found([one, other], (0, 1))[0] == [[(0, 10), (1, 130)], [(0, 30), (1, 110)]]


def test_disjoint_groups_reuse_names():
    devices = [
        device([call(10, 20, sequence=1, group="tp", group_ranks=ranks)])
        for ranks in ("0-1", "0-1", "2-3", "2-3")
    ]
    parts, _, instances = found(devices, range(4))
    assert parts == [[(0, 10), (1, 10)], [(2, 10), (3, 10)]]
    assert instances.is_split.all()


def windows(kinds, lags, *, period_ns=1_000, offsets=None, told=OLD):
    """Return devices that each see the same calls from some place on."""
    rng = random.Random(3)
    starts = [n * period_ns + rng.randrange(period_ns // 2) for n in range(len(kinds))]
    return [
        device(
            call(at + ahead, at + ahead + 100, **{**told, "message_bytes": size})
            for at, size in list(zip(starts, kinds, strict=True))[lag:]
        )
        for lag, ahead in zip(lags, offsets or [0] * len(lags), strict=True)
    ]


@pytest.mark.parametrize("ahead", [0, 10**12, -(10**12)])
def test_windows_that_begin_apart_are_laid_over_one_another(ahead):
    kinds = [1, 2, 3, 1, 2, 3, 1, 2, 3, 4]
    parts, notes, instances = found(windows(kinds, (0, 3), offsets=(0, ahead)), (0, 1))
    assert notes == []
    assert [len(part) for part in parts].count(2) == 7
    assert int(instances.is_split.sum()) == 7
    assert all(part[1][1] - part[0][1] == ahead for part in parts if len(part) == 2)


def test_layers_that_repeat_are_told_apart_by_when_they_end():
    devices = windows([5] * 40, (0, 7), period_ns=1_000_000, offsets=(0, 123))
    parts, notes, _ = found(devices, (0, 1))
    assert notes == []
    assert {part[1][1] - part[0][1] for part in parts if len(part) == 2} == {123}


def test_what_fits_in_several_ways_is_said():
    devices = [device(call(n, n + 10, **OLD) for n in range(0, 10_000, 1_000))] * 2
    parts, notes, _ = found(devices, (0, 1))
    assert [note.code for note in notes] == ["collectives_ambiguous"]
    assert notes[0].message == (
        "process group 0 (0-1): several ways to lay calls of rank 1 over those of the others "
        "fit as well; the one whose clocks differ least is used"
    )
    assert all(part[0][1] == part[1][1] for part in parts)


def test_other_kinds_match_nothing():
    one = device(call(n, n + 10, **OLD) for n in (0, 100, 200))
    other = device(call(n, n + 10, **OLD, dtype="Half") for n in (0, 100, 200))
    parts, notes, instances = found([one, other], (0, 1))
    assert [len(part) for part in parts] == [1] * 6
    assert not instances.is_split.any()
    assert [note.code for note in notes] == ["collectives_mismatched"]


def test_names_tell_where_nothing_else_does():
    names = ["SendRecv", "AllReduce", "SendRecv"]
    devices = [
        device(
            call(100 * n + ahead, 100 * n + ahead + 10, **NAMELESS | {"name": name})
            for n, name in enumerate(names)
        )
        for ahead in (0, 7)
    ]
    parts, _, instances = found(devices, (0, 1))
    assert [len(part) for part in parts] == [2, 2, 2]
    assert instances.is_split.all()
    assert set(instances.num_members.tolist()) == {-1}


def test_peers_match_by_source_destination_and_order():
    def send(at, to):
        return call(at, at + 9, **OLD, collective="send", destination=to, group_ranks="0-2")

    def recv(at, of):
        return call(at, at + 9, **OLD, collective="recv", source=of, group_ranks="0-2")

    devices = [
        device([send(10, 1), send(20, 2), send(30, 1)]),
        device([recv(110, 0), recv(130, 0), recv(140, None)]),
        device([recv(220, 0)]),
    ]
    parts, _, instances = found(devices, range(3))
    assert parts == [
        [(0, 10), (1, 110)],
        [(0, 20), (2, 220)],
        [(0, 30), (1, 130)],
        [(1, 140)],
    ]
    assert instances.is_split.tolist().count(True) == 3


def test_transfer_is_the_shortest_and_wait_the_rest():
    devices = [
        device([call(0, 50, sequence=1, group_ranks="0-2")]),
        device([call(1_030, 1_050, sequence=1, group_ranks="0-2")]),
        device([call(10, 50, sequence=1, group_ranks="0-2")]),
    ]
    _, _, instances = found(devices, range(3))
    assert instances.transfer_ns.tolist() == [20]
    assert instances.part_wait_ns.tolist() == [30, 0, 20]
    assert instances.last_device().tolist() == [1]


def test_of_ties_the_first_is_the_last_to_come():
    devices = [device([call(0, 50, sequence=1)]), device([call(9, 59, sequence=1)])]
    assert found(devices, (0, 1))[2].last_device().tolist() == [0]


def test_several_kernels_of_one_call_are_one_part():
    one = device([call(0, 10, comms_id=5), call(8, 30, comms_id=5)])
    _, _, instances = found([one, device([call(20, 30, comms_id=5)])], (0, 1))
    assert instances.part_start_ns.tolist() == [0, 20]
    assert instances.transfer_ns.tolist() == [10]


def test_a_rank_that_has_a_file_and_does_not_show_it_leaves_it_whole():
    told = {"sequence": 1, "group_ranks": "0-2", "group_size": 3}
    devices = [device([call(0, 9, **told)]), device([call(0, 9, **told)]), device([])]
    assert not found(devices, range(3))[2].is_split.any()
    _, _, instances = found(devices[:2], range(2))  # of rank 2 there is no file
    assert instances.is_split.all()
    assert (instances.num_expected[0], instances.num_members[0]) == (2, 3)


def test_calls_that_differ_in_size_are_no_one_collective():
    told = {"sequence": 1}
    devices = [device([call(0, 9, **told, message_bytes=size)]) for size in (8, 16)]
    assert not found(devices, (0, 1))[2].is_split.any()


@given(
    st.integers(2, 4),
    st.lists(st.integers(0, 3), min_size=4, max_size=25),
    st.randoms(use_true_random=False),
)
def test_any_windows_are_matched_or_said_to_be_ambiguous(num, kinds, rng):
    lags = [0, *(rng.randrange(len(kinds) // 2) for _ in range(num - 1))]
    offsets = [rng.randrange(10**6) for _ in range(num)]
    parts, notes, _ = found(windows(kinds, lags, offsets=offsets), range(num))
    if not notes:
        told = [(place, start - offsets[place]) for part in parts for place, start in part]
        together = {
            frozenset(start - offsets[place] for place, start in part) for part in parts
        }
        assert all(len(starts) == 1 for starts in together), told
