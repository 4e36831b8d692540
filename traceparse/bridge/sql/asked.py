"""SQL over traces: reads of them what a query names, and no more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from traceparse.bridge.sql.query import EXTRAS, answer_of, require_sound
from traceparse.bridge.sql.statement import Statement, statement_of
from traceparse.engine import Explored, Progress, explore
from traceparse.ingest import read_traces
from traceparse.rank import public_tables
from traceparse.run import Report, Run, ask, gather
from traceparse.run.instances_table import instances_table
from traceparse.tables import TABLES, ArrowTable

__all__ = ["Answer", "select"]

_OF_DIGESTS: Final = frozenset({"files", "instances", "notes", "steps"})


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a query, and the report of the run that they are from."""

    table: ArrowTable
    report: Report


def select(
    paths: str | Path | Sequence[str | Path],
    query: str | Statement,
    *,
    steps: Collection[int] | None = None,
    rank: int | None = None,
    strict: bool = False,
    jobs: int = 1,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    peak: Any = None,  # noqa: ANN401 - as analyze has it
    **told: Any,  # noqa: ANN401 - as analyze has it
) -> Answer:
    """Query the tables of a job.

    Parameters
    ----------
    paths, rank, strict, jobs, cache, progress, peak, told
        As :func:`traceparse.analyze` has them.
    query
        One statement that selects. Events are read, from their traces, where it names a table
        of them; what else there is, is known of their digests.
    steps
        The steps that the report and its tables are about, and the table ``steps``; tables of
        events have all of them, and a column ``step``.

    Raises
    ------
    UsageError
        The query cannot run.
    InputError
        Nothing can be read.
    StrictError
        ``strict``, and some input is incomplete or damaged.
    MissingExtraError
        DuckDB is not installed.
    """
    statement = query if isinstance(query, Statement) else statement_of(query)
    require_sound(statement)
    found = explore(
        paths,
        asked=ask(peak=None if isinstance(peak, str) else peak, **told),
        is_peak_measured=peak == "measured",
        steps=steps,
        rank=rank,
        strict=strict,
        jobs=jobs,
        cache=cache,
        progress=progress,
    )
    run = _read(found, statement.names, rank, progress)
    return Answer(answer_of(statement, run.tables, run.report, threads=jobs), run.report)


def _read(
    found: Explored, names: Collection[str], rank: int | None, progress: Progress | None
) -> Run:
    """Make the tables of a run: of those of events, the named ones."""
    wanted = (TABLES.keys() - _OF_DIGESTS) & set(names)
    parts: list[dict[str, ArrowTable]] = []
    files = dict.fromkeys(file for file, _ in found.sources.values()) if wanted else {}
    if progress and files:
        sizes = [health.bytes for health in found.assembled.report.files]
        progress.start(len(files), sum(sizes))
    for file in files:
        traces = read_traces(
            file,
            rank=rank,
            extras=frozenset(EXTRAS).intersection(wanted),
            on_bytes=progress.advance if progress else None,
            on_disk=True,
        )
        for trace in traces:
            tables = public_tables(trace)
            parts.append({name: tables[name] for name in tables if name in wanted})
        if progress:
            progress.file_done()
    if "instances" in names:
        parts.append({"instances": instances_table(found.assembled.together)})
    return gather(parts, found.assembled.report)
