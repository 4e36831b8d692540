"""The figures of tools/bench.py, the table of them, and what is promised. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tools.bench_runs import Result

__all__ = [
    "PROCESS_COLUMNS",
    "PROCESS_KEYS",
    "Column",
    "Figures",
    "Goal",
    "fixed",
    "goals_text",
    "medians",
    "over",
    "process_figures",
    "table",
]

Figures: TypeAlias = dict[str, float | None]


class Goal(NamedTuple):
    """A figure that has been promised. ``None`` is unknown and so not met."""

    text: str
    value: float | None
    limit: float
    is_least: bool

    @property
    def is_met(self) -> bool:
        """Say whether the promise is kept."""
        if self.value is None:
            return False
        return self.value >= self.limit if self.is_least else self.value <= self.limit


class Column(NamedTuple):
    """A figure's place in a table: its title, its name, and how it is written."""

    title: str
    key: str
    form: Callable[[float], str]


def fixed(decimals: int, *, scale: float = 1) -> Callable[[float], str]:
    """Return what writes numbers with so many decimals."""
    return lambda value: f"{value * scale:,.{decimals}f}"


PROCESS_KEYS = ("process_s", "process_cpu_s", "peak_rss_bytes")
PROCESS_COLUMNS = (
    Column("wall s", "process_s", fixed(3)),
    Column("spread %", "spread_ratio", fixed(0, scale=100)),
    Column("CPU s", "process_cpu_s", fixed(3)),
    Column("peak RSS MB", "peak_rss_bytes", fixed(0, scale=1e-6)),
)


def medians(result: Result, keys: Iterable[str], *, spread_of: str) -> Figures:
    """Return the medians of these figures, and how far the runs were apart in one."""
    found: Figures = {key: result.median(key) for key in keys}
    return {**found, "spread_ratio": result.spread(spread_of)}


def process_figures(results: Mapping[str, Result]) -> dict[str, Figures]:
    """Return the medians of whole processes."""
    return {
        name: medians(result, PROCESS_KEYS, spread_of="process_s")
        for name, result in results.items()
    }


def over(numerator: float | None, denominator: float | None) -> float | None:
    """Return a ratio, unknown if either of the two is."""
    return numerator / denominator if numerator is not None and denominator else None


def table(head: str, columns: Sequence[Column], rows: Mapping[str, tuple[str, Figures]]) -> str:
    """Write one line a row, as a Markdown table that also reads well as it is.

    ``rows`` are statuses and figures by title; only those of status ``ok`` have figures.
    """
    lines = [[head, *(column.title for column in columns)]]
    for title, (status, row) in rows.items():
        if status == "ok":
            cells = [_cell(column, row) for column in columns]
        else:
            cells = [status.partition(":")[0], *[""] * (len(columns) - 1)]
        lines.append([title, *cells])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(cells, widths) for cells in [lines[0], rule, *lines[1:]])


def _cell(column: Column, row: Figures) -> str:
    value = row.get(column.key)
    return "-" if value is None else column.form(value)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return f"| {' | '.join([first, *rest])} |"


def goals_text(goals: Sequence[Goal]) -> str:
    """Write one line a goal: what, how much, how much it must be, whether it is."""
    return "\n".join(
        f"{goal.text}: {'unknown' if goal.value is None else f'{goal.value:.2f}'} "
        f"({'at least' if goal.is_least else 'at most'} {goal.limit:g}: "
        f"{'met' if goal.is_met else 'NOT MET'})"
        for goal in goals
    )
