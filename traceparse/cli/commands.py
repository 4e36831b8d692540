"""The commands by name: what the command line consists of."""

from __future__ import annotations

from typing import Annotated

import typer

from traceparse import __version__
from traceparse.cli.accelerators import accelerators
from traceparse.cli.analyze import analyze
from traceparse.cli.capture import capture
from traceparse.cli.check import check
from traceparse.cli.compare import compare
from traceparse.cli.demo import demo
from traceparse.cli.mfu import mfu
from traceparse.cli.overlay import overlay
from traceparse.cli.scaling import scaling
from traceparse.cli.schema import schema
from traceparse.cli.sql import sql

__all__ = ["app"]

app = typer.Typer(
    name="traceparse",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        print(f"traceparse {__version__}")
        raise typer.Exit


@app.callback()
def traceparse(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Where does a training job's time go? An exact account, from torch.profiler traces."""


app.command()(analyze)
# What follows the first word that is none of ours belongs to the command that is run.
app.command(context_settings={"allow_interspersed_args": False})(capture)
app.command()(demo)
app.command()(scaling)
app.command()(compare)
app.command()(check)
app.command()(sql)
app.command()(overlay)
app.command()(mfu)
app.command()(accelerators)
app.command()(schema)
