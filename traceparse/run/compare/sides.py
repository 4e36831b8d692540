"""One side of a comparison: the runs of a job, and what their device-steps consist of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from traceparse.run.basis import choose
from traceparse.run.compare.bootstrap import Units
from traceparse.run.report import DeviceReport, Report, StepReport
from traceparse.run.sized import TERMS, Known, SizedRun

__all__ = ["LEAST_UNITS", "Side", "UnitKind", "known_of", "side_of"]

UnitKind: TypeAlias = Literal["step", "run"]
# fewer do not tell chance from change; as many runs are units themselves
LEAST_UNITS: Final[Mapping[UnitKind, int]] = {"step": 4, "run": 3}
_SPLIT: Final = ("exposed_transfer", "exposed_wait", "pipeline_wait")
_Sums: TypeAlias = dict[str, int]


@dataclass(frozen=True, slots=True)
class Side:
    """Runs of one job.

    ``units`` has, of each step (or of each run, where there are three and more), the span of
    its device-steps and their terms, added up; ``by_rank`` those of each rank. The terms are
    ``terms``, and add up to the span.
    """

    runs: tuple[SizedRun, ...]
    reports: tuple[Report, ...]
    terms: tuple[str, ...]
    unit: UnitKind
    units: tuple[tuple[int, Mapping[str, int]], ...]
    by_rank: Mapping[int, tuple[int, Mapping[str, int]]]

    @property
    def num_device_steps(self) -> int:
        """How many device-steps its means are of."""
        return sum(num for num, _ in self.units)

    @property
    def has_enough(self) -> bool:
        """Are there as many units as it takes to tell chance from change?"""
        return len(self.units) >= LEAST_UNITS[self.unit]

    @property
    def num_steps(self) -> int:
        """How many steps of runs it has, whole ones of all ranks."""
        return sum(len({key for key, _ in _chosen(report)}) for report in self.reports)

    @property
    def num_recorded(self) -> tuple[Fraction, int]:
        """How many steps, and device-steps, do its traces have, whichever are compared?"""
        nums = [_recorded(report) for report in self.reports]
        return sum((Fraction(sum(own), len(own)) for own in nums), Fraction(0)), sum(
            map(sum, nums)
        )

    def mean_ns(self, name: str) -> Fraction:
        """Return the mean device-step (``span``), or one of its terms."""
        return Fraction(sum(own[name] for _, own in self.units), self.num_device_steps)

    def drawn(self) -> Units:
        """Return what bootstrap draws from: the span, then the terms."""
        names = ("span", *self.terms)
        sums = [[float(own[name]) for name in names] for _, own in self.units]
        return Units(np.array(sums), np.array([float(num) for num, _ in self.units]))


def _recorded(report: Report) -> list[int]:
    """Count the steps in the trace of each device."""
    return [
        sum(step.times is not None for step in device.steps)
        if device.num_steps is None  # of a report from before they were counted
        else device.num_steps
        for device in report.devices
    ]


def known_of(reports: Sequence[Report]) -> Known:
    """Say what is known of every step of all runs, so that their terms are the same ones."""
    steps = [step for report in reports for _, (_, step) in _chosen(report)]
    return Known(
        split=all(_communication(step) is not None for step in steps),
        contention=all(_contention_ns(step) is not None for step in steps),
    )


def side_of(runs: Sequence[SizedRun], reports: Sequence[Report], known: Known) -> Side:
    """Put the runs of one job together."""
    unit: UnitKind = "run" if len(reports) >= LEAST_UNITS["run"] else "step"
    units: dict[tuple[int, object], tuple[int, _Sums]] = defaultdict(lambda: (0, {}))
    ranks: dict[int, tuple[int, _Sums]] = defaultdict(lambda: (0, {}))
    for number, report in enumerate(reports):
        for key, (device, step) in _chosen(report):
            own = _terms(step, known)
            where = (number, key if unit == "step" else None)
            units[where] = _plus(units[where], own)
            if device.rank is not None:
                ranks[device.rank] = _plus(ranks[device.rank], own)
    names = tuple(term for term in TERMS if known.contention or term != "contention")
    return Side(tuple(runs), tuple(reports), names, unit, tuple(units.values()), dict(ranks))


def _chosen(report: Report) -> Iterator[tuple[object, tuple[DeviceReport, StepReport]]]:
    """Yield the device-steps that a report is judged by, each with the number of its step."""
    basis = choose(report.devices)
    for device, places in zip(report.devices, basis.places, strict=True):
        for place in places:
            step = device.steps[place]
            yield step.step, (device, step)


def _plus(one: tuple[int, _Sums], own: _Sums) -> tuple[int, _Sums]:
    num, sums = one
    return num + 1, {name: sums.get(name, 0) + ns for name, ns in own.items()}


def _terms(step: StepReport, known: Known) -> _Sums:
    """Take a device-step apart: what is not known to be another term stays in its own."""
    times = step.times
    assert times is not None  # or it would not have been chosen
    told = (_communication(step) if known.split else None) or {}
    terms: _Sums = dict.fromkeys(TERMS, 0)
    terms |= {term: told.get(term, 0) for term in _SPLIT}
    terms["exposed_unsplit"] = times.exposed_comm_ns - sum(terms[term] for term in _SPLIT)
    contention_ns = (_contention_ns(step) if known.contention else None) or 0
    terms["compute"] = times.compute_ns - contention_ns
    terms["contention"] = contention_ns
    terms["exposed_copy"] = times.exposed_copy_ns
    terms["idle"] = times.idle_ns
    return {"span": times.span_ns, **terms}


def _communication(step: StepReport) -> Mapping[str, Any] | None:
    """Return what exposed communication was; where there was none, all of it is known."""
    if step.times is not None and not step.times.exposed_comm_ns:
        return {}
    return step.communication_ns


def _contention_ns(step: StepReport) -> int | None:
    if step.times is not None and not step.times.overlap_ns:
        return 0
    return step.contention_ns
