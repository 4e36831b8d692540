from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.run.calls import call, device
from traceparse.run.clock import align
from traceparse.run.gathered import gather_calls
from traceparse.run.instances import instances_of
from traceparse.run.matching import match
from traceparse.units import format_ranges


def aligned(devices, ranks):
    calls = gather_calls(devices)
    matched, notes = match(calls, ranks)
    instances = instances_of(calls, matched, ranks)
    coincide = np.ones(instances.first_call.size, np.bool_)
    clock, said = align(instances, coincide, ranks)
    return calls, instances, clock, [*notes, *said]


def job(offsets, *, num=20, drift=(), jitter=0, seed=0, groups=None, **told):
    """Return devices whose clocks are ahead: each collective ends at once on all."""
    rng = random.Random(seed)
    ranks = range(len(offsets))
    groups = groups or {"0": list(ranks)}
    rows: dict[int, list[dict[str, Any]]] = {rank: [] for rank in ranks}
    at = 10_000_000
    for number in range(num):
        for name, members in groups.items():
            at += rng.randrange(10_000, 100_000)
            for rank in members:
                wait = rng.randrange(5_000)
                end = at + rng.randrange(-jitter, jitter + 1)
                slow = drift[rank] if drift else 0.0
                own = [
                    time + offsets[rank] + round(slow * time)
                    for time in (end - 3_000 - wait, end)
                ]
                about = {"group": name, "group_ranks": format_ranges(members)}
                about |= {"group_size": len(members), "sequence": number}
                rows[rank].append(call(*own, **{**about, **told}))
    return [device(rows[rank]) for rank in ranks]


def test_clocks_that_are_exact_are_aligned_exactly():
    offsets = (0, 5_000_000, -7_123, 10**15)
    _, instances, clock, notes = aligned(job(offsets), range(4))
    assert [line and line.offset_ns for line in clock.lines] == list(offsets)
    assert (clock.residual_ns, notes) == (0, [])
    assert instances.is_split.all()


def test_the_lowest_rank_is_the_reference_wherever_it_stands():
    devices = job((0, 100, 300), group_ranks=None)
    _, _, clock, _ = aligned(devices, (7, 2, None))
    assert clock.reference == 1
    assert [line and line.offset_ns for line in clock.lines] == [-100, 0, 200]


def test_groups_that_share_ranks_connect_the_others():
    groups = {"a": [0, 1], "b": [1, 2], "c": [2, 3], "d": [4, 5]}
    offsets = (0, 11, 222, 3_333, 5, 6)
    _, _, clock, notes = aligned(job(offsets, groups=groups), range(6))
    assert [line and line.offset_ns for line in clock.lines] == [0, 11, 222, 3_333, None, None]
    assert [note.code for note in notes] == ["clocks_unaligned"]


def test_a_drift_is_a_line():
    drift = (0.0, 50e-6, -20e-6)
    _, _, clock, _ = aligned(job((0, 10**6, -(10**6)), num=200, drift=drift), range(3))
    for line, wanted in zip(clock.lines, drift, strict=True):
        assert line is not None
        assert line.drift == pytest.approx(wanted, abs=1e-6)
    assert clock.residual_ns is not None
    assert clock.residual_ns <= 2


def test_ends_that_scatter_leave_a_residual_and_no_drift():
    _, _, clock, _ = aligned(job((0, 10**6), num=200, jitter=4_000), range(2))
    line = clock.lines[1]
    assert line is not None
    assert line.drift == 0
    assert abs(line.offset_ns - 10**6) < 1_000
    assert clock.residual_ns is not None
    assert 500 < clock.residual_ns < 4_000


def test_a_few_ends_that_are_far_off_change_nothing():
    devices = job((0, 1_000), num=21)
    rows = devices[1].calls.to_pylist()
    for row in rows[:5]:
        row["end_ns"] += 10**9
    _, _, clock, _ = aligned([devices[0], device(rows)], range(2))
    line = clock.lines[1]
    assert line is not None
    assert line.offset_ns == 1_000


def test_without_anything_in_common_nothing_is_known():
    first = device([call(1_000, 2_000, sequence=1)])
    second = device([call(5_000, 6_000, sequence=9)])
    _, instances, clock, _ = aligned([first, second], (0, 1))
    assert not instances.is_split.any()
    assert clock.lines[1] is None
    assert clock.residual_ns is None


def test_peers_are_for_those_that_nothing_else_reaches():
    """What is sent is received a while later: here by 40."""
    sent = [
        call(
            n,
            n + 500,
            collective="send",
            group=None,
            group_ranks=None,
            group_size=None,
            destination=1,
            message_bytes=8,
        )
        for n in range(1_000, 9_000, 1_000)
    ]
    received = [
        call(
            n + 100,
            n + 640,
            collective="recv",
            group=None,
            group_ranks=None,
            group_size=None,
            source=0,
            message_bytes=8,
        )
        for n in range(1_000, 9_000, 1_000)
    ]
    _, instances, clock, _ = aligned([device(sent), device(received)], (0, 1))
    line = clock.lines[1]
    assert line is not None
    assert line.offset_ns == 140
    assert instances.is_split.all()
    assert set(instances.transfer_ns.tolist()) == {500}
