"""``traceparse scaling``: runs of several sizes to what growing costs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from traceparse.cli.phases import working
from traceparse.cli.progress import shown_progress
from traceparse.cli.show import show_scaling
from traceparse.cli.words import parse_steps
from traceparse.errors import UsageError

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
    jobs: Annotated[
        int, typer.Option(min=0, help="Processes that read traces; 0: one a processor.")
    ] = 0,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep what was digested here, not in the user's cache folder."
        ),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Read every trace, and keep nothing.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse input that is incomplete or damaged.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress and no notes on standard error.")
    ] = False,
    debug: Annotated[  # noqa: ARG001 - main() looks for it
        bool, typer.Option("--debug", help="Show a traceback when something fails.")
    ] = False,
) -> None:
    """Say what a job loses as it grows, and to what, from traces of runs of several sizes."""
    wanted = None if steps is None else parse_steps(steps)
    if cache and no_cache:
        raise UsageError("--cache and --no-cache contradict each other; give one of them")
    from traceparse.engine import default_folder, readers_ready

    given = runs or []
    jobs = jobs or os.cpu_count() or 1
    folder = None if no_cache else cache or default_folder()
    with readers_ready(given, jobs=jobs, cache=folder):
        # numpy would start threads for linear algebra, of which there is none
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from traceparse.tables import spare_pandas

        spare_pandas()
        from traceparse.engine import scaling as run_scaling

        with working(), shown_progress(quiet=quiet) as progress:
            curve = run_scaling(
                given,
                mode=mode,
                steps=wanted,
                strict=strict,
                jobs=jobs,
                cache=folder,
                progress=progress,
            )
    with working():
        show_scaling(curve, as_json=as_json, quiet=quiet, out=out)
