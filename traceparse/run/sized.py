"""One run among others of other sizes: its devices, and what a mean device-step is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from traceparse.errors import InputError
from traceparse.run.layouts import Layout, layout_of
from traceparse.run.model import num_devices
from traceparse.run.report import Report

__all__ = ["TERMS", "Known", "SizedRun", "sized_runs"]

TERMS: Final = (
    "compute",
    "contention",
    "exposed_transfer",
    "exposed_wait",
    "pipeline_wait",
    "exposed_unsplit",
    "exposed_copy",
    "idle",
)
_CONTENTION = "contention"
_UNSPLIT = "exposed_unsplit"
_COMMUNICATION = ("exposed_transfer", "exposed_wait", "pipeline_wait")
_MOST_UNATTRIBUTED = Fraction(1, 100)  # of kernels' time: more, and FLOP are a lower bound


@dataclass(frozen=True, slots=True)
class SizedRun:
    """One run: its size, and the terms of its mean device-step, which add up to it.

    ``terms_ns`` lacks contention where that is not known of all runs: compute has it then.
    ``flop`` are those that a mean device-step executes, ``None`` where nobody knows them.
    """

    path: str
    num_devices: int
    world_size: int | None
    step_ns: Fraction
    terms_ns: Mapping[str, Fraction]
    flop: Fraction | None
    is_flop_whole: bool
    dtype: str | None
    accelerator: str | None
    basis: str
    is_size_known: bool
    layout: Layout


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of all runs, so that their terms are the same ones."""

    split: bool
    contention: bool


def sized_runs(paths: Sequence[str], reports: Sequence[Report]) -> tuple[list[SizedRun], Known]:
    """Reduce reports to what is compared, the smallest run first, and say what that is.

    Raises
    ------
    InputError
        A run has no time to account for.
    """
    for path, report in zip(paths, reports, strict=True):
        if not report.summary.num_device_steps or not report.summary.times.span_ns:
            raise InputError(f"{path}: no step with any time in it; capture whole steps")
    known = Known(
        split=all(_communication_ns(report) is not None for report in reports),
        contention=all(_contention_ns(report) is not None for report in reports),
    )
    runs = [_sized(path, one, known) for path, one in zip(paths, reports, strict=True)]
    return sorted(runs, key=lambda run: run.num_devices), known


def _sized(path: str, report: Report, known: Known) -> SizedRun:
    summary, info = report.summary, report.run
    unknown_ranks = sum(device.rank is None for device in report.devices)
    ranks = len({device.rank for device in report.devices} - {None}) + unknown_ranks
    flop = (report.utilization or {}).get("executed_flop")
    return SizedRun(
        path=path,
        num_devices=round(num_devices(info.world_size, ranks, len(report.devices))),
        world_size=info.world_size,
        step_ns=Fraction(summary.times.span_ns, summary.num_device_steps),
        terms_ns=_terms_ns(report, known),
        flop=Fraction(flop, summary.num_device_steps) if flop else None,
        is_flop_whole=_is_flop_whole(report),
        dtype=info.reference_dtype,
        accelerator=(info.accelerator or {}).get("id"),
        basis=summary.basis,
        # a lone process without collectives says no world size, and needs none
        is_size_known=info.world_size is not None
        or (len(report.devices) == 1 and not summary.times.comm_ns),
        layout=layout_of(report),
    )


def _terms_ns(report: Report, known: Known) -> dict[str, Fraction]:
    """Take a mean device-step apart: what is not known to be another term stays in its own."""
    times, num = report.summary.times, report.summary.num_device_steps
    told = (_communication_ns(report) if known.split else None) or {}
    terms = dict.fromkeys(TERMS, Fraction(0))
    terms |= {term: Fraction(told.get(term, 0), num) for term in _COMMUNICATION}
    terms[_UNSPLIT] = Fraction(times.exposed_comm_ns, num) - sum(
        terms[term] for term in _COMMUNICATION
    )
    contention_ns = (_contention_ns(report) if known.contention else None) or Fraction(0)
    terms["compute"] = Fraction(times.compute_ns, num) - contention_ns
    terms[_CONTENTION] = contention_ns
    terms["exposed_copy"] = Fraction(times.exposed_copy_ns, num)
    terms["idle"] = Fraction(times.idle_ns, num)
    if not known.contention:
        del terms[_CONTENTION]
    return terms


def _communication_ns(report: Report) -> Mapping[str, int] | None:
    """Return what exposed communication was; where there was none, all of it is known."""
    if not report.summary.times.exposed_comm_ns:
        return {}
    return report.summary.communication_ns


def _contention_ns(report: Report) -> Fraction | None:
    """Return what kernels of a mean device-step take beyond what they would take alone."""
    times = report.summary.times
    if not times.overlap_ns:
        return Fraction(0)
    ratio = (report.scaling_loss or {}).get("contention_ratio")
    if ratio is None:
        return None
    return Fraction(ratio) * times.span_ns / report.summary.num_device_steps


def _is_flop_whole(report: Report) -> bool:
    """Did nearly all kernels run for operators that are recorded, so that FLOP are whole?"""
    total = sum(device.kernels.time_ns for device in report.devices)
    lost = sum(device.kernels.unattributed_time_ns for device in report.devices)
    return lost <= _MOST_UNATTRIBUTED * total
