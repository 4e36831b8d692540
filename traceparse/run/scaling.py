"""What does a job lose as it grows? Runs of several sizes, and their loss term by term.

Strong scaling keeps the work of all devices together, weak scaling that of each. Efficiency is
t0 n0 / (t n), or t0 / t; one less efficiency is the sum of the terms, exactly: each is what a
mean device-step takes longer than at the base point, scaled as the work is (report contract,
section 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias, get_args

from traceparse.errors import InputError, Note, UsageError
from traceparse.run.report import Report
from traceparse.units import format_ratio

__all__ = ["MODES", "TERMS", "Mode", "Scaling", "scaling_of"]

Mode: TypeAlias = Literal["strong", "weak"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
TERMS: Final = (
    "compute",
    "exposed_transfer",
    "exposed_wait",
    "pipeline_wait",
    "exposed_unsplit",
    "exposed_copy",
    "idle",
)
_TOLERANCE = Fraction(1, 100)  # of work: data loaders round


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: its size, and the terms of its mean device-step in ns."""

    path: str
    num_devices: int
    terms_ns: dict[str, Fraction]
    flop: Fraction | None  # of a mean device-step
    dtype: str | None

    @property
    def step_ns(self) -> Fraction:
        """The mean device-step: its terms are all of it."""
        return sum(self.terms_ns.values(), Fraction(0))


@dataclass(frozen=True, slots=True)
class Scaling:
    """Runs by size, the first being the base point: field ``scaling`` of the contract."""

    mode: Mode
    runs: tuple[dict[str, Any], ...]
    notes: tuple[Note, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and text."""
        notes = [
            {"code": note.code, "message": note.message, "rank": note.rank, "file": note.file}
            for note in self.notes
        ]
        return {"mode": self.mode, "runs": list(self.runs), "notes": notes}


def scaling_of(paths: Sequence[str], reports: Sequence[Report], mode: str) -> Scaling:
    """Compare runs of one job at several sizes.

    Raises
    ------
    UsageError
        There are fewer than two, or the mode is none.
    InputError
        A run has no time to account for, two have one size, or nobody knows a size.
    """
    if mode not in MODES:
        raise UsageError(f"--mode {mode!r}: there are {' and '.join(MODES)}")
    if len(paths) < 2:
        raise UsageError("scaling needs two runs at least: the first by size is the base point")
    is_split = all(report.summary.communication_ns is not None for report in reports)
    runs = sorted(
        (_run(path, one, is_split=is_split) for path, one in zip(paths, reports, strict=True)),
        key=lambda run: run.num_devices,
    )
    base = runs[0]
    for one, other in zip(runs, runs[1:], strict=False):
        if one.num_devices == other.num_devices:
            raise InputError(
                f"{other.path}: as large as {one.path}, {one.num_devices} devices; give runs "
                f"of different sizes, or compare these with `traceparse compare`"
            )
    is_strong = mode == "strong"
    return Scaling(
        mode="strong" if is_strong else "weak",
        runs=tuple(_row(run, base, is_strong=is_strong) for run in runs),
        notes=tuple(_about(runs, is_strong=is_strong, is_split=is_split)),
    )


def _run(path: str, report: Report, *, is_split: bool) -> _Run:
    summary, run = report.summary, report.run
    num, times = summary.num_device_steps, summary.times
    if not num or not times.span_ns:
        raise InputError(f"{path}: no step with any time in it; capture whole steps")
    num_devices = run.world_size or len(report.devices)
    told = summary.communication_ns if is_split else None
    split = told or {
        "exposed_transfer": 0,
        "exposed_wait": 0,
        "pipeline_wait": 0,
        "exposed_unsplit": times.exposed_comm_ns,
    }
    sums = {
        "compute": times.compute_ns,
        **split,
        "exposed_copy": times.exposed_copy_ns,
        "idle": times.idle_ns,
    }
    flop = (report.utilization or {}).get("executed_flop")
    return _Run(
        path,
        num_devices,
        {term: Fraction(sums[term], num) for term in TERMS},
        None if flop is None else Fraction(flop, num),
        run.reference_dtype,
    )


def _row(run: _Run, base: _Run, *, is_strong: bool) -> dict[str, Any]:
    growth = Fraction(run.num_devices, base.num_devices)
    gain = base.step_ns / run.step_ns
    ideal = 1 / growth if is_strong else Fraction(1)
    return {
        "path": run.path,
        "world_size": run.num_devices,
        "step_ns": round(run.step_ns),
        "speedup": float(gain if is_strong else gain * growth),
        "efficiency": float(gain / growth if is_strong else gain),
        "terms": {
            term: float((run.terms_ns[term] - base.terms_ns[term] * ideal) / run.step_ns)
            for term in TERMS
        },
    }


def _about(runs: Sequence[_Run], *, is_strong: bool, is_split: bool) -> Iterator[Note]:
    base = runs[0]
    if not is_split:
        yield Note(
            "communication_unsplit",
            "waiting and transfer cannot be told apart in all of the runs, so all of exposed "
            "communication is exposed_unsplit",
        )
    for run in runs[1:]:
        if run.flop is None or not base.flop:
            yield Note(
                "work_not_compared",
                f"{run.path}: nobody knows whether it does the same work as {base.path}, as "
                f"shapes of operators are not in both",
            )
            continue
        ideal = base.flop * (Fraction(base.num_devices, run.num_devices) if is_strong else 1)
        if abs(run.flop - ideal) > _TOLERANCE * ideal:
            yield Note(
                "work_differs",
                f"{run.path}: a device-step executes {format_ratio(float(run.flop / ideal))} "
                f"of the FLOP that it would in {'strong' if is_strong else 'weak'} scaling "
                f"from {base.path}: another batch, model or layout, or recomputation, so "
                f"efficiency compares different work",
            )
        if run.dtype != base.dtype:
            yield Note(
                "dtype_differs",
                f"{run.path}: most of its FLOP are in {run.dtype}, those of {base.path} in "
                f"{base.dtype}",
            )
