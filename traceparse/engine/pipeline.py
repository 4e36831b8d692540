"""From paths to a report: find the files, digest each, assemble."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from traceparse.engine.cache import Cache
from traceparse.engine.local import Outcome, Progress, digest_files
from traceparse.engine.measured import measured
from traceparse.errors import (
    InputError,
    NotATraceError,
    Note,
    StrictError,
    TraceparseError,
    UsageError,
)
from traceparse.ingest import (
    Place,
    RankTrace,
    engine,
    find,
    is_built,
    path_text,
    read_traces,
)
from traceparse.rank import RankDigest, digest, public_tables
from traceparse.run import Asked, Report, Run, ask, gather
from traceparse.run.assemble import Assembled, assembled
from traceparse.run.instances_table import instances_table

__all__ = ["REFUSED", "Explored", "analyze", "explore", "read"]

# notes that say the input was not whole: what --strict does not accept
_NOT_WHOLE = frozenset(
    {
        "device_events_missing",
        "duplicate_rank",
        "events_lost",
        "events_repaired",
        "file_unusable",
        "header_damaged",
        "missing_ranks",
        "repeated_capture",
        "trailing_data",
        "truncated",
        "world_size_disagrees",
    }
)
# doubts that, where they are right, make numbers wrong: nor these
_NUMBERS_IN_DOUBT = frozenset(
    {
        "device_events_outside_window",
        "events_unfinished",
        "kernels_overlap_on_stream",
        "launches_without_device_event",
        "names_unknown",
        "profiler_overhead",
        "several_processes",
        "steps_missing",
        "steps_overlap",
        "steps_repeated",
    }
)
REFUSED = _NOT_WHOLE | _NUMBERS_IN_DOUBT


def analyze(
    paths: str | Path | Sequence[str | Path],
    *,
    steps: Collection[int] | None = None,
    rank: int | None = None,
    strict: bool = False,
    jobs: int = 1,
    engine: str = "local",
    cache: str | Path | None = None,
    progress: Progress | None = None,
    accelerator: str | Path | None = None,
    peak: Mapping[str, float] | Literal["measured"] | None = None,
    peak_source: str | None = None,
    ceiling: str = "spec",
    model_flop_per_step: float | None = None,
    convention: str | None = None,
    params: float | None = None,
    tokens_per_step: float | None = None,
    recompute: str | None = None,
    price: float | None = None,
) -> Report:
    """Where did the time of this job go, and how much of its peak was used?

    Parameters
    ----------
    paths
        Trace files, folders (searched downwards) and globs, of one job; each may be a URL that
        fsspec reads, such as ``s3://bucket/run/``.
    steps
        Numbers of the steps to report on; all by default.
    rank
        The rank of a trace that does not say, neither inside nor in its name.
    strict
        Raise instead of using what is left of an input that is not whole.
    jobs
        How many processes read traces. A script that asks for more than one needs the usual
        ``if __name__ == "__main__"``.
    engine
        ``"local"``; ``"dask"``, as many of Dask's workers as there are ``jobs``, or
        ``"dask://HOST:PORT"``, those of a scheduler, which have to see the files.
    cache
        A folder for digests: a file that was digested before, and has not changed since, is
        not read again. Without it, every file is read.
    progress
        Told how far the work is.
    accelerator
        What the job ran on, instead of what its traces tell: an id or name of the table of
        accelerators; or a TOML file of entries, which are looked at before the table's.
    peak
        Peaks by dtype in FLOP/s, which override any table: ``{"bf16": 989e12}``.
        ``"measured"`` measures this machine's, for traces of its processor.
    peak_source
        Where such peaks are from, for the reader of the report.
    ceiling
        ``"spec"``: HFU and MFU are measured against the data sheet. ``"mamf"``: against the
        fastest matrix products that anybody measured, where somebody has.
    model_flop_per_step
        What the model needs for a step of the whole job, forward and backward.
    convention
        By which convention it was counted, for the reader of the report.
    params
        Parameters N of the model: a step is 6ND.
    tokens_per_step
        Tokens D of a step of the whole job.
    recompute
        ``"full"``: a step executes 8ND, where the traces do not tell what it executed.
    price
        USD per GPU-hour.

    Raises
    ------
    UsageError
        Arguments contradict each other or cannot be understood.
    InputError
        Nothing can be analyzed.
    StrictError
        ``strict``, and some input is incomplete or damaged.

    Examples
    --------
    >>> report = traceparse.analyze("n8/")
    >>> print(report.summary.verdict)
    Compute-bound: matrix products and the like take 68.6% of the device-steps; HFU 39.6%
    >>> report.run.accelerator["id"], round(report.utilization["mfu"], 4)
    ('h100-sxm', 0.3957)

    What traces do not tell can be given:

    >>> report = traceparse.analyze("traces/", peak={"fp32": 100e9}, steps=[11])
    >>> round(report.utilization["hfu"], 3)
    0.518

    A bad file among good ones is a note; a job without any is an error, in a line:

    >>> traceparse.analyze("absent")
    Traceback (most recent call last):
    traceparse.errors.InputError: absent: no such file or folder; check the path
    """
    if isinstance(peak, str) and peak != "measured":
        raise UsageError(f"peak {peak!r}: give FLOP/s by dtype, or measured")
    asked = ask(
        accelerator=accelerator,
        peak=peak if isinstance(peak, Mapping) else None,
        peak_source=peak_source,
        ceiling=ceiling,
        model_flop_per_step=model_flop_per_step,
        convention=convention,
        params=params,
        tokens_per_step=tokens_per_step,
        recompute=recompute,
        price=price,
    )
    return explore(
        paths,
        asked=asked,
        steps=steps,
        rank=rank,
        strict=strict,
        jobs=jobs,
        engine=engine,
        cache=cache,
        progress=progress,
        is_peak_measured=peak == "measured",
    ).assembled.report


@dataclass(frozen=True, slots=True)
class Explored:
    """A job, analyzed, and where each digest of it is from: its file, and its place in that."""

    assembled: Assembled
    files: tuple[Place, ...]
    sources: Mapping[int, tuple[Place, int]]

    def trace(
        self,
        digest: RankDigest,
        *,
        extras: Iterable[str] = (),
        on_bytes: Callable[[int], object] | None = None,
    ) -> RankTrace:
        """Read again the trace that a digest was made of; what is much of it stays on disk.

        Raises
        ------
        InputError
            The file cannot be read any more, or is another one by now.
        """
        path, place = self.sources[id(digest)]
        found = read_traces(
            path,
            rank=digest.health.rank,
            extras=frozenset(extras),
            on_bytes=on_bytes,
            on_disk=True,
        )
        if place >= len(found) or found[place].health.events != digest.health.events:
            raise InputError(f"{path}: the file has changed while it was read; try again")
        return found[place]


def explore(
    paths: str | Path | Sequence[str | Path],
    *,
    asked: Asked,
    steps: Collection[int] | None = None,
    rank: int | None = None,
    strict: bool = False,
    jobs: int = 1,
    engine: str = "local",
    cache: str | Path | None = None,
    progress: Progress | None = None,
    is_peak_measured: bool = False,
) -> Explored:
    """Analyze a job, and keep what its report rests on; arguments are those of `analyze`."""
    files = _find(paths, rank)
    kept = None if cache is None else Cache(Path(cache))
    outcomes = digest_files(
        files, jobs=jobs, rank=rank, progress=progress, cache=kept, engine=engine
    )
    notes = [*_about_engine(), *_about_cache(kept), *_failures(files, outcomes)]
    digests = _digests(outcomes)
    if is_peak_measured:
        asked = measured(asked, digests)
    found = assembled(digests, notes=notes, steps=steps, asked=asked)
    if strict:
        _require_whole(found.report)
    sources = {
        id(digest): (file, place)
        for file, outcome in zip(files, outcomes, strict=True)
        if not isinstance(outcome, TraceparseError)
        for place, digest in enumerate(outcome)
    }
    return Explored(found, tuple(files), sources)


def read(
    paths: str | Path | Sequence[str | Path],
    *,
    rank: int | None = None,
    extras: Iterable[str] = (),
) -> Run:
    """Read the traces of a job into tables, one row an event, all ranks under one another.

    ``extras`` names the tables that are left out by default, for their size:
    ``python_functions``, ``counters``. Other arguments and errors are those of :func:`analyze`.

    Examples
    --------
    >>> run = traceparse.read("n8/")
    >>> kernels = run.tables["kernels"].to_pandas()
    >>> kernels[kernels["rank"] == 0].groupby("kind", observed=True)["dur_ns"].sum().to_dict()
    {'compute': 3731249, 'comm': 962690}

    ``traceparse schema`` says what is in each table.
    """
    files = _find(paths, rank)
    wanted = frozenset(extras)
    outcomes: list[Outcome] = []
    traces: list[RankTrace] = []
    for file in files:
        try:
            found = read_traces(file, rank=rank, extras=wanted)
            outcomes.append([digest(trace) for trace in found])
            traces.extend(found)
        except InputError as error:
            outcomes.append(error)
    job = assembled(_digests(outcomes), notes=_failures(files, outcomes))
    tables = [public_tables(trace) for trace in traces]
    return gather([*tables, {"instances": instances_table(job.together)}], job.report)


def _find(paths: str | Path | Sequence[str | Path], rank: int | None) -> list[Place]:
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    if not given:
        raise UsageError("no trace given: name a file, a folder or a glob")
    engine()  # which may be asked for and not be there
    files = find(given)
    if rank is not None and len(files) > 1:
        raise UsageError(
            f"--rank {rank} names the rank of one file, but there are {len(files)}"
        )
    return files


def _digests(outcomes: Iterable[Outcome]) -> list[RankDigest]:
    return [
        digested
        for outcome in outcomes
        if not isinstance(outcome, TraceparseError)
        for digested in outcome
    ]


def _failures(files: list[Place], outcomes: list[Outcome]) -> list[Note]:
    """Say which files could not be used; raise if that is all of them."""
    failed = [
        (file, outcome)
        for file, outcome in zip(files, outcomes, strict=True)
        if isinstance(outcome, TraceparseError)
    ]
    if len(failed) == len(files):
        first = failed[0][1]
        if len(files) == 1:
            raise first
        raise InputError(f"no trace among the {len(files)} files; the first one: {first}")
    return [
        Note(
            "not_a_trace" if isinstance(error, NotATraceError) else "file_unusable",
            str(error).removeprefix(f"{file}: "),
            file=path_text(file),
        )
        for file, error in failed
    ]


def _about_engine() -> Iterator[Note]:
    if not is_built():
        yield Note(
            "native_engine_missing",
            "traces are read with the slower engine, as there was no C compiler when "
            "traceparse was installed; install one, and traceparse again",
        )


def _about_cache(cache: Cache | None) -> Iterator[Note]:
    if cache and cache.complaint:
        yield Note(
            "cache_not_written",
            f"{cache.complaint}: what was digested is not kept, and will be read again; give "
            f"--cache another folder, or --no-cache",
        )


def _require_whole(report: Report) -> None:
    broken = [note for note in report.notes if note.code in REFUSED]
    if not broken:
        return
    first = broken[0]
    where = f"{first.file}: " if first.file else ""
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    raise StrictError(
        f"{where}{first.message}{more}; without --strict what is there would be used"
    )
