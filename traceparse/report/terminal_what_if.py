"""How long a step would take under other conditions, in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from traceparse.report.lines import as_text, natural_width, say
from traceparse.report.what_if import HOW, changes_of
from traceparse.run import Report

__all__ = ["render_what_if"]


def render_what_if(report: Report, console: Console) -> None:
    """Print a row a change; nothing where none could be replayed."""
    changes = changes_of(report)
    if not changes:
        return
    console.print()
    say(console, f" {HOW}: ms", lead="What if", lead_style="bold")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("", overflow="fold")
    for title in ("step", "wins", "by subtraction"):
        table.add_column(title, justify="right", no_wrap=True, header_style="bold")
    for one in changes:
        texts = (one.name, one.step, one.won, one.subtracted)
        table.add_row(*(as_text(console, text) for text in texts))
    table.width = natural_width(table, console)
    console.print(table, crop=False)
