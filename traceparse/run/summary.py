"""The run in one line and one sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from traceparse.errors import Note
from traceparse.rank import PART_NAMES, Times
from traceparse.run.report import DeviceReport, StepReport, Summary
from traceparse.units import format_ns, format_number_of, format_percent

__all__ = ["summarize"]


def summarize(devices: Sequence[DeviceReport]) -> tuple[Summary, list[Note]]:
    """Add up the device-steps that can be compared, and say what they were spent on.

    Those are the steps that are not open-ended and that every rank has; if there is none, all
    of them, with a note (report contract, section 4).
    """
    everywhere = _on_every_rank(devices)
    steps = [step for device in devices for step in device.steps if step.times]
    complete = [step for step in steps if not step.open_ended and step.step in everywhere]
    chosen = complete or steps
    notes = []
    if steps and not complete:
        notes.append(
            Note(
                "no_complete_step",
                "no step is complete on every rank, so the summary takes all steps, also the "
                "last one, whose end nothing marks",
            )
        )
    if not complete:
        basis = "all_steps"
    else:
        basis = "windows" if all(step.step is None for step in chosen) else "complete_steps"
    times = _add_up([step.times for step in chosen if step.times])
    return (
        Summary(
            verdict=_verdict(devices, chosen, times),
            basis=basis,
            num_device_steps=len(chosen),
            times=times,
            compute_ratio=_ratio(times.compute_ns, times.span_ns),
            exposed_comm_ratio=_ratio(times.exposed_comm_ns, times.span_ns),
            exposed_copy_ratio=_ratio(times.exposed_copy_ns, times.span_ns),
            idle_ratio=_ratio(times.idle_ns, times.span_ns),
        ),
        notes,
    )


def _on_every_rank(devices: Sequence[DeviceReport]) -> set[int | None]:
    """Which steps do all ranks have? Traces of unknown rank count as one each."""
    ranks: dict[object, set[int | None]] = {}
    for index, device in enumerate(devices):
        rank = f"unknown {index}" if device.rank is None else device.rank
        found = ranks.setdefault(rank, set())
        found.update(step.step for step in device.steps if step.times)
    return set.intersection(*ranks.values()) if ranks else set()


def _add_up(parts: Sequence[Times]) -> Times:
    sums = {
        field.name: sum(getattr(part, field.name) for part in parts) for field in fields(Times)
    }
    sums["start_ns"] = min((part.start_ns for part in parts), default=0)
    sums["end_ns"] = max((part.end_ns for part in parts), default=0)
    return Times(**sums)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _verdict(devices: Sequence[DeviceReport], steps: Sequence[StepReport], times: Times) -> str:
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
