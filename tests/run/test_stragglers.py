"""Who is waited for, and why, in jobs worked out by hand.

Every 1,000 ns all ranks leave a collective together, at 900; each comes when it does, and the
last one's duration is the transfer. Nothing else runs, so all of it is exposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.run.calls import call, device
from traceparse.intervals import length
from traceparse.rank import DeviceDigest, OperatorWork, Times
from traceparse.run.across import Across, across
from traceparse.run.stragglers import stragglers
from traceparse.run.waits import median_of_others, waits_of

NUM = 8  # steps, of one collective each
PERIOD = 1_000


def times(compute: int = 500, idle: int = 0) -> list[Times]:
    return [
        Times(
            *(k * PERIOD, (k + 1) * PERIOD, PERIOD, PERIOD - idle, compute),
            *(0, 0, 0, 0, 0, idle),
        )
        for k in range(NUM)
    ]


def product(time_ns: int = 4_000, *, op: str = "aten::mm", count: int = NUM) -> OperatorWork:
    return OperatorWork(op, "8x8, 8x8", "bf16", False, count, time_ns, 1, 0, 1)


def rank_of(rows: Sequence[Mapping[str, Any]], *, on: int | str = 0) -> DeviceDigest:
    exposed = sorted((row["start_ns"], row["end_ns"]) for row in rows)
    return replace(device(rows, exposed), device=on)


def comes(at: Sequence[int] | int, *, queued: int = 300, ranks: str = "0-3", **told: Any):
    """Calls of one rank, that comes at some offset in each period."""
    offsets = [at] * NUM if isinstance(at, int) else at
    size = 4 if ranks == "0-3" else 2
    return [
        call(
            k * PERIOD + offset,
            k * PERIOD + 900,
            **{"sequence": k, "group_ranks": ranks, "group_size": size, **told},
            launched_ns=k * PERIOD + offset - queued,
        )
        for k, offset in enumerate(offsets)
    ]


def job(*devices: DeviceDigest) -> Across:
    together = across(devices, range(len(devices)))
    assert together is not None
    return together


def found(together: Across, steps=None, operators=None) -> list[dict[str, Any]]:
    num = len(together.devices)
    found = stragglers(together, steps or [times()] * num, operators or [(product(),)] * num)
    return [one.finding for one in found]


def said(findings: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(one["severity"], one["title"]) for one in findings]


def late_job(*, queued: int = 300, on: int | str = 0) -> Across:
    """Rank 2 comes 300 ns after the others: 3 x 300 of 4 x 1,000 ns are waited for it."""
    usual = rank_of(comes(500), on=on)
    return job(usual, usual, rank_of(comes(800, queued=queued), on=on), usual)


def test_slower_kernels_that_explain_the_wait_are_slow_compute():
    operators = [(product(4_000 + 2_400 * (rank == 2)),) for rank in range(4)]
    (one,) = found(late_job(), operators=operators)
    assert (one["code"], one["severity"]) == ("straggler", "warning")
    assert one["title"] == "rank 2 is waited for: slow compute"
    assert one["lost_ratio"] == 0.225
    assert one["lost_usd"] is None
    assert "22.5% of a mean step" in one["evidence"]
    assert "8 of its 8 collectives" in one["evidence"]
    assert "aten::mm 8x8, 8x8: 0.8 us a run against 0.5 us" in one["evidence"]


def test_a_device_that_idles_until_something_is_launched_has_a_late_host():
    steps = [times(idle=300 * (rank == 2)) for rank in range(4)]
    (one,) = found(late_job(queued=10), steps)
    assert said([one]) == [("warning", "rank 2 is waited for: late host")]
    assert "launched 0.3 us after the median rank has come" in one["evidence"]
    assert "start 10 ns later" in one["evidence"]
    assert "idles for 0.3 us of a step, the median one for 0" in one["evidence"]


@pytest.mark.parametrize(
    ("slower_ns", "idle_ns"),
    [
        pytest.param(0, 0, id="nothing explains it"),
        pytest.param(2_400, 300, id="both explain it"),
        pytest.param(2_400, 100, id="the other one disturbs"),
        pytest.param(1_000, 300, id="slower kernels disturb"),
    ],
)
def test_mixed_evidence_is_no_cause(slower_ns, idle_ns):
    steps = [times(idle=idle_ns * (rank == 2)) for rank in range(4)]
    operators = [(product(4_000 + slower_ns * (rank == 2)),) for rank in range(4)]
    (one,) = found(late_job(queued=10), steps, operators)
    assert said([one]) == [("warning", "rank 2 is waited for: cause unclear")]
    assert "explain" in one["evidence"]


def test_more_work_is_not_slower_work():
    """It computes longer, but in an operator that nobody else runs."""
    steps = [times(compute=500 + 300 * (rank == 2)) for rank in range(4)]
    operators = [(product(),)] * 2 + [(product(), product(2_400, op="aten::bmm")), (product(),)]
    (one,) = found(late_job(), steps, operators)
    assert one["title"].endswith("cause unclear")
    assert (
        "slower kernels explain 0% of the wait, more compute of any kind 100.0%"
        in (one["evidence"])
    )


def test_what_takes_longer_for_running_more_often_is_not_slower():
    operators = [(product(4_000 + 2_400 * (rank == 2), count=8),) for rank in range(4)]
    operators[2] = (product(6_400, count=13),)
    (one,) = found(late_job(), operators=operators)
    assert one["title"].endswith("cause unclear")


def test_on_a_host_nothing_is_launched_so_its_idling_says_nothing():
    steps = [times(idle=300 * (rank == 2)) for rank in range(4)]
    (one,) = found(late_job(queued=0, on="cpu"), steps)
    assert one["title"].endswith("cause unclear")


def test_without_operators_kernels_cannot_be_called_slower():
    (one,) = found(late_job(), operators=[()] * 4)
    assert one["title"].endswith("cause unclear")
    assert "no other rank has kernels that its own can be compared with" in one["evidence"]


def test_a_rank_that_is_a_little_slower_is_no_straggler():
    """Chips of one kind differ by 5 %."""
    usual = rank_of(comes(500))
    together = job(usual, usual, rank_of(comes(560)), usual)
    operators = [(product(4_000 + 160 * (rank == 2)),) for rank in range(4)]
    assert found(together, operators=operators) == []
    operators[2] = (product(4_320),)
    assert said(found(together, operators=operators)) == [
        ("info", "rank 2 is waited for: slow compute")
    ]


def test_ranks_that_take_turns_are_no_stragglers():
    places = [[500 + 300 * (k % 4 == rank) for k in range(NUM)] for rank in range(4)]
    assert found(job(*(rank_of(comes(own)) for own in places))) == []


def test_who_is_late_once_is_told_for_information():
    at = [800, *[500] * (NUM - 1)]
    usual = [500, *[500 + (k % 2) for k in range(NUM - 1)]]
    rows = [rank_of(comes(usual))] * 2 + [rank_of(comes([899, *at[1:]])), rank_of(comes(usual))]
    (one,) = found(job(*rows), [own[:4] for own in [times()] * 4])
    assert said([one]) == [("info", "rank 2 is waited for: cause unclear")]
    assert "too few of those that matter to tell a habit from chance" in one["evidence"]


def test_one_rank_alone_waits_for_nobody():
    assert found(job(rank_of(comes(500)))) == []
    assert stragglers(None, [], []) == []


def test_a_rank_that_is_not_known_is_not_named():
    usual = rank_of(comes(500))
    together = across([usual, usual, rank_of(comes(800)), usual], [0, 1, None, 3])
    assert together is not None
    assert found(together) == []


# -- send and recv


def staged_job(at: int) -> Across:
    """Rank 0 sends to 1 and that to 2, in each period; 1 comes later than the others."""
    made = []
    for rank in range(3):
        rows = []
        for pair in ((0, 1), (1, 2)):
            if rank in pair:
                rows += [
                    call(
                        k * PERIOD + (at if rank == 1 else 500),
                        k * PERIOD + 900,
                        collective="send" if rank == pair[0] else "recv",
                        source=pair[0],
                        destination=pair[1],
                        sequence=None,
                        group_ranks="0-2",
                        group_size=3,
                    )
                    for k in range(NUM)
                ]
        made.append(rank_of(rows))
    return job(*made)


def test_a_stage_that_computes_longer_is_waited_for_in_its_place():
    steps = [times(compute=300 + 300 * (rank == 1)) for rank in range(3)]
    (one,) = found(staged_job(800), steps)
    assert said([one]) == [("info", "rank 1 is waited for: place in the pipeline")]
    assert one["lost_ratio"] == 0.2
    assert "16 of its 16 sends and receives" in one["evidence"]


def test_a_bubble_is_nobodys():
    assert found(staged_job(800)) == []


def test_a_stage_whose_kernels_are_slower_is_slow():
    operators = [(product(4_000 + 2_400 * (rank == 1)),) for rank in range(3)]
    (one,) = found(staged_job(800), operators=operators)
    assert said([one]) == [("warning", "rank 1 is waited for: slow compute")]


# -- links


def linked_job(slow: Mapping[str, int]) -> Across:
    """Pairs across and pairs of neighbors; all come at once, transfers differ by group."""
    pairs = {"rows": ("0-1", "2-3"), "columns": ("0,2", "1,3")}
    made = []
    for rank in range(4):
        rows = []
        for kind, begin in (("rows", 0), ("columns", 500)):
            own = next(one for one in pairs[kind] if str(rank) in one.replace("-", ","))
            rows += [
                call(
                    k * PERIOD + begin,
                    k * PERIOD + begin + slow.get(own, 100),
                    sequence=k,
                    group=kind,
                    group_ranks=own,
                    group_size=2,
                    message_bytes=4096 if kind == "rows" else 1024,
                )
                for k in range(NUM)
            ]
        made.append(rank_of(rows))
    return job(*made)


def test_a_link_is_slow_where_all_groups_of_a_rank_are():
    (one,) = found(linked_job({"2-3": 300, "1,3": 300}))
    assert said([one]) == [("warning", "rank 3 is waited for: slow link")]
    assert one["lost_ratio"] == pytest.approx(2 * 2 * 200 / 4_000)
    assert "0.3 us among ranks" in one["evidence"]
    assert "0.1 us in the median of the other groups" in one["evidence"]


def test_of_ranks_that_share_all_slow_groups_none_is_blamed():
    usual = [rank_of(comes(500, ranks="0-1", message_bytes=64))] * 2
    other = [rank_of(comes(800, ranks="2-3", message_bytes=64))] * 2
    (one,) = found(job(*usual, *other))
    assert said([one]) == [
        ("info", "a rank among 0-1 has a slow link: which one is unclear"),
    ]


def test_a_rank_with_a_fast_group_has_no_slow_link():
    assert found(linked_job({"2-3": 300})) == []


def test_what_cannot_be_compared_is_not_slow():
    """One group of all: every transfer is of the slow link's too."""
    assert found(job(*[rank_of(comes(100))] * 4)) == []


