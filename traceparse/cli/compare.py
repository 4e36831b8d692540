"""``traceparse compare``: two runs, and what changed between them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceparse.cli import options
from traceparse.cli.phases import working
from traceparse.cli.progress import shown_progress
from traceparse.cli.reading import Cache, Debug, Engine, Jobs, NoCache, Quiet, Strict, reading
from traceparse.cli.show import show_compared
from traceparse.cli.words import parse_steps
from traceparse.errors import UsageError

__all__ = ["compare"]


@options.telling
def compare(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BASE NEW",
            show_default=False,
            help="The traces of two runs, each a file, a folder (searched) or a quoted glob; "
            "or its report.json.",
        ),
    ] = None,
    *,
    base: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN",
            help="One more run of the base: with three on each side, also what runs of a job "
            "differ by counts as chance.",
        ),
    ] = None,
    new: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="One more run of what is compared with it."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR|FILE",
            help="Write report.json and report.html into this folder; or one file, .html or "
            ".json.",
        ),
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
    told: options.Told,
    strict: Strict = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 - main() looks for it
) -> None:
    """Say what changed between two runs, whether it is more than chance, and where it is from.

    The change of a mean step is split into terms that add up to it; its 95%
    interval is bootstrapped over steps, or over runs where there are three
    on a side. Operators are matched by name, shapes and data type,
    collectives by ranks, data type and size.
    """
    given = runs or []
    if len(given) not in (0, 2):
        raise UsageError(
            f"compare takes two runs, BASE and NEW, not {len(given)}; put a glob in quotes, "
            f"and more runs behind --base and --new"
        )
    sides = [*given[:1], *(base or [])], [*given[1:], *(new or [])]
    wanted = None if steps is None else parse_steps(steps)
    with reading(
        [*sides[0], *sides[1]], jobs=jobs, engine=engine, cache=cache, no_cache=no_cache
    ) as how:
        from traceparse.engine import compare as run_comparison

        asked = told.arguments()
        with working(), shown_progress(quiet=quiet) as progress:
            found = run_comparison(
                *sides,
                steps=wanted,
                strict=strict,
                jobs=how.jobs,
                engine=how.engine,
                cache=how.cache,
                progress=progress,
                **asked,
            )
    with working():
        show_compared(found, as_json=as_json, quiet=quiet, out=out)
