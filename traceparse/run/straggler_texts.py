"""Findings on stragglers, in words: with the numbers that they are judged by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from traceparse.run.causes import Cause, Evidence
from traceparse.run.links import SlowGroup
from traceparse.run.slower import Slower
from traceparse.units import format_count, format_duration, format_ratio, rank_ranges

__all__ = ["Told", "link_finding", "rank_finding"]

_SHORT = 60
_WORTH_TELLING = 0.001  # of all device-steps

_ADVICE: Final[dict[Cause, str]] = {
    "slow compute": (
        "check its clocks, temperature, power limit and neighbors (nvidia-smi -q), and swap "
        "the device if it stays slow; the same kernels on the same shapes should take the same"
    ),
    "late host": (
        "look at what its host does before it launches: data loading, garbage collection, "
        "other processes on its cores, pinning to a far NUMA node; capture it with stacks"
    ),
    "slow link": (
        "check the links and network adapters of its node (nvidia-smi nvlink -s, ibstat, "
        "error counters), and that NCCL takes the same path as elsewhere (NCCL_DEBUG=INFO)"
    ),
    "place in the pipeline": (
        "balance the stages by the time they take, or use more micro-batches: a part of this "
        "wait is the pipeline's bubble, and nobody's fault"
    ),
    "cause unclear": (
        "compare its trace with another rank's around the collectives that it is last in; does "
        "it have more or other work (batch, sequence lengths, experts)?"
    ),
}
_ON_HOST: Final = (
    "look at what else runs on its cores, and how many threads the ranks of one machine share "
    "(OMP_NUM_THREADS); the same operators on the same shapes should take the same"
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a finding on a rank tells.

    ``is_often`` says whether it is last too often for chance; ``through_ratio`` is waited for
    ranks that it had held up.
    """

    rank: int
    cause: Cause
    evidence: Evidence
    lost_ratio: float
    num_last: int
    num_instances: int
    is_often: bool
    num_steps: int
    through_ratio: float


def rank_finding(told: Told, *, is_serious: bool) -> dict[str, Any]:
    """Return the finding on a rank that others wait for."""
    is_host = told.cause == "slow compute" and told.evidence.is_host
    return _finding(
        f"rank {told.rank} is waited for: {told.cause}",
        "; ".join(_evidence(told)),
        _ON_HOST if is_host else _ADVICE[told.cause],
        told.lost_ratio,
        is_serious=is_serious,
    )


def link_finding(
    ranks: Sequence[int],
    groups: Sequence[SlowGroup],
    ranks_of: Sequence[int | None],
    lost_ratio: float,
    held_up_ratio: float,
    *,
    is_serious: bool,
) -> dict[str, Any]:
    """Return the finding on a link; on several ranks if they cannot be told apart."""
    title = f"rank {ranks[0]} is waited for: slow link"
    if len(ranks) > 1:
        title = f"a rank among {rank_ranges(ranks)} has a slow link: which one is unclear"
    worst = max(groups, key=lambda group: group.median_ns / max(group.usual_ns, 1))
    members = sorted(rank for at in worst.members if (rank := ranks_of[at]) is not None)
    evidence = (
        f"longer transfer than other groups', and {format_ratio(held_up_ratio)} of waiting for "
        f"ranks that it held up, make up {format_ratio(lost_ratio)} of a mean step; "
        f"{worst.kind} takes {format_duration(worst.median_ns)} among ranks "
        f"{rank_ranges(members)}, {format_duration(worst.usual_ns)} in the median of the other "
        f"groups, and no rank's coming late is in that"
    )
    return _finding(title, evidence, _ADVICE["slow link"], lost_ratio, is_serious=is_serious)


def _evidence(told: Told) -> Iterator[str]:
    where = "sends and receives" if told.evidence.is_peers else "collectives"
    yield f"waiting for it is {format_ratio(told.lost_ratio)} of a mean step"
    yield (
        f"it is waited for in {format_count(told.num_last)} of its "
        f"{format_count(told.num_instances)} {where}"
    )
    if not told.is_often:
        yield "too few of those that matter to tell a habit from chance"
    if told.through_ratio >= _WORTH_TELLING:
        yield f"{format_ratio(told.through_ratio)} through ranks that it had held up"
    yield _kernels(told.evidence.slower)
    if told.cause != "slow compute":
        yield from _launches(told.evidence)
        yield (
            f"its device idles for "
            f"{format_duration(told.evidence.idle_ns // told.num_steps)} of a step, the median "
            f"one for "
            f"{format_duration(told.evidence.usual_idle_ns // told.num_steps)}"
        )
    if told.cause == "cause unclear":
        yield from _explained(told.evidence)


def _kernels(slower: Slower | None) -> str:
    if slower is None:
        return "no other rank has kernels that its own can be compared with"
    text = f"its kernels take {slower.factor:.2f} times as long as the median rank's"
    if slower.mean_ns > slower.median_ns and slower.excess_ns > 0:
        text += (
            f", most of all {slower.op[:_SHORT]} {slower.shapes[:_SHORT]}: "
            f"{format_duration(round(slower.mean_ns))} a run against "
            f"{format_duration(round(slower.median_ns))}"
        )
    return text


def _launches(evidence: Evidence) -> Iterator[str]:
    if evidence.late_launch_ns is None or evidence.queued_ns is None:
        return
    if evidence.late_launch_ns:
        yield (
            f"its calls are launched {format_duration(evidence.late_launch_ns)} after the "
            f"median rank has come, and start {format_duration(evidence.queued_ns)} later"
        )
    else:
        yield f"its calls are launched {format_duration(evidence.queued_ns)} before they start"


def _explained(evidence: Evidence) -> Iterator[str]:
    kernels = evidence.kernels_ratio
    yield (
        f"slower kernels explain {'an unknown part' if kernels is None else _part(kernels)} "
        f"of the wait, more compute of any kind {_part(evidence.compute_ratio)}, idle time "
        f"{_part(evidence.idle_ratio)}"
    )


def _part(ratio: float) -> str:
    return format_ratio(min(max(ratio, 0), 1))


def _finding(
    title: str, evidence: str, advice: str, lost_ratio: float, *, is_serious: bool
) -> dict[str, Any]:
    return {
        "code": "straggler",
        "severity": "warning" if is_serious else "info",
        "title": title,
        "evidence": evidence,
        "advice": advice,
        "lost_ratio": lost_ratio,
        "lost_usd": None,
    }
