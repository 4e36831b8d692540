"""A trace that Perfetto opens, with what traceparse found drawn into it.

Every device of every rank is a process of its own, on the common clock: its streams as the
trace has them, what each instant was spent on, counters, and collectives with flows between
ranks. Ranks are read one after another, and what is drawn lies on disk until it is known what
fits, so that memory does not grow with the job.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from traceparse.bridge.overlay.drawing import Drawing
from traceparse.bridge.overlay.file import base_of, write
from traceparse.bridge.overlay.header import doubts, fields, left_out
from traceparse.engine import Explored, Progress, explore
from traceparse.errors import InputError, UsageError
from traceparse.ingest import place_of
from traceparse.run import ask
from traceparse.units import format_bytes, rank_ranges

__all__ = ["DEFAULT_MAX_BYTES", "Overlay", "overlay"]

_INSIDE: Final = "the file lies in a folder of traces, and will be read as one of them"
DEFAULT_MAX_BYTES: Final = 200_000_000  # what a browser opens within seconds


@dataclass(frozen=True, slots=True)
class Overlay:
    """What was written: how many events by layer, and what was left out to fit."""

    path: Path
    num_events: Mapping[str, int]
    json_bytes: int
    ranks: tuple[int | None, ...]
    left_out: tuple[str, ...]
    doubts: tuple[str, ...]


def overlay(
    paths: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    steps: range | None = None,
    ranks: Collection[int] | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    rank: int | None = None,
    strict: bool = False,
    jobs: int = 1,
    engine: str = "local",
    cache: str | Path | None = None,
    progress: Progress | None = None,
    accelerator: str | Path | None = None,
    peak: Mapping[str, float] | Literal["measured"] | None = None,
    ceiling: str = "spec",
) -> Overlay:
    """Write a trace of a job with findings drawn into it.

    Parameters
    ----------
    paths, rank, strict, jobs, engine, cache, progress, accelerator, peak, ceiling
        As :func:`traceparse.analyze` has them.
    out
        The file to write: JSON, compressed if its name ends in ``.gz``.
    steps
        Steps to draw; all by default.
    ranks
        Ranks to draw; all by default. The others are read all the same: who waits for whom
        takes them all.
    max_bytes
        How large the JSON may be, before it is compressed.

    Raises
    ------
    UsageError
        The file is one of the traces, or a rank or so small a file cannot be.
    InputError
        Nothing can be read or drawn, or the file cannot be written.
    StrictError
        ``strict``, and some input is incomplete or damaged.
    """
    path = Path(out)
    _require_place(path)
    found = explore(
        paths,
        asked=ask(
            accelerator=accelerator,
            peak=peak if isinstance(peak, Mapping) else None,
            ceiling=ceiling,
        ),
        is_peak_measured=peak == "measured",
        steps=steps,
        rank=rank,
        strict=strict,
        jobs=jobs,
        engine=engine,
        cache=cache,
        progress=progress,
    )
    if path.resolve() in {file.resolve() for file in found.files if isinstance(file, Path)}:
        raise UsageError(f"-o {path}: that is one of the traces; give another file")
    given = [paths] if isinstance(paths, str | Path) else paths
    folders = [one for one in map(place_of, given) if isinstance(one, Path)]
    is_inside = any(one.resolve() in path.resolve().parents for one in folders)
    chosen = _ranks(found, ranks)
    # what puts short slices together is drawn only where nothing else fits
    drawing = Drawing(found, chosen, steps, max_bytes, has_details=False)
    if not drawing.draw(progress):
        drawing = Drawing(found, chosen, steps, max_bytes, has_details=True)
        if not drawing.draw(progress):
            raise UsageError(
                f"--max-bytes {max_bytes}: a step of these ranks takes more than "
                f"{format_bytes(drawing.job.plan.least_bytes)} without any detail; give more "
                f"bytes, or fewer --ranks"
            )
    return _written(drawing, path, is_inside=is_inside)


def _ranks(found: Explored, ranks: Collection[int] | None) -> list[list[int]]:
    """Return the places of the devices of each rank to draw."""
    own: dict[int, list[int]] = {}
    for place, part in enumerate(found.assembled.parts):
        own.setdefault(id(part.digest), []).append(place)
    parts = found.assembled.parts
    if ranks is None:
        return list(own.values())
    there = {parts[places[0]].rank for places in own.values()}
    if missing := sorted(set(ranks) - there):
        known = sorted(one for one in there if one is not None)
        what = f"they have {rank_ranges(known)}" if known else "they do not say their ranks"
        raise InputError(f"no trace has rank {rank_ranges(missing)}: {what}; change --ranks")
    return [places for places in own.values() if parts[places[0]].rank in set(ranks)]


def _require_place(path: Path) -> None:
    """Refuse what cannot be written before anything is read."""
    if path.is_dir():
        raise InputError(f"{path}: that is a folder; give -o a file in it")
    if not path.parent.is_dir():
        raise InputError(
            f"{path}: there is no folder {path.parent}; make it, or give another -o"
        )


def _written(drawing: Drawing, path: Path, *, is_inside: bool) -> Overlay:
    """Write what fits."""
    job = drawing.job
    base_ns, _ = base_of(job.plan.chosen())
    nums, num_bytes = write(path, job.plan, fields(job, base_ns, drawing.num_bins))
    return Overlay(
        path,
        dict(nums),
        num_bytes,
        tuple(rank.devices[0].part.rank for rank in job.ranks),
        tuple(left_out(job)),
        (*doubts(job), *([_INSIDE] if is_inside else ())),
    )
