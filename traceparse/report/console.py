"""Lines and cells on a terminal: never cut, never more than its encoding can write."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from traceparse.report.safe import encodable

__all__ = ["cell", "natural_width", "say"]

_UNBOUNDED = 10_000


def cell(console: Console, text: str, style: str = "") -> Text:
    """Return a text as this console can write it."""
    return Text(encodable(text, console.encoding), style)


def say(
    console: Console, text: str, style: str = "", *, lead: str = "", lead_style: str = "yellow"
) -> None:
    """Print one line: wrapped between words for people, whole for whatever reads a pipe."""
    line = Text()
    if lead:
        line.append_text(cell(console, f"{lead} ", lead_style))
    line.append_text(cell(console, text, style))
    console.print(line, soft_wrap=not console.is_terminal)


def natural_width(table: Table, console: Console) -> int:
    """Return how wide a table is where nothing limits it."""
    options = console.options.update(max_width=_UNBOUNDED)
    return Measurement.get(console, options, table).maximum
