"""``traceparse scaling``: runs of several sizes to what growing costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceparse.cli.phases import working
from traceparse.cli.progress import shown_progress
from traceparse.cli.reading import Cache, Debug, Engine, Jobs, NoCache, Quiet, Strict, reading
from traceparse.cli.show import show_scaling
from traceparse.cli.words import parse_steps

__all__ = ["scaling"]


def scaling(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN RUN",
            show_default=False,
            help="The traces of each run: a file, a folder (searched) or a quoted glob.",
        ),
    ] = None,
    *,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="strong|weak",
            help="Whether the runs did the same work together, or the same a device. By "
            "default what their FLOP tell.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write report.json into this folder.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, and nothing else.")
    ] = False,
    steps: Annotated[
        str | None, typer.Option(metavar="3-5", help="Compare these steps of each run only.")
    ] = None,
    jobs: Jobs = 0,
    engine: Engine = "local",
    cache: Cache = None,
    no_cache: NoCache = False,
    strict: Strict = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 - main() looks for it
) -> None:
    """Say what a job loses as it grows, and to what, from traces of runs of several sizes."""
    wanted = None if steps is None else parse_steps(steps)
    given = runs or []
    with reading(given, jobs=jobs, engine=engine, cache=cache, no_cache=no_cache) as how:
        from traceparse.engine import scaling as run_scaling

        with working(), shown_progress(quiet=quiet) as progress:
            curve = run_scaling(
                given,
                mode=mode,
                steps=wanted,
                strict=strict,
                jobs=how.jobs,
                engine=how.engine,
                cache=how.cache,
                progress=progress,
            )
    with working():
        show_scaling(curve, as_json=as_json, quiet=quiet, out=out)
