"""Stages of a pipeline that do not have the same to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from traceparse.run.across import PEERS
from traceparse.run.findings.finding import Finding, finding
from traceparse.run.findings.view import View
from traceparse.units import format_duration, format_ratio

__all__ = ["pipeline_imbalance"]

_LEAST_EXCESS: Final = 1.10  # of the mean: chips alone are 5 % apart
_LEAST: Final = 0.01  # of the device-steps, both in the wait and in what is won
_SERIOUS: Final = 0.05
_SLOW: Final = "slow compute"


def pipeline_imbalance(view: View) -> Iterator[Finding]:
    """Find ranks of a pipeline that compute longer than its mean rank.

    Every micro-batch goes at the pace of the slowest stage, so that even stages would win
    back, at most, how much longer its ranks compute than the mean, and no more than is waited
    for in send/recv. A rank whose kernels are slower than others' is not meant:
    its stage may have no more to do.
    """
    members = {
        rank for row in view.collectives if row["collective"] == PEERS for rank in row["ranks"]
    }
    own = {rank: ns for rank, ns in view.compute_ns_by_rank.items() if rank in members}
    waited = view.terms(["pipeline_wait"]).get("pipeline_wait", 0.0)
    if len(own) < 2 or waited < _LEAST:
        return
    most = max(own, key=lambda rank: (own[rank], -rank))
    mean = sum(own.values()) / len(own)
    step_ns = view.mean_step_ns
    if not mean or not step_ns or own[most] < _LEAST_EXCESS * mean or _is_slow(view, most):
        return
    lost = min(float((own[most] - mean) / step_ns), waited)
    if lost < _LEAST:
        return
    work = ""
    flop = {rank: count for rank, count in view.flop_by_rank.items() if rank in own}
    if len(flop) == len(own) and (total := sum(flop.values())):
        work = f", and {flop[most] * len(flop) / total:.2f} times its FLOP"
    claimed = view.straggler_ratio()
    yield finding(
        "pipeline_imbalance",
        "warning" if lost >= _SERIOUS else "info",
        f"stages of the pipeline are uneven: rank {most} computes "
        f"{float(own[most] / mean):.2f} times as long as the mean",
        f"{format_duration(round(own[most]))} of compute a step, where the mean of "
        f"{len(own)} ranks is {format_duration(round(mean))}{work}; waiting in send/recv is "
        f"{format_ratio(waited)} of the {view.unit}, the bubble of an even pipeline included"
        + (f"; findings `straggler` claim {format_ratio(claimed)}" if claimed else ""),
        "move layers from that stage to others (embedding and loss count as layers), or more, "
        "smaller stages a rank (ScheduleInterleaved1F1B, ScheduleZBVZeroBubble)",
        lost_ratio=lost,
    )


def _is_slow(view: View, rank: int) -> bool:
    title = f"rank {rank} is waited for: {_SLOW}"
    return any(one["title"] == title for one in view.stragglers)