# -- through other groups


def chained_job(*, by_wait: bool) -> Across:
    """Rank 1 is held up in a pair with 0, so that 2 waits for it afterwards, not for its sake.

    Either 0 comes late to the pair, or the pair takes long.
    """
    made = []
    for rank in range(4):
        rows = []
        for k in range(NUM):
            at = k * PERIOD
            pair = "0-1" if rank < 2 else "2-3"
            begin, end = at + 100, at + 200
            if rank < 2:
                end += 300
            if rank == 1 or not by_wait:
                begin = at + 100
            elif rank == 0:
                begin += 300
            told = {"sequence": k, "group_size": 2}
            rows.append(call(begin, end, group="a", group_ranks=pair, **told))
            other = "0,3" if rank in (0, 3) else "1-2"
            rows.append(
                call(end + 50, at + 700, group="b", group_ranks=other, message_bytes=64, **told)
            )
        made.append(rank_of(rows))
    return job(*made)


def test_waiting_is_laid_to_whom_the_last_rank_had_waited_for():
    together = chained_job(by_wait=True)
    waits = waits_of(together, [times()] * 4)
    first = together.calls.groups[together.instances.first_call]
    names = [together.calls.group_texts[group][:2] for group in first.tolist()]
    culprits = dict(zip(names, waits.culprit().tolist(), strict=False))
    assert culprits["a", "0-1"] == 0
    assert culprits["b", "1-2"] == 0  # through 1
    (one,) = found(together)
    assert one["title"].startswith("rank 0 is waited for")
    assert "through ranks that it had held up" in one["evidence"]


