"""``traceparse analyze``: traces to report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceparse.cli import options
from traceparse.cli.phases import working
from traceparse.cli.progress import shown_progress
from traceparse.cli.reading import Cache, Debug, Engine, Jobs, NoCache, Quiet, Strict, reading
from traceparse.cli.show import show_report
from traceparse.cli.words import parse_formats, parse_steps

__all__ = ["analyze"]


@options.telling
def analyze(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Trace files, folders (searched), globs or URLs (s3://...) of one job.",
        ),
    ],
    *,
    out: Annotated[
        Path | None, typer.Option(help="Write the report into this folder, as files.")
    ] = None,
    format: options.Format = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, and nothing else.")
    ] = False,
    full: options.Full = False,
    steps: Annotated[
        str | None, typer.Option(metavar="3-5", help="Report on these steps only.")
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=0, help="Rank of a trace that does not say it itself.")
    ] = None,
    hta: Annotated[
        bool, typer.Option("--hta", help="Add HTA's critical path and queue lengths.")
    ] = False,
    jobs: Jobs = 0,
    engine: Engine = "local",
    cache: Cache = None,
    no_cache: NoCache = False,
    told: options.Told,
    strict: Strict = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 - main() looks for it
) -> None:
    """Report where the time of a job went, and how much of its peak it used, from traces."""
    formats = parse_formats(format, out=out)
    wanted = None if steps is None else parse_steps(steps)
    with reading(paths, jobs=jobs, engine=engine, cache=cache, no_cache=no_cache) as how:
        from traceparse.engine import analyze as run_analysis

        if hta:
            from traceparse.bridge.hta import installed

            installed()  # before minutes are spent
        if not as_json:
            import traceparse.report.terminal  # noqa: F401 - while others start to read

        asked = told.arguments()
        with working(), shown_progress(quiet=quiet) as progress:
            report = run_analysis(
                paths,
                steps=wanted,
                rank=rank,
                strict=strict,
                jobs=how.jobs,
                engine=how.engine,
                cache=how.cache,
                progress=progress,
                **asked,
            )
            if hta:
                from traceparse.bridge.hta import with_hta

                report = with_hta(report)
    with working():
        show_report(report, as_json=as_json, quiet=quiet, out=out, formats=formats, full=full)
