"""What does a job lose as it grows? Runs of several sizes, and their loss term by term.

Strong scaling keeps the work of all devices together, weak scaling that of each. Efficiency is
t0 n0 / (t n), or t0 / t; one less efficiency is the sum of the terms, exactly: each is what a
mean device-step spends on it beyond what it would, did the base point scale ideally, as a share
of the step (report contract, section 5, "Between runs").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from traceparse.errors import InputError, Note, UsageError
from traceparse.run.report import SCHEMA_VERSION, Report
from traceparse.run.scaling_notes import about_mode, about_runs, about_terms
from traceparse.run.sized import SizedRun, sized_runs
from traceparse.run.work_kept import MODES, Mode, kept, work_ratio

__all__ = ["MODES", "Mode", "ModeSource", "ScaledRun", "Scaling", "require_runs", "scaling_of"]

ModeSource: TypeAlias = Literal["given", "counted", "assumed"]


@dataclass(frozen=True, slots=True)
class ScaledRun:
    """One run beside the base point; ``terms`` add up to 1 - ``efficiency``.

    ``num_devices`` is what it is scaled by (an addition to the contract): ``world_size`` times
    the devices of a rank, or the devices that have a trace where no trace says the former.
    ``work_ratio`` (another) is the share of the FLOP that the mode asks of it that a
    device-step executes: 1 where the runs can be compared, ``None`` where nobody knows.
    """

    path: str
    world_size: int | None
    num_devices: int
    step_ns: int
    speedup: float
    efficiency: float
    work_ratio: float | None
    terms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Scaling:
    """Runs by size, the first being the base point: field ``scaling`` of the contract.

    ``mode_source`` (an addition to it) says whether the user gave the mode, or the FLOP that
    were counted tell it, or neither, so that strong is an assumption.

    Examples
    --------
    >>> curve = traceparse.scaling(["n4/", "n16/"])
    >>> curve.mode_source
    'counted'
    >>> loss = 1 - curve.runs[1].efficiency
    >>> abs(loss - sum(curve.runs[1].terms.values())) < 1e-12
    True
    """

    generator: Mapping[str, str]
    mode: Mode
    mode_source: ModeSource
    runs: tuple[ScaledRun, ...]
    notes: tuple[Note, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``--json`` prints: plain dicts, lists, numbers, text."""
        return {
            "schema_version": SCHEMA_VERSION,
            "generator": dict(self.generator),
            "scaling": {
                "mode": self.mode,
                "mode_source": self.mode_source,
                "runs": [asdict(run) for run in self.runs],
            },
            "notes": [asdict(note) for note in self.notes],
        }


def require_runs(num_runs: int, mode: str | None) -> None:
    """Refuse what cannot be compared, before anything is read.

    Raises
    ------
    UsageError
        There are fewer than two runs, or the mode is none.
    """
    if mode is not None and mode not in MODES:
        raise UsageError(f"--mode {mode!r}: give one of {', '.join(MODES)}")
    if num_runs < 2:
        raise UsageError(
            "scaling needs two runs at least, of different sizes; give the folder of each"
        )


def scaling_of(
    paths: Sequence[str],
    reports: Sequence[Report],
    mode: str | None = None,
    *,
    notes: Iterable[Note] = (),
) -> Scaling:
    """Compare runs of one job at several sizes.

    Parameters
    ----------
    paths
        What the runs are called.
    reports
        What each of them did; in any order of size.
    mode
        ``"strong"`` or ``"weak"``. By default what the FLOP that were counted tell, and strong
        where they tell neither.
    notes
        What is already known to be wrong with a run.

    Raises
    ------
    UsageError
        There are fewer than two runs, or the mode is none.
    InputError
        A run has no time to account for, two are of one size, or only some have steps.
    """
    require_runs(len(paths), mode)
    runs, known = sized_runs(paths, reports)
    _require_comparable(runs)
    used, source = _mode_of(runs, mode)
    rows = tuple(_row(run, runs[0], used) for run in runs)
    return Scaling(
        generator=reports[0].generator,
        mode=used,
        mode_source=source,
        runs=rows,
        notes=(
            *notes,
            *about_mode(used, is_assumed=source == "assumed"),
            *about_runs(runs, used),
            *about_terms(runs, known),
        ),
    )


def _mode_of(runs: Sequence[SizedRun], asked: str | None) -> tuple[Mode, ModeSource]:
    """Choose the mode: the user's, else the one that the runs whose FLOP are known agree on."""
    for mode in MODES:
        if mode == asked:
            return mode, "given"
    told = {kept(run, runs[0]) for run in runs[1:]} - {None}
    agreed = told.pop() if len(told) == 1 else None
    return ("strong", "assumed") if agreed is None else (agreed, "counted")


def _require_comparable(runs: Sequence[SizedRun]) -> None:
    for one, other in pairwise(runs):
        if one.num_devices == other.num_devices:
            raise InputError(
                f"{other.path}: on as many devices as {one.path}, {one.num_devices:,}; "
                f"give one run of each size: its folder, or a glob in quotes"
            )
    marked = [run.path for run in runs if run.basis != "windows"]
    unmarked = [run.path for run in runs if run.basis == "windows"]
    if marked and unmarked:
        raise InputError(
            f"{unmarked[0]}: no step markers, so its whole window would be compared with one "
            f"step of {marked[0]}; capture it with prof.step() after each step"
        )


def _row(run: SizedRun, base: SizedRun, mode: Mode) -> ScaledRun:
    growth = Fraction(run.num_devices, base.num_devices)
    gain = base.step_ns / run.step_ns
    ideal = 1 / growth if mode == "strong" else Fraction(1)
    work = work_ratio(run, base, mode)
    excess = {term: own - base.terms_ns[term] * ideal for term, own in run.terms_ns.items()}
    return ScaledRun(
        path=run.path,
        world_size=run.world_size,
        num_devices=run.num_devices,
        step_ns=round(run.step_ns),
        speedup=float(gain if mode == "strong" else gain * growth),
        efficiency=float(gain * ideal),
        work_ratio=None if work is None else float(work),
        terms={term: float(ns / run.step_ns) for term, ns in excess.items()},
    )
