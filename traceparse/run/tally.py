"""Sums over device-steps, in whole numbers: what utilization of any of them follows from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeAlias

from traceparse.rank import DtypeWork, StepTimes
from traceparse.run.peaks import Peaks

__all__ = [
    "NS_PER_S",
    "SPLIT_TERMS",
    "Kind",
    "Split",
    "Tally",
    "add_up",
    "ideal_ns",
    "tally_of",
]

NS_PER_S: Final = 1_000_000_000

Kind: TypeAlias = tuple[str, Peaks]
Split: TypeAlias = tuple[int, int, int, int]
SPLIT_TERMS: Final = ("exposed_transfer", "exposed_wait", "pipeline_wait", "exposed_unsplit")


@dataclass(frozen=True, slots=True)
class Tally:
    """Device-steps added up. ``num_steps`` counts them by the peaks of their devices.

    ``works`` has what ran by data type and peaks; it and ``counted_ns`` are ``None`` where a
    trace among them does not tell. ``split`` is what exposed communication was, as
    :meth:`traceparse.run.exposure.Exposure.within` has it; ``None`` where that is unknown.
    """

    span_ns: int = 0
    compute_ns: int = 0
    exposed_comm_ns: int = 0
    exposed_copy_ns: int = 0
    idle_ns: int = 0
    counted_ns: int | None = 0
    works: Mapping[Kind, DtypeWork] | None = field(default_factory=dict)
    num_steps: Mapping[Peaks, int] = field(default_factory=dict)
    split: Split | None = (0, 0, 0, 0)
    twice_contention_ns: int = 0


def tally_of(step: StepTimes, peaks: Peaks, split: Split | None) -> Tally:
    """Return what one step on one device adds; without an interval it has no time."""
    times, work = step.times, step.work
    works = None
    if work is not None:
        works = {(each.dtype, peaks): each for each in work.by_dtype}
    counted_ns = work.counted_ns if work is not None else None
    if times is None:
        return Tally(counted_ns=counted_ns, works=works, num_steps={peaks: 1}, split=split)
    return Tally(
        span_ns=times.span_ns,
        compute_ns=times.compute_ns,
        exposed_comm_ns=times.exposed_comm_ns,
        exposed_copy_ns=times.exposed_copy_ns,
        idle_ns=times.idle_ns,
        counted_ns=counted_ns,
        works=works,
        num_steps={peaks: 1},
        split=split,
        twice_contention_ns=step.twice_contention_ns,
    )


def add_up(tallies: Iterable[Tally]) -> Tally:
    """Add tallies; what one of them does not tell, the sum does not."""
    parts = list(tallies)
    counted = [part.counted_ns for part in parts if part.counted_ns is not None]
    num_steps: dict[Peaks, int] = {}
    for part in parts:
        for peaks, num in part.num_steps.items():
            num_steps[peaks] = num_steps.get(peaks, 0) + num
    return Tally(
        span_ns=sum(part.span_ns for part in parts),
        compute_ns=sum(part.compute_ns for part in parts),
        exposed_comm_ns=sum(part.exposed_comm_ns for part in parts),
        exposed_copy_ns=sum(part.exposed_copy_ns for part in parts),
        idle_ns=sum(part.idle_ns for part in parts),
        counted_ns=sum(counted) if len(counted) == len(parts) else None,
        works=_works(parts),
        num_steps=num_steps,
        split=_split(parts),
        twice_contention_ns=sum(part.twice_contention_ns for part in parts),
    )


def _split(parts: Sequence[Tally]) -> Split | None:
    told = [part.split for part in parts if part.split is not None]
    if len(told) < len(parts):
        return None
    transfer, wait, pipeline, unsplit = (sum(one[term] for one in told) for term in range(4))
    return transfer, wait, pipeline, unsplit


def _works(parts: Iterable[Tally]) -> Mapping[Kind, DtypeWork] | None:
    works: dict[Kind, DtypeWork] = {}
    for part in parts:
        if part.works is None:
            return None
        for kind, work in part.works.items():
            works[kind] = _sum(works[kind], work) if kind in works else work
    return works


def _sum(one: DtypeWork, other: DtypeWork) -> DtypeWork:
    return DtypeWork(
        dtype=one.dtype,
        flop=one.flop + other.flop,
        recompute_flop=one.recompute_flop + other.recompute_flop,
        lowest_flop=one.lowest_flop + other.lowest_flop,
        highest_flop=one.highest_flop + other.highest_flop,
        maybe_tf32_flop=one.maybe_tf32_flop + other.maybe_tf32_flop,
    )


def ideal_ns(
    works: Mapping[Kind, DtypeWork] | None,
    flop_of: Callable[[DtypeWork], int],
    rates_of: Callable[[Peaks], Mapping[str, float]] = lambda peaks: peaks.flop_per_s,
) -> Fraction | None:
    """How long would devices at these rates take? ``None`` where one of them is not known."""
    if works is None:
        return None
    total = Fraction(0)
    for (dtype, peaks), work in works.items():
        flop = flop_of(work)
        rate = rates_of(peaks).get(dtype)
        if flop and rate is None:
            return None
        if flop and rate is not None:
            total += Fraction(flop * NS_PER_S) / Fraction(rate)
    return total
