"""``traceparse accelerators``: the peak table, with sources."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["accelerators"]


def accelerators(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Explain those of this name.")
    ] = None,
) -> None:
    """Show what accelerators can do at most, and where each number is from."""
    from rich.console import Console

    from traceparse import work
    from traceparse.report import accelerators_text

    if name is None:
        accelerators_text.render_table(work.accelerators(), Console())
    else:
        accelerators_text.render_entries(work.find(name), Console())
