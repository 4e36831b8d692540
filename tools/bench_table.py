"""The figures of tools/bench.py and the table of them. Computes ratios; runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tools.bench_child import ENGINES
from tools.bench_runs import Result

__all__ = ["Figures", "Goal", "figures", "goals_text", "table"]

Figures: TypeAlias = dict[str, float | None]
_MEDIANS = (
    "load_s",
    "cpu_s",
    "import_s",
    "process_s",
    "process_cpu_s",
    "peak_rss_bytes",
    "imported_rss_bytes",
    "mapped_bytes",
    "rows",
)


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
        return self.value >= self.limit if self.is_least else self.value < self.limit


def figures(results: Mapping[str, Result], uncompressed_bytes: int) -> dict[str, Figures]:
    """Return what each engine's row says: medians, rates and ratios.

    ``times_hta`` is how many times as fast as HTA: its median load time over this one's;
    ``times_hta_cpu`` and ``times_hta_process`` the same of the load's CPU time and of whole
    processes, imports and all. ``rss_ratio`` is peak memory over uncompressed size.
    """
    rows = {name: _medians(result, uncompressed_bytes) for name, result in results.items()}
    for row in rows.values():
        for reference in ("hta", "json"):
            other = rows.get(reference, {})
            for suffix, key in (("", "load_s"), ("_cpu", "cpu_s"), ("_process", "process_s")):
                row[f"times_{reference}{suffix}"] = _over(other.get(key), row[key])
    return rows


def _medians(result: Result, uncompressed_bytes: int) -> Figures:
    row: Figures = {key: result.median(key) for key in _MEDIANS}
    row["load_spread_ratio"] = result.spread("load_s")
    row["bytes_per_s"] = _over(uncompressed_bytes, row["load_s"])
    row["rss_ratio"] = _over(row["peak_rss_bytes"], uncompressed_bytes)
    return row


def _over(numerator: float | None, denominator: float | None) -> float | None:
    return numerator / denominator if numerator is not None and denominator else None


class _Column(NamedTuple):
    title: str
    key: str
    form: Callable[[float], str]


def _fixed(decimals: int, *, scale: float = 1) -> Callable[[float], str]:
    return lambda value: f"{value * scale:,.{decimals}f}"


_COLUMNS = (
    _Column("load s", "load_s", _fixed(3)),
    _Column("spread %", "load_spread_ratio", _fixed(0, scale=100)),
    _Column("CPU s", "cpu_s", _fixed(3)),
    _Column("MB/s", "bytes_per_s", _fixed(0, scale=1e-6)),
    _Column("x HTA", "times_hta", _fixed(1)),
    _Column("x json.load", "times_json", _fixed(1)),
    _Column("peak RSS MB", "peak_rss_bytes", _fixed(0, scale=1e-6)),
    _Column("mapped MB", "mapped_bytes", _fixed(0, scale=1e-6)),
    _Column("RSS / size", "rss_ratio", _fixed(2)),
    _Column("import s", "import_s", _fixed(3)),
    _Column("process s", "process_s", _fixed(3)),
    _Column("process x HTA", "times_hta_process", _fixed(1)),
    _Column("rows", "rows", _fixed(0)),
)


def table(results: Mapping[str, Result], rows: Mapping[str, Figures]) -> str:
    """Write one line an engine, as a Markdown table that also reads well as it is."""
    lines = [["engine", *(column.title for column in _COLUMNS)]]
    for name, result in results.items():
        if result.status == "ok":
            cells = [_cell(column, rows[name]) for column in _COLUMNS]
        else:
            cells = [result.status.partition(":")[0], *[""] * (len(_COLUMNS) - 1)]
        lines.append([ENGINES[name].title, *cells])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(cells, widths) for cells in [lines[0], rule, *lines[1:]])


def _cell(column: _Column, row: Figures) -> str:
    value = row[column.key]
    return "-" if value is None else column.form(value)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return f"| {' | '.join([first, *rest])} |"


def goals_text(goals: Sequence[Goal]) -> str:
    """Write one line a goal: what, how much, how much it must be, whether it is."""
    return "\n".join(
        f"{goal.text}: {'unknown' if goal.value is None else f'{goal.value:.2f}'} "
        f"({'at least' if goal.is_least else 'below'} {goal.limit:g}: "
        f"{'met' if goal.is_met else 'NOT MET'})"
        for goal in goals
    )
