"""All digests of a job to one report.

Nothing here opens a trace. What the digests disagree on, or do not say, becomes ``None`` and a
note.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import traceparse
from traceparse.errors import InputError, Note
from traceparse.rank import DeviceDigest, RankDigest
from traceparse.run.across import Across, across
from traceparse.run.asked import Asked
from traceparse.run.basis import choose
from traceparse.run.bound import bound_of
from traceparse.run.captures import one_a_rank
from traceparse.run.copies import copies
from traceparse.run.facts import facts_of, overhead_findings
from traceparse.run.findings import View, found_in, in_order, priced
from traceparse.run.findings.viewed import view_of
from traceparse.run.measure import Measured, Part, measure
from traceparse.run.report import Report, RunInfo
from traceparse.run.summary import judged, summarize
from traceparse.run.top_kernels import top_kernels
from traceparse.units import rank_ranges

__all__ = ["Assembled", "assemble", "assembled"]

T = TypeVar("T")

_NOTHING_TOGETHER = Note(
    "no_communication",
    "no collective or point-to-point call was recorded, so there is no common clock, and no "
    "loss to communication",
)


@dataclass(frozen=True, slots=True)
class Assembled:
    """A report, and what it was made of: the devices, and what they did together.

    ``parts`` are in the order of the report's devices; places in ``together`` are theirs.
    """

    report: Report
    parts: tuple[Part, ...]
    together: Across | None
    measured: Measured


def assemble(
    digests: Sequence[RankDigest],
    *,
    notes: Iterable[Note] = (),
    steps: Collection[int] | None = None,
    asked: Asked | None = None,
) -> Report:
    """Make the report of one job from the digests of its traces; see :func:`assembled`."""
    return assembled(digests, notes=notes, steps=steps, asked=asked).report


def assembled(
    digests: Sequence[RankDigest],
    *,
    notes: Iterable[Note] = (),
    steps: Collection[int] | None = None,
    asked: Asked | None = None,
) -> Assembled:
    """Make the report of one job from the digests of its traces, and keep what it rests on.

    Parameters
    ----------
    digests
        At least one; in any order.
    notes
        What is already known to be wrong, such as files that could not be used.
    steps
        Numbers of the steps to report on; all of them by default.
    asked
        What the user says of the job, such as its device; nothing by default.

    Raises
    ------
    InputError
        No trace has any of the steps asked for.
    """
    ordered = sorted(digests, key=_by_rank)
    used, doubled = one_a_rank(ordered, steps)
    run, about_run = _run_info(used)
    parts = [_part(digest, device, steps) for digest in used for device in digest.devices]
    if steps is not None:
        _require_steps(used, parts, steps)
    basis = choose(parts)
    together = across([part.device for part in parts], [part.rank for part in parts])
    measured = measure(
        parts, basis, asked or Asked(), world_size=run.world_size, together=together
    )
    facts = facts_of(used)
    report = Report(
        generator={"name": "traceparse", "version": traceparse.__version__},
        run=replace(
            run,
            accelerator=measured.accelerator,
            reference_dtype=measured.reference_dtype,
            conventions=measured.conventions,
            facts=facts,
        ),
        summary=replace(
            summarize(measured.devices, basis), communication_ns=measured.communication_ns
        ),
        notes=(
            *notes,
            *about_run,
            *doubled,
            *(note for digest in ordered for note in digest.notes),
            *basis.notes,
            *measured.notes,
            *(together.notes if together else (_NOTHING_TOGETHER,)),
        ),
        files=tuple(digest.health for digest in ordered),
        devices=measured.devices,
        utilization=measured.utilization,
        roofline=measured.roofline,
        top_kernels=top_kernels(used),
        host=measured.host,
        copies=copies(used),
        findings=in_order(measured.findings, overhead_findings(facts, used)),
        cost=measured.cost,
        collectives=together.collectives_field() if together else (),
        clock=together.clock_field() if together else None,
        scaling_loss=measured.scaling_loss,
        what_if=measured.what_if,
        bands=measured.bands,
    )
    view = view_of(
        report,
        basis,
        used,
        counted_ns=measured.counted_ns,
        most_reached=measured.most_reached,
    )
    return Assembled(_judged(report, view), tuple(parts), together, measured)


def _judged(report: Report, view: View) -> Report:
    """Add what follows from all other fields together: verdict and findings."""
    hfu = (report.utilization or {}).get("hfu")
    usd = report.cost["usd_per_step"] if report.cost else None
    found = in_order(report.findings or (), found_in(view))
    return replace(
        report,
        summary=judged(report.summary, bound_of(view), hfu),
        findings=priced(found, usd),
    )


def _by_rank(digest: RankDigest) -> tuple[bool, int, str]:
    rank = digest.health.rank
    return rank is None, rank or 0, digest.health.path


def _run_info(digests: list[RankDigest]) -> tuple[RunInfo, list[Note]]:
    ranks = sorted(d.health.rank for d in digests if d.health.rank is not None)
    notes: list[Note] = []
    world_size = _agreed("world_size", [d.header.world_size for d in digests], notes)
    backend = _agreed("backend", [d.header.backend for d in digests], notes)
    missing: tuple[int, ...] | None = None
    if world_size is not None:
        missing = tuple(sorted(set(range(world_size)) - set(ranks)))
        notes.extend(_about_ranks(ranks, missing, world_size))
    return RunInfo(world_size, tuple(ranks), missing, backend), notes


def _agreed(field: str, said: list[T | None], notes: list[Note]) -> T | None:
    """Return what the traces say with one voice; ``None`` and a note if they do not."""
    values = list(dict.fromkeys(value for value in said if value is not None))
    words = field.replace("_", " ")
    if len(values) == 1:
        return values[0]
    if values:
        told = ", ".join(str(value) for value in values[:4])
        message = f"the traces disagree on their {words} ({told}): are they of one job?"
        notes.append(Note(f"{field}_disagrees", message))
    else:
        message = f"no trace says its {words}" + (
            ", so missing ranks cannot be told" if field == "world_size" else ""
        )
        notes.append(Note(f"{field}_unknown", message))
    return None


def _about_ranks(ranks: list[int], missing: tuple[int, ...], world_size: int) -> list[Note]:
    notes = []
    if missing:
        subject = "rank" if len(missing) == 1 else "ranks"
        notes.append(
            Note(
                "missing_ranks",
                f"{subject} {rank_ranges(missing)} missing: "
                f"{world_size - len(missing)} of {world_size} ranks are accounted for",
            )
        )
    beyond = [rank for rank in ranks if rank >= world_size]
    if beyond:
        notes.append(
            Note(
                "rank_beyond_world_size",
                f"rank {rank_ranges(beyond)} cannot be in a job of world size {world_size}",
            )
        )
    return notes


def _part(digest: RankDigest, device: DeviceDigest, steps: Collection[int] | None) -> Part:
    reported = (step for step in device.steps if steps is None or step.step in steps)
    return Part(digest, device, tuple(reported))


def _require_steps(
    digests: list[RankDigest], parts: list[Part], steps: Collection[int]
) -> None:
    if any(part.steps for part in parts):
        return
    marked = {
        step.step for digest in digests for device in digest.devices for step in device.steps
    }
    there = sorted(step for step in marked if step is not None)
    known = f"they have {rank_ranges(there)}" if there else "they have no step markers"
    raise InputError(f"no trace has step {rank_ranges(sorted(steps))}: {known}; change --steps")
