"""``traceparse sql``: ask the tables of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from traceparse.cli import options
from traceparse.cli.phases import working
from traceparse.cli.progress import shown_progress
from traceparse.cli.reading import Cache, Debug, Jobs, NoCache, Quiet, Strict, reading
from traceparse.cli.show import show_answer
from traceparse.cli.words import one_of, parse_steps
from traceparse.errors import UsageError

__all__ = ["sql"]

_FORMATS: Final = ("table", "csv", "json", "parquet")
_ROWS: Final = 40


@options.telling
def sql(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH... QUERY",
            help="Trace files, folders (searched) or globs of one job; then the query.",
            show_default=False,
        ),
    ],
    *,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="table (by default), csv, json or parquet; with --out, what its name ends in.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the rows as JSON: --format json.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the rows into this file, as CSV, JSON, Parquet."
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option(min=0, help="Rows of a table to print; 0: all of them.")
    ] = _ROWS,
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="3-5",
            help="Report on these steps only: tables of the report, and `steps`. Events have "
            "a column `step`.",
        ),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=0, help="Rank of a trace that does not say it itself.")
    ] = None,
    jobs: Jobs = 0,
    cache: Cache = None,
    no_cache: NoCache = False,
    told: options.Told,
    strict: Strict = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 - main() looks for it
) -> None:
    """Query the tables of a job: one SELECT in DuckDB's SQL, which reads nothing else.

    `traceparse schema` lists tables and columns. Those of events are read from
    the traces where the query names them. Tables of the report, such as
    devices, waterfall, roofline and findings, are in the schema report, which
    need not be named where no table of the run is called the same: steps and
    report.steps are two tables.
    """
    *paths, query = words
    if not paths:
        raise UsageError("give the traces, then the query: traceparse sql traces/ 'SELECT ...'")
    kind = _format(format, as_json=as_json, out=out)
    wanted = None if steps is None else parse_steps(steps)
    from traceparse.bridge.sql import select, statement_of

    statement = statement_of(query)
    with reading(paths, jobs=jobs, cache=cache, no_cache=no_cache) as how:
        asked = told.arguments()
        with working(), shown_progress(quiet=quiet) as progress:
            found = select(
                paths,
                statement,
                steps=wanted,
                rank=rank,
                strict=strict,
                jobs=how.jobs,
                cache=how.cache,
                progress=progress,
                **asked,
            )
    with working():
        show_answer(found.table, found.report, kind, out=out, rows=rows, quiet=quiet)


def _format(asked: str | None, *, as_json: bool, out: Path | None) -> str:
    """Return the one format that was asked for, or that the name of the file tells.

    Raises
    ------
    UsageError
        It is none, or there are two, or the file has none.
    """
    named = None if asked is None else one_of("--format", asked, _FORMATS)
    if as_json:
        if named not in {None, "json"}:
            raise UsageError(f"--json and --format {named} contradict each other; give one")
        named = "json"
    if out is None:
        if named == "parquet":
            raise UsageError("--format parquet needs a file: give --out FILE too")
        return named or _FORMATS[0]
    files = _FORMATS[1:]
    ending = out.suffix.removeprefix(".").lower()
    found = named or (ending if ending in files else None)
    if found not in files:
        raise UsageError(f"--out {out}: say which of {', '.join(files)} it is with --format")
    return found
