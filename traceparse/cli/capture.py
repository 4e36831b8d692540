"""``traceparse capture``: run a training command as it is, and record some of its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceparse.cli.words import parse_steps

__all__ = ["capture"]

_PATIENCE_S = 120.0
_JOB = "What the traces are told of the job"


def _told(metavar: str, words: str) -> object:
    return typer.Option(metavar=metavar, help=words, rich_help_panel=_JOB, min=1)


def capture(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND ...", help="What trains, as it is.")
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Directory of the traces.")],
    steps: Annotated[
        str, typer.Option(metavar="FIRST-LAST", help="Steps to record, counted from 0.")
    ] = "10-12",
    step_on: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A step ends when this function returns, not when optimizers have stepped.",
        ),
    ] = None,
    ranks: Annotated[
        str, typer.Option(metavar="all|node|LIST", help="Who records: node is one a node.")
    ] = "all",
    stacks: Annotated[bool, typer.Option("--stacks", help="Record Python stacks too.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Record allocations too.")] = False,
    count_flop: Annotated[
        bool,
        typer.Option(
            "--count-flop", help="Count the model's FLOP in one slow step before the recorded."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace traces that DIR has.")
    ] = False,
    with_host: Annotated[
        bool, typer.Option("--with-host", help="Record host name, command and folder too.")
    ] = False,
    model_flop_per_step: Annotated[
        int | None, _told("F", "FLOP the model needs for a step of the whole job.")
    ] = None,
    params: Annotated[int | None, _told("N", "Parameters of the model.")] = None,
    tokens_per_step: Annotated[
        int | None, _told("D", "Tokens of a step of the whole job.")
    ] = None,
    samples_per_step: Annotated[
        int | None, _told("S", "Samples of a step of the whole job.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing of our own.")] = False,
) -> None:
    """Run a training command with capture on, and end with its exit status.

    Its processes find the hook through their environment (PYTHONPATH); nothing of the command
    changes. With srun and mpirun the environment must reach the ranks, as it does by default
    with srun.
    """
    from traceparse.capture import command as captured
    from traceparse.capture.asked import asked_for
    from traceparse.capture.environment import Told
    from traceparse.capture.functions import Named

    wanted = parse_steps(steps)
    asked_for(out, steps=wanted, ranks=ranks, facts={})  # before anything runs
    if step_on is not None:
        Named(step_on)
    what = Told(
        str(out.absolute()),
        (wanted[0], wanted[-1]),
        step_on=step_on,
        ranks=ranks,
        stacks=stacks,
        memory=memory,
        overwrite=overwrite,
        with_host=with_host,
        count_flop=count_flop,
        model_flop_per_step=model_flop_per_step,
        params=params,
        tokens_per_step=tokens_per_step,
        samples_per_step=samples_per_step,
    )
    status = captured.run_captured(command, what)
    left = captured.wait_until_kept(out, patience_s=_PATIENCE_S)
    if not quiet:
        for text, traces in captured.unsaid_in(out).items():
            typer.echo(f"traceparse: {_named(traces)}: {text}", err=True)
        _say(out, captured.kept_in(out), left, steps)
    raise typer.Exit(captured.end_as(status))


def _named(traces: list[Path]) -> str:
    more = f" and {len(traces) - 1:,} more" if len(traces) > 1 else ""
    return f"{traces[0]}{more}"


def _say(out: Path, kept: list[Path], left: list[Path], steps: str) -> None:
    from traceparse.units import format_number_of

    for raw in left:
        typer.echo(
            f"traceparse: {raw}: was not packed; as NAME.json it can be analyzed", err=True
        )
    if kept:
        typer.echo(
            f"traceparse: {out}: {format_number_of(len(kept), 'trace')}; "
            f"now: traceparse analyze {out}",
            err=True,
        )
    elif not left:
        typer.echo(
            f"traceparse: {out}: no trace was written: no process of the command ended step "
            f"{steps.partition('-')[0]}, as far as torch's optimizers tell; ask for earlier "
            "steps, or name the function that is a step with --step-on MODULE:FUNCTION",
            err=True,
        )
