"""``traceparse demo``: train a small model under capture, and analyze what it did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import traceparse
from traceparse.cli import options
from traceparse.cli.phases import working
from traceparse.cli.show import show_report
from traceparse.cli.words import parse_formats

__all__ = ["demo"]


def demo(
    *,
    ranks: Annotated[int, typer.Option(help="Processes to train on, each one rank.")] = 2,
    out: Annotated[
        Path, typer.Option(help="Directory of the traces, the log and the report.")
    ] = Path("demo-out"),
    format: options.Format = None,
    price: options.Price = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON and nothing else.")
    ] = False,
    full: options.Full = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the result and nothing else.")
    ] = False,
) -> None:
    """Train a small model on CPU under capture, then analyze it, beside this host's peak."""
    from traceparse.capture.launch import run_demo

    formats = parse_formats(format, out=out)
    if not quiet:
        typer.echo(f"training a small model on {ranks} CPU ranks", err=True)
    with working():
        traces = run_demo(out, ranks=ranks)
        report = traceparse.analyze([traces], peak="measured", price=price)
        show_report(report, as_json=as_json, quiet=quiet, out=out, formats=formats, full=full)
