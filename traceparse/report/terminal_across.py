"""What ranks did together, in a terminal: clock, scaling loss, waiting, collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from traceparse.report.across import (
    clock_line,
    is_split,
    link_line,
    loss_lines,
    rows_of,
    waited_for,
    why_not_split,
)
from traceparse.report.lines import as_text, natural_width, say
from traceparse.run import Report
from traceparse.units import format_number_of

__all__ = ["render_across"]

_TITLE = "Across ranks"
_MAX_ROWS = 8
_NAME = "collective"
_FEWEST_FOR_NAME = 10  # columns that a collective's name needs at least


def render_across(report: Report, console: Console) -> None:
    """Print what ranks cost each other; nothing where nothing communicated."""
    if not report.collectives:
        return
    console.print()
    if not is_split(report):
        say(console, why_not_split(report), lead=f"{_TITLE} ", lead_style="bold")
        if len(report.devices) < 2:
            return
    else:
        say(console, clock_line(report), lead=f"{_TITLE} ", lead_style="bold")
        for line in loss_lines(report):
            say(console, line)
        if who := waited_for(report):
            say(console, who, lead="Waited for:")
    _print_collectives(report.collectives, console)
    if link := link_line(report):
        say(console, link, "dim")


def _print_collectives(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print what each kind took: a name folds where there is no room, and no number is cut."""
    shown = rows_of(rows, _MAX_ROWS)
    console.print()
    of_what = " ms, wait and exposed of all ranks; busbw in GB/s, or latency"
    say(console, of_what, lead="Collectives that cost most", lead_style="bold")
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(_NAME, overflow="fold", header_style="bold")
    for title in ("ranks", "dtype"):
        table.add_column(title, no_wrap=True, header_style="bold")
    for title in ("size", "count", "transfer", "wait", "exposed", "busbw"):
        table.add_column(title, justify="right", no_wrap=True, header_style="bold")
    for one in shown:
        texts = (one.collective, one.ranks, one.dtype, one.size, one.count)
        times = (one.transfer, one.wait, one.exposed, one.busbw)
        table.add_row(*(as_text(console, text) for text in (*texts, *times)))
    longest = max(len(text) for text in (_NAME, *(one.collective for one in shown)))
    natural = natural_width(table, console)
    table.width = min(natural, max(console.width, natural - longest + _FEWEST_FOR_NAME))
    console.print(table, crop=False)
    if left := len(rows) - len(shown):
        say(console, f"… {format_number_of(left, 'more row')} in report.json", "dim")
