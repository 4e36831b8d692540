"""What changed between two runs, in a terminal: a verdict, terms, operators, collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from traceparse.report.compare_words import (
    Row,
    collective_rows,
    operator_rows,
    reasons,
    side_lines,
    term_rows,
    verdict,
)
from traceparse.report.lines import as_text, numbers, print_whole, say
from traceparse.report.notes import note_lines
from traceparse.run import Comparison
from traceparse.units import format_number_of

__all__ = ["render", "render_notes"]

_MOST_ROWS: Final = 8
_STYLES: Final = {"slower": "bold red", "faster": "bold green"}
_INDENT: Final = 2


def render(found: Comparison, console: Console) -> None:
    """Print whether a step takes longer and why, then what changed, most first."""
    say(console, verdict(found), _STYLES.get(found.verdict, "bold"))
    for line in reasons(found):
        say(console, line)
    for lead, line in zip(("base:", "new: "), side_lines(found), strict=True):
        say(console, line, "dim", lead=lead, lead_style="dim")
    console.print()
    _print_terms(found, console)
    _print_rows(console, "Operators", "ms of a mean step", operator_rows(found, _MOST_ROWS))
    rows = collective_rows(found, _MOST_ROWS)
    _print_rows(console, "Collectives", "exposed ms of a mean step", rows)


def render_notes(found: Comparison, console: Console) -> None:
    """Print what makes the figures less sure, a line each."""
    for line in note_lines(found.notes):
        say(console, line.text, lead=f"{line.code}:", lead_style="yellow")


def _print_terms(found: Comparison, console: Console) -> None:
    table = numbers(["base ms", "new ms", "change", "of step", "significant"], first="term")
    for row in term_rows(found):
        cells = (row.name, row.base, row.new, row.delta, row.share, row.is_significant)
        table.add_row(
            *(as_text(console, cell) for cell in cells),
            style="bold" if row.name == "step" else "",
        )
    print_whole(console, table)


def _print_rows(
    console: Console, title: str, unit: str, found: tuple[Sequence[Row], int]
) -> None:
    rows, left = found
    if not rows:
        return
    console.print()
    say(console, f"that changed, {unit}", lead=title, lead_style="bold")
    for row in rows:
        change = f" ({row.change})" if row.change else ""
        lead = f"{row.delta:>9} {row.share:>7}"
        say(console, f"{row.name}{change}", lead=lead, lead_style="bold")
        say(console, "; ".join(row.details), "dim", indent=len(lead) + 1)
    if left:
        say(console, f"and {format_number_of(left, 'more row')} in the JSON", "dim")
