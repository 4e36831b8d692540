"""Doubts about steps: marks that are missing, repeated, overlapping or empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from traceparse.rank.steps import Marker
from traceparse.rank.times import DeviceDigest
from traceparse.units import format_number_of, number_ranges, rank_ranges

__all__ = ["about_steps"]


def about_steps(
    steps: Sequence[Marker], devices: Sequence[DeviceDigest]
) -> Iterator[tuple[str, str]]:
    """Say what is odd about the steps of a trace: codes and messages."""
    if not steps:
        yield "no_step_markers", "no ProfilerStep marks: the whole window counts as one step"
    if any(one.end_ns > other.start_ns for one, other in pairwise(steps)):
        yield "steps_overlap", "ProfilerStep marks overlap: work in two of them belongs to both"
    yield from _about_numbers(Counter(mark.step for mark in steps if mark.step is not None))
    for device in devices:
        empty = [step.name or "a step" for step in device.steps if step.times is None]
        if empty:
            yield (
                "step_without_work",
                f"{_some(empty)} launched nothing on device {device.device}: no interval",
            )


def _about_numbers(marks: Counter[int]) -> Iterator[tuple[str, str]]:
    numbers = sorted(marks)
    # gaps stay ranges: a file may claim any two numbers of eighteen digits
    gaps = [range(one + 1, other) for one, other in pairwise(numbers) if other > one + 1]
    if gaps:
        yield (
            "steps_missing",
            f"{format_number_of(sum(map(len, gaps)), 'step')} missing between "
            f"ProfilerStep#{numbers[0]} and #{numbers[-1]} ({number_ranges(gaps)}): the step "
            f"before a gap lasts until the next one marked, so its times take in what is "
            f"missing",
        )
    twice = [number for number in numbers if marks[number] > 1]
    if twice:
        yield (
            "steps_repeated",
            f"{format_number_of(len(twice), 'step number')} marked more than once "
            f"({rank_ranges(twice)}): every mark counts as a step of its own",
        )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
