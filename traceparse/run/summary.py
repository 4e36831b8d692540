"""The run in one line and one sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Final

from traceparse.rank import PART_NAMES, Times
from traceparse.run.basis import Basis
from traceparse.run.bound import Bound, By
from traceparse.run.report import DeviceReport, StepReport, Summary
from traceparse.units import format_ns, format_number_of, format_percent, format_ratio

__all__ = ["judged", "summarize"]

_SPENT_ON: Final[dict[By, str]] = {
    "communication": "communication beside which nothing computes takes",
    "host": "waiting for hosts takes",
    "memory": "kernels that wait for memory take",
    "compute": "matrix products and the like take",
}


def summarize(devices: Sequence[DeviceReport], basis: Basis) -> Summary:
    """Add up the device-steps of a basis, and say what they were spent on."""
    chosen = [
        device.steps[place]
        for device, places in zip(devices, basis.places, strict=True)
        for place in places
    ]
    times = _add_up([step.times for step in chosen if step.times])
    detail = _detail(devices, chosen, times)
    return Summary(
        verdict=detail,
        detail=detail,
        basis=basis.name,
        num_device_steps=len(chosen),
        times=times,
        compute_ratio=_ratio(times.compute_ns, times.span_ns),
        exposed_comm_ratio=_ratio(times.exposed_comm_ns, times.span_ns),
        exposed_copy_ratio=_ratio(times.exposed_copy_ns, times.span_ns),
        idle_ratio=_ratio(times.idle_ns, times.span_ns),
    )


def judged(summary: Summary, bound: Bound, hfu: float | None) -> Summary:
    """Let the verdict name what bounds a run; where that is unknown, it stays as it is."""
    found = replace(summary, bound={"by": bound.by, "ratio": bound.ratio})
    if bound.by is None:
        return found
    unit = "device-windows" if summary.basis == "windows" else "device-steps"
    verdict = (
        f"{bound.by.capitalize()}-bound: {_SPENT_ON[bound.by]} {format_ratio(bound.ratio)} of "
        f"the {unit}"
    )
    if hfu is not None:
        verdict += f"; HFU {format_ratio(hfu)}"
    return replace(found, verdict=verdict)


def _add_up(parts: Sequence[Times]) -> Times:
    sums = {
        field.name: sum(getattr(part, field.name) for part in parts) for field in fields(Times)
    }
    sums["start_ns"] = min((part.start_ns for part in parts), default=0)
    sums["end_ns"] = max((part.end_ns for part in parts), default=0)
    return Times(**sums)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _detail(devices: Sequence[DeviceReport], steps: Sequence[StepReport], times: Times) -> str:
    """Name the largest part of the time first, then the others."""
    if not times.span_ns:
        return "no time to account for: every step is empty"
    shares = {
        words: format_percent(getattr(times, term), times.span_ns)
        for term, words in PART_NAMES.items()
    }
    largest = max(PART_NAMES, key=lambda term: getattr(times, term))
    first = PART_NAMES[largest]
    others = ", ".join(f"{words} {share}" for words, share in shares.items() if words != first)
    unit = "step" if any(step.step is not None for step in steps) else "window"
    counts = [format_number_of(len(steps), f"device-{unit}")]
    ranks = {device.rank for device in devices}
    if None not in ranks:
        counts.insert(0, format_number_of(len(ranks), "rank"))
    return (
        f"{first.capitalize()} takes {shares[first]} of a mean {unit} of "
        f"{format_ns(times.span_ns // len(steps))}; {others} ({', '.join(counts)})"
    )
