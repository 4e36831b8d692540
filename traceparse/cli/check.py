"""``traceparse check``: a gate for CI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from traceparse.cli import options
from traceparse.cli.phases import working
from traceparse.cli.progress import shown_progress
from traceparse.cli.reading import Cache, Debug, Engine, Jobs, NoCache, Quiet, Strict, reading
from traceparse.cli.show import show_checked
from traceparse.cli.words import parse_steps
from traceparse.errors import UsageError

if TYPE_CHECKING:
    from traceparse.run import Report

__all__ = ["check"]

_FAILED = 3


@options.telling
def check(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Trace files, folders (searched), globs or URLs of one job; or its "
            "report.json.",
        ),
    ],
    *,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPR",
            help="Fail where this holds, such as 'mfu < 0.35', 'comm_ratio > 10%', "
            "'max(devices.window.idle_ns) > 5 ms', \"finding('straggler')\"; or where it is "
            "unknown. Also those of the configuration hold.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML with a table \\[tool.traceparse.check]: `fail-on`, a list, and options "
            "by their names here. By default the nearest pyproject.toml that has one.",
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML into this file.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")
    ] = False,
    steps: Annotated[
        str | None, typer.Option(metavar="3-5", help="Check these steps only.")
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=0, help="Rank of a trace that does not say it itself.")
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
    r"""Fail (status 3) where a job is worse than its limits allow.

    A name alone is a field of utilization, scaling_loss or run; others are
    written as they stand in report.json: devices\[0].window.idle_ns.
    Compare with < <= > >= == !=, join with and, or, not, calculate with
    + - * /, and write units: %, us, ms, s, MB, GB/s, TFLOP/s. Lists have
    max, min, mean, sum and count; a condition chooses among their entries:
    count(findings\[severity == 'error']) > 0. finding('straggler') asks for
    one by its code. What is unknown (null) fails, with the reason.
    """
    from traceparse.run.check import check as run_check
    from traceparse.run.check import found_settings, read_settings, require_conditions

    settings = read_settings(config) if config else found_settings(Path.cwd())
    conditions = [*settings.fail_on, *(fail_on or [])]
    require_conditions(conditions)
    report = _stored(paths, told, steps=steps, rank=rank)
    if report is None:
        kept = settings.options
        wanted = steps or kept.get("steps")
        with reading(paths, jobs=jobs, engine=engine, cache=cache, no_cache=no_cache) as how:
            from traceparse.engine import analyze

            asked = _with_kept(told, kept).arguments()
            with working(), shown_progress(quiet=quiet) as progress:
                report = analyze(
                    paths,
                    steps=None if wanted is None else parse_steps(wanted),
                    rank=rank,
                    strict=strict or kept.get("strict", False),
                    jobs=how.jobs,
                    engine=how.engine,
                    cache=how.cache,
                    progress=progress,
                    **asked,
                )
    with working():
        checked = run_check(report, conditions)
        show_checked(checked, as_json=as_json, quiet=quiet, junit=junit)
    if not checked.is_passed:
        raise typer.Exit(_FAILED)


def _with_kept(told: options.Told, kept: Mapping[str, Any]) -> options.Told:
    """Add options of the configuration; what the command line gives comes first."""
    plain = options.Told()
    added: dict[str, Any] = {
        field.name: Path(kept[field.name]) if field.name == "model" else kept[field.name]
        for field in fields(options.Told)
        if field.name in kept and getattr(told, field.name) == getattr(plain, field.name)
    }
    return replace(told, **added)


def _stored(
    paths: list[str], told: options.Told, *, steps: str | None, rank: int | None
) -> Report | None:
    """Read the report that was given in the place of traces, if one was."""
    from traceparse.engine.stored import stored_in

    path = stored_in(paths)
    if path is None:
        return None
    if told != options.Told() or steps is not None or rank is not None:
        raise UsageError(
            f"{path}: is a stored report, which no option of reading traces changes any more; "
            f"leave them out, or give the traces"
        )
    from traceparse.run.stored_report import read_report

    return read_report(path)