def test_waiting_for_those_whom_a_transfer_had_held_up_is_laid_to_no_rank():
    together = chained_job(by_wait=False)
    waits = waits_of(together, [times()] * 4)
    own = together.instances.part_instance[waits.exposed_ns > 0]
    assert own.size
    assert (waits.culprit()[own] == -1).all()
    assert found(together) == []  # in their other groups they are as fast as anybody


# -- sums


@pytest.mark.parametrize("seed", range(5))
def test_waits_add_up_to_what_was_exposed(seed):
    """Whatever overlaps: every exposed instant of waiting is laid to one instance."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(3):
        rows = []
        for group, begin in (("x", 0), ("y", 200)):
            offsets = random.integers(0, 600, NUM)
            rows += [
                call(
                    k * PERIOD + begin + int(offset),
                    k * PERIOD + begin + 700,
                    group=group,
                    sequence=k,
                    group_ranks="0-2",
                    group_size=3,
                )
                for k, offset in enumerate(offsets)
            ]
        made.append(rank_of(rows))
    together = job(*made)
    waits = waits_of(together, [times()[:5]] * 3)
    for place, exposure in enumerate(together.exposures):
        mine = together.instances.part_device == place
        assert waits.whole_ns[mine].sum() == length(exposure.wait)
        assert waits.exposed_ns[mine].sum() == exposure.within(0, 5 * PERIOD)[1]


@pytest.mark.parametrize("seed", range(5))
def test_median_of_others(seed):
    random = np.random.default_rng(seed)
    places = [[int(at) for at in random.integers(0, 899, NUM)] for _ in range(4)]
    instances = job(*(rank_of(comes(own)) for own in places)).instances
    last = instances.last_device()[instances.part_instance]
    but = np.flatnonzero(instances.part_device == last)
    found = median_of_others(instances, instances.part_wait_ns, but)
    for number in range(NUM):
        rows = instances.part_instance == number
        waits = np.sort(instances.part_wait_ns[rows & (instances.part_device != last)])
        assert found[number] == waits[1]
