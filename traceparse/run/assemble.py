"""All digests of a job to one report.

Nothing here opens a trace. What the digests disagree on, or do not say, becomes ``None`` and a
note.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import traceparse
from traceparse.errors import InputError, Note
from traceparse.rank import DeviceDigest, RankDigest
from traceparse.run.across import across
from traceparse.run.asked import Asked
from traceparse.run.basis import choose
from traceparse.run.facts import facts_of, overhead_findings
from traceparse.run.findings import in_order
from traceparse.run.measure import Part, measure
from traceparse.run.report import Report, RunInfo
from traceparse.run.summary import summarize
from traceparse.units import rank_ranges

__all__ = ["assemble"]

T = TypeVar("T")
_MOST_NAMED = 4  # files that one note names

# fields of the contract that later versions fill
_NOTHING_TOGETHER = Note(
    "no_communication",
    "no collective or point-to-point call was recorded, so there is no common clock, and no "
    "loss to communication",
)
_NOT_COMPUTED = (
    "findings other than of impossible speed, of stragglers and of the profiler's own cost",
)


def assemble(
    digests: Sequence[RankDigest],
    *,
    notes: Iterable[Note] = (),
    steps: Collection[int] | None = None,
    asked: Asked | None = None,
) -> Report:
    """Make the report of one job from the digests of its traces.

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
    used, doubled = _one_a_rank(ordered)
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
    return Report(
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
            *(
                Note("not_computed", f"{field}: not computed by this version")
                for field in _NOT_COMPUTED
            ),
        ),
        files=tuple(digest.health for digest in ordered),
        devices=measured.devices,
        utilization=measured.utilization,
        roofline=measured.roofline,
        findings=in_order(measured.findings, overhead_findings(facts, used)),
        cost=measured.cost,
        collectives=together.collectives_field() if together else (),
        clock=together.clock_field() if together else None,
        scaling_loss=measured.scaling_loss,
        what_if=measured.what_if,
    )


def _by_rank(digest: RankDigest) -> tuple[bool, int, str]:
    rank = digest.health.rank
    return rank is None, rank or 0, digest.health.path


def _one_a_rank(digests: list[RankDigest]) -> tuple[list[RankDigest], list[Note]]:
    """Keep one trace a rank: of several, a whole one before a torn one, then the newest."""
    claims: dict[object, list[RankDigest]] = defaultdict(list)
    for digest in digests:
        claims[_claimant(digest)].append(digest)
    used, notes = [], []
    for claimants in claims.values():
        for group in _rivals(claimants):
            best = max(group, key=_worth)
            used.append(best)
            if len(group) > 1:
                notes.append(_about_rivals(group, best))
    return used, notes


def _claimant(digest: RankDigest) -> object:
    """Whose trace is this? A rank's; else a process's, if there is one to tell."""
    rank = digest.health.rank
    return (None, digest.process) if rank is None else rank


def _rivals(claimants: list[RankDigest]) -> list[list[RankDigest]]:
    """Group traces that cannot both count.

    Of one rank all are. Of processes with one number only those that were captured one after
    the other: the same number on two machines is chance, and those run side by side.
    """
    first = claimants[0]
    if first.health.rank is not None or len(claimants) == 1:
        return [claimants]
    in_order = sorted(claimants, key=_first_instant)
    apart = all(
        _last_instant(one) <= _first_instant(other) for one, other in pairwise(in_order)
    )
    if first.process is None or not apart:
        return [[claimant] for claimant in claimants]
    return [claimants]


def _worth(digest: RankDigest) -> tuple[bool, int, str]:
    return not digest.health.truncated, _last_instant(digest), digest.health.path


def _last_instant(digest: RankDigest) -> int:
    return max(device.window.end_ns for device in digest.devices)


def _first_instant(digest: RankDigest) -> int:
    return min(device.window.start_ns for device in digest.devices)


def _about_rivals(group: list[RankDigest], best: RankDigest) -> Note:
    rank = best.health.rank
    paths = ", ".join(claimant.health.path for claimant in group[:_MOST_NAMED])
    if len(group) > _MOST_NAMED:
        paths += f" and {len(group) - _MOST_NAMED:,} more"
    kept = f"only the newest whole one, {best.health.path}, is used"
    ids = {claimant.header.trace_id for claimant in group}
    if len({claimant.process for claimant in group}) == 1 and (rank is None or len(ids) > 1):
        who = f"process {best.process}" if rank is None else f"rank {rank}"
        return Note(
            "repeated_capture",
            f"{who} was captured {len(group)} times ({paths}): {kept}; capture with repeat=1, "
            f"or give one capture's files",
            rank,
        )
    return Note(
        "duplicate_rank",
        f"{len(group)} traces say that they are rank {rank} ({paths}): {kept}; give one job's "
        f"folder at a time",
        rank,
    )


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
