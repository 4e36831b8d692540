"""``traceparse analyze``: traces to report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from traceparse.cli import options
from traceparse.cli.phases import working
from traceparse.cli.progress import shown_progress
from traceparse.cli.show import show_report
from traceparse.cli.words import parse_steps
from traceparse.errors import UsageError

__all__ = ["analyze"]


def analyze(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...", help="Trace files, folders (searched) or globs of one job."
        ),
    ],
    *,
    out: Annotated[
        Path | None, typer.Option(help="Write report.json and report.html into this folder.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, and nothing else.")
    ] = False,
    steps: Annotated[
        str | None, typer.Option(metavar="3-5", help="Report on these steps only.")
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=0, help="Rank of a trace that does not say it itself.")
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
    accelerator: options.Accelerator = None,
    peak: options.Peak = None,
    ceiling: options.Ceiling = "spec",
    model_flop_per_step: options.ModelFlop = None,
    params: options.Params = None,
    tokens_per_step: options.Tokens = None,
    recompute: options.Recompute = None,
    model: options.Model = None,
    convention: options.Convention = None,
    seq: options.Seq = None,
    price: options.Price = None,
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
    """Report where the time of a job went, and how much of its peak it used, from traces."""
    wanted = None if steps is None else parse_steps(steps)
    if cache and no_cache:
        raise UsageError("--cache and --no-cache contradict each other; give one of them")
    told = options.Told(
        accelerator=accelerator,
        peak=peak,
        ceiling=ceiling,
        model_flop_per_step=model_flop_per_step,
        params=params,
        tokens_per_step=tokens_per_step,
        recompute=recompute,
        model=model,
        convention=convention,
        seq=seq,
        price=price,
    )
    from traceparse.engine import default_folder, readers_ready

    jobs = jobs or os.cpu_count() or 1
    folder = None if no_cache else cache or default_folder()
    with readers_ready(paths, jobs=jobs, cache=folder):
        # numpy would start threads for linear algebra, of which there is none
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from traceparse.tables import spare_pandas

        spare_pandas()
        from traceparse.engine import analyze as run_analysis

        if not as_json:
            import traceparse.report.terminal  # noqa: F401 - while others start to read

        asked = told.arguments()
        with working(), shown_progress(quiet=quiet) as progress:
            report = run_analysis(
                paths,
                steps=wanted,
                rank=rank,
                strict=strict,
                jobs=jobs,
                cache=folder,
                progress=progress,
                **asked,
            )
    with working():
        show_report(report, as_json=as_json, quiet=quiet, out=out)
