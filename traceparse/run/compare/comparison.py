"""What changed between two runs, or two groups of runs, of a job: term by term, and where.

The terms are changes of the mean device-step, and add up to that of the whole, nanosecond for
nanosecond. Whether they are more than chance is tested over steps, or runs
(:mod:`traceparse.run.compare.bootstrap`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from traceparse.errors import InputError, Note, UsageError
from traceparse.run.compare.bootstrap import LEVEL, NUM_RESAMPLES, Significance, significance_of
from traceparse.run.compare.collectives import collectives_of
from traceparse.run.compare.notes import about_rows, about_sides, about_units
from traceparse.run.compare.operators import operators_of
from traceparse.run.compare.ranks import rank_of, ranks_of
from traceparse.run.compare.rows import shared_out
from traceparse.run.compare.sides import Side, known_of, side_of
from traceparse.run.report import SCHEMA_VERSION, Report
from traceparse.run.sized import sized_runs

__all__ = ["Comparison", "SideSummary", "Verdict", "compare_of", "require_sides"]

Verdict: TypeAlias = Literal["slower", "faster", "no difference", "shifted", "unknown"]


@dataclass(frozen=True, slots=True)
class SideSummary:
    """One side: SUMMARY of the contract. ``terms_ns`` are of the mean device-step.

    ``hfu`` and ``mfu`` are those of a run alone; ``usd_per_step`` is the mean of runs, where a
    price was given.
    """

    paths: tuple[str, ...]
    num_runs: int
    world_size: int | None
    num_devices: int
    num_steps: int
    num_device_steps: int
    basis: str
    step_ns: int
    terms_ns: Mapping[str, int]
    executed_flop: float | None
    hfu: float | None
    mfu: float | None
    accelerator: str | None
    usd_per_step: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides and what changed between them: field ``compare`` of the contract.

    ``verdict`` (an addition to it) is ``slower`` or ``faster`` where the interval of a step
    holds no zero; ``no difference`` where it does, and no term changed significantly;
    ``shifted`` where it does, and a term did; ``unknown`` where there are too few steps to
    tell. ``rank`` (another) is the one rank that it comes from, if it is one; ``ranks`` how
    much longer a mean step of each became.

    Examples
    --------
    >>> diff = traceparse.compare("base/", "base/")
    >>> diff.verdict, diff.rank
    ('no difference', None)
    >>> diff.base.step_ns, diff.base.num_device_steps
    (1030505, 16)
    >>> list(diff.to_dict()["compare"]["terms"])[:3]
    ['compute', 'contention', 'exposed_transfer']
    """

    generator: Mapping[str, str]
    verdict: Verdict
    base: SideSummary
    new: SideSummary
    terms: Mapping[str, Mapping[str, Any]]
    step_ns: Mapping[str, Any]
    rank: Mapping[str, Any] | None
    ranks: Sequence[Mapping[str, Any]]
    operators: Sequence[Mapping[str, Any]] | None
    collectives: Sequence[Mapping[str, Any]] | None
    method: Mapping[str, Any]
    notes: tuple[Note, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``--json`` prints: plain dicts, lists, numbers, text."""
        plain = asdict(self)
        return {
            "schema_version": SCHEMA_VERSION,
            "generator": plain.pop("generator"),
            "notes": plain.pop("notes"),
            "compare": plain,
        }


def require_sides(base: Sequence[object], new: Sequence[object]) -> None:
    """Refuse what cannot be compared, before anything is read.

    Raises
    ------
    UsageError
        A side has no run.
    """
    if not base or not new:
        raise UsageError(
            "compare needs two runs, BASE and NEW: the traces of each, a file, a folder or a "
            "quoted glob"
        )


def compare_of(
    paths: tuple[Sequence[str], Sequence[str]],
    reports: tuple[Sequence[Report], Sequence[Report]],
    *,
    notes: Iterable[Note] = (),
) -> Comparison:
    """Compare the runs of two sides.

    Parameters
    ----------
    paths
        What the runs are called: those of the base, those that are compared with it.
    reports
        What each of them did.
    notes
        What is already known to be wrong with a run.

    Raises
    ------
    UsageError
        A side has no run.
    InputError
        A run has no time to account for, or only some have steps.
    """
    require_sides(*reports)
    base, new = _sides(paths, reports)
    delta = new.mean_ns("span") - base.mean_ns("span")
    found = _significance(base, new)
    step, terms = _step(base, new, found), _terms(base, new, found)
    verdict = _verdict(step, terms)
    changes = ranks_of(base, new)
    operators, collectives = operators_of(base, new), collectives_of(base, new)
    return Comparison(
        generator=reports[1][0].generator,
        verdict=verdict,
        base=_summary(base),
        new=_summary(new),
        terms=terms,
        step_ns=step,
        rank=rank_of(
            changes,
            base,
            new,
            delta,
            is_significant=verdict not in ("no difference", "unknown"),
        ),
        ranks=[
            {"rank": rank, **{f"delta_{name}_ns": round(ns) for name, ns in own.items()}}
            for rank, own in changes.items()
        ],
        operators=operators,
        collectives=collectives,
        method={
            "level": LEVEL,
            "num_resamples": NUM_RESAMPLES,
            "base_unit": base.unit,
            "base_num_units": len(base.units),
            "new_unit": new.unit,
            "new_num_units": len(new.units),
        },
        notes=(
            *notes,
            *about_units(base, new),
            *about_sides(base, new),
            *about_rows(base, new, has_operators=operators is not None),
        ),
    )


def _sides(
    paths: tuple[Sequence[str], Sequence[str]],
    reports: tuple[Sequence[Report], Sequence[Report]],
) -> tuple[Side, Side]:
    known = known_of([report for side in reports for report in side])
    base, new = (
        side_of(
            [sized_runs([name], [one])[0][0] for name, one in zip(names, own, strict=True)],
            own,
            known,
        )
        for names, own in zip(paths, reports, strict=True)
    )
    marked = [run.path for side in (base, new) for run in side.runs if run.basis != "windows"]
    unmarked = [run.path for side in (base, new) for run in side.runs if run.basis == "windows"]
    if marked and unmarked:
        raise InputError(
            f"{unmarked[0]}: no step markers, so its whole window would be compared with one "
            f"step of {marked[0]}; capture it with prof.step() after each step"
        )
    return base, new


def _significance(base: Side, new: Side) -> Significance | None:
    if not (base.has_enough and new.has_enough):
        return None
    return significance_of(base.drawn(), new.drawn())


def _step(base: Side, new: Side, found: Significance | None) -> dict[str, Any]:
    before, after = round(base.mean_ns("span")), round(new.mean_ns("span"))
    delta = after - before
    interval = None
    if found is not None:
        interval = [round(delta - found.half_width), round(delta + found.half_width)]
    return {
        "base": before,
        "new": after,
        "delta": delta,
        "ratio": float(new.mean_ns("span") / base.mean_ns("span") - 1),
        "interval": interval,
        "significant": None if interval is None else not interval[0] <= 0 <= interval[1],
    }


def _terms(base: Side, new: Side, found: Significance | None) -> dict[str, dict[str, Any]]:
    """Return the change of each term, in whole ns that add up to the change of the step."""
    step = base.mean_ns("span")
    total = round(new.mean_ns("span")) - round(step)
    deltas = {name: new.mean_ns(name) - base.mean_ns(name) for name in base.terms}
    whole = shared_out(deltas, total)
    told: Sequence[bool | None] = [None] * len(deltas) if found is None else found.significant
    return {
        name: {
            "base_ns": round(base.mean_ns(name)),
            "new_ns": round(new.mean_ns(name)),
            "delta_ns": whole[name],
            "ratio": float(delta / step),
            "significant": significant,
        }
        for (name, delta), significant in zip(deltas.items(), told, strict=True)
    }


def _verdict(step: Mapping[str, Any], terms: Mapping[str, Mapping[str, Any]]) -> Verdict:
    if not step["delta"] and not any(term["delta_ns"] for term in terms.values()):
        return "no difference"  # nothing to be sure of
    if step["significant"] is None:
        return "unknown"
    if step["significant"]:
        return "slower" if step["delta"] > 0 else "faster"
    return "shifted" if any(term["significant"] for term in terms.values()) else "no difference"


def _summary(side: Side) -> SideSummary:
    first, report = side.runs[0], side.reports[0]
    flops = [run.flop for run in side.runs if run.flop is not None]
    use = report.utilization or {}
    costs = [one.cost["usd_per_step"] for one in side.reports if one.cost is not None]
    is_one = len(side.runs) == 1
    span = side.mean_ns("span")
    return SideSummary(
        paths=tuple(run.path for run in side.runs),
        num_runs=len(side.runs),
        world_size=first.world_size,
        num_devices=first.num_devices,
        num_steps=side.num_steps,
        num_device_steps=side.num_device_steps,
        basis=first.basis,
        step_ns=round(span),
        terms_ns=shared_out({name: side.mean_ns(name) for name in side.terms}, round(span)),
        executed_flop=float(sum(flops, Fraction(0)) / len(flops)) if flops else None,
        hfu=use.get("hfu") if is_one else None,
        mfu=use.get("mfu") if is_one else None,
        accelerator=first.accelerator,
        usd_per_step=sum(costs) / len(costs) if len(costs) == len(side.reports) else None,
    )
