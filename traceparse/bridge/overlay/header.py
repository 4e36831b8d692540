"""What the file says of itself: what readers of traces look for, and what was drawn how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import traceparse
from traceparse.bridge.overlay.job import Job
from traceparse.bridge.overlay.plan import DETAILS_NS
from traceparse.units import rank_ranges

__all__ = ["doubts", "fields", "left_out"]


def fields(job: Job, base_ns: int, num_bins: int) -> dict[str, Any]:
    """Return all top-level keys but the events."""
    report = job.assembled.report
    told: dict[str, Any] = {
        name: value
        for name, value in (
            ("backend", report.run.backend),
            ("world_size", report.run.world_size),
            ("rank", job.ranks[0].devices[0].part.rank if len(job.ranks) == 1 else None),
        )
        if value is not None
    }
    return {
        "schemaVersion": 1,
        "displayTimeUnit": "ns",
        "baseTimeNanoseconds": base_ns,
        "deviceProperties": list(_properties(job)),
        "distributedInfo": told,
        "traceparse_overlay": _metadata(job, num_bins),
    }


def left_out(job: Job) -> Iterator[str]:
    """Say what is not in the file that was asked for, so that it stays under its size."""
    choice, best = job.plan.choice, job.plan.best
    if choice is None:
        return
    yield from choice.left_out(best)
    if choice.window != best.window:
        numbers = job.steps.numbers[max(choice.window.first - 1, 0) : choice.window.last]
        yield f"all outside of step {rank_ranges(numbers)}"


def doubts(job: Job) -> Iterator[str]:
    """Say what of the file is not as it seems."""
    clock = job.assembled.report.clock
    if len(job.ranks) > 1 and not (clock and clock["aligned"]):
        yield (
            "clocks of ranks are not aligned, so times of different ranks cannot be compared"
        )


def _properties(job: Job) -> Iterator[Mapping[str, Any]]:
    """Yield what traces say of their devices, by the numbers that these have here."""
    for device in job.devices:
        told = device.part.digest.header.devices
        own = [one for one in told if str(one.get("id")) == device.name]
        yield from ({**one, "id": device.number} for one in own[:1])


def _metadata(job: Job, num_bins: int) -> dict[str, Any]:
    choice, clock = job.plan.choice, job.assembled.report.clock
    return {
        "version": traceparse.__version__,
        "clock": (
            {**clock, "applied": "offsets and drift are taken from all times"}
            if clock
            else {"aligned": False, "applied": "nothing: no rank met another"}
        ),
        "devices": [
            {"pid": one.pid, "rank": one.part.rank, "device": one.name} for one in job.devices
        ],
        "hosts": [{"pid": one.host_pid, "rank": one.devices[0].part.rank} for one in job.ranks],
        "layers": sorted(choice.layers) if choice is not None else [],
        "merged_below_ns": 0 if choice is None else DETAILS_NS[choice.detail],
        "counters": (
            f"about {num_bins} bins a device, a whole number in each step; a value is that of "
            f"the bin that begins there. FLOP of an operator are spread over its first kernel, "
            f"on a cpu over the step; GB/s are the bytes of matched collectives by the time "
            f"that they transfer"
        ),
        "flows": (
            "collective: from the rank that came last to the others, or in order of start "
            "where clocks do not agree; ac2g: from a launch to what it launched"
        ),
        "left_out": list(left_out(job)),
        "doubts": list(doubts(job)),
    }
