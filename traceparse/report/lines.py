"""Lines and tables in a terminal, whatever the text in them was."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from traceparse.report.safe import encodable, visible

__all__ = ["as_text", "natural_width", "numbers", "print_whole", "say"]

_UNBOUNDED = 10_000


def as_text(console: Console, text: str, style: str = "") -> Text:
    """Return a text that is shown as it is, in what a console can write."""
    return Text(encodable(visible(text), console.encoding), style)


def say(
    console: Console,
    text: str,
    style: str = "",
    *,
    lead: str = "",
    lead_style: str = "",
    indent: int = 0,
    is_cut: bool = False,
) -> None:
    """Print one line: wrapped between words for people, whole for whatever reads a pipe.

    For people it may be cut instead where the terminal ends.
    """
    line = Text()
    if lead:
        line.append_text(as_text(console, f"{lead} ", lead_style))
    line.append_text(as_text(console, text, style))
    if console.is_terminal and is_cut:
        console.print(line, no_wrap=True, overflow="ellipsis")
    elif console.is_terminal and indent:
        console.print(Padding(line, (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent) + line, soft_wrap=not console.is_terminal)


def natural_width(table: Table, console: Console) -> int:
    """Return how wide a table is where nothing limits it."""
    options = console.options.update(max_width=_UNBOUNDED)
    return Measurement.get(console, options, table).maximum


def numbers(titles: Sequence[str], *, first: str | None = None) -> Table:
    """Return an empty table of numbers, which stand right; a first column of names, left."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    if first is not None:
        table.add_column(first, no_wrap=True, header_style="bold")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True, header_style="bold")
    return table


def print_whole(console: Console, table: Table) -> None:
    """Print a table as wide as it is, whatever the console has room for."""
    table.width = natural_width(table, console)
    console.print(table, crop=False)
