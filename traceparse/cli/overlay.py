"""``traceparse overlay``: traces to one trace that Perfetto opens, with findings drawn in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceparse.cli import options
from traceparse.cli.amounts import parse_bytes, parse_ranks
from traceparse.cli.phases import working
from traceparse.cli.progress import shown_progress
from traceparse.cli.reading import Cache, Debug, Engine, Jobs, NoCache, Quiet, Strict, reading
from traceparse.cli.words import parse_steps

if TYPE_CHECKING:
    from traceparse.bridge.overlay import Overlay

__all__ = ["overlay"]


def overlay(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Trace files, folders (searched), globs or URLs (s3://...) of one job.",
        ),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The trace to write; compressed if FILE.gz."
        ),
    ],
    steps: Annotated[
        str | None, typer.Option(metavar="3-5", help="Draw these steps only.")
    ] = None,
    ranks: Annotated[
        str | None, typer.Option(metavar="0,8-15", help="Draw these ranks only; read all.")
    ] = None,
    max_bytes: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Leave out what is least important, so that the JSON is no larger.",
        ),
    ] = "200MB",
    rank: Annotated[
        int | None, typer.Option(min=0, help="Rank of a trace that does not say it itself.")
    ] = None,
    jobs: Jobs = 0,
    engine: Engine = "local",
    cache: Cache = None,
    no_cache: NoCache = False,
    accelerator: options.Accelerator = None,
    peak: options.Peak = None,
    ceiling: options.Ceiling = "spec",
    strict: Strict = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 - main() looks for it
) -> None:
    """Write a trace for Perfetto with what was found drawn into it, all ranks on one clock."""
    wanted = None if steps is None else parse_steps(steps)
    chosen = None if ranks is None else parse_ranks(ranks)
    limit = parse_bytes("--max-bytes", max_bytes)
    told = options.Told(accelerator=accelerator, peak=peak, ceiling=ceiling)
    with reading(paths, jobs=jobs, engine=engine, cache=cache, no_cache=no_cache) as how:
        from traceparse.bridge.overlay import overlay as draw

        arguments = told.arguments()
        with working(), shown_progress(quiet=quiet) as progress:
            written = draw(
                paths,
                out,
                steps=wanted,
                ranks=chosen,
                max_bytes=limit,
                rank=rank,
                strict=strict,
                jobs=how.jobs,
                engine=how.engine,
                cache=how.cache,
                progress=progress,
                accelerator=arguments["accelerator"],
                peak=arguments["peak"],
                ceiling=arguments["ceiling"],
            )
    if not quiet:
        _say(written)


def _say(written: Overlay) -> None:
    from traceparse.units import format_bytes, format_number_of

    if written.left_out:
        print(
            f"left out to stay under its size: {'; '.join(written.left_out)}", file=sys.stderr
        )
    for doubt in written.doubts:
        print(f"note: {doubt}", file=sys.stderr)
    events = format_number_of(sum(written.num_events.values()), "event")
    num_ranks = format_number_of(len(written.ranks), "rank")
    print(
        f"wrote {written.path}: {events} of {num_ranks}, {format_bytes(written.json_bytes)} of "
        f"JSON; open it at https://ui.perfetto.dev",
        file=sys.stderr,
    )
