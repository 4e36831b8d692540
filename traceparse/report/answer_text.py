"""What a query found, as a table for people: cells cut, and what was left out said."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from traceparse.report.answer import plain, readable
from traceparse.report.lines import as_text, print_whole, say
from traceparse.report.safe import visible
from traceparse.tables import ArrowTable
from traceparse.units import UNKNOWN, format_number_of

__all__ = ["render"]

_WIDEST = 60  # characters of a cell
_GAP = 1  # between columns
_EXACT = 1e15  # what is larger is written with an exponent


def render(table: ArrowTable, console: Console, *, most: int) -> None:
    """Print the first rows, all if ``most`` is 0, and of them the columns that fit.

    What no terminal limits is as wide as it is. A plan, which is one text of many lines, is
    printed as it is.
    """
    if table.column_names == ["explain_key", "explain_value"]:
        for text in table["explain_value"].to_pylist():
            for line in text.splitlines():
                say(console, line, is_cut=True)
        return
    shown = readable(table.slice(0, most or table.num_rows))
    columns = [_texts(column) for column in shown.columns]
    fitting = len(columns)
    if console.is_terminal:
        fitting = _fitting(_widths(shown.column_names, columns), console.width)
    print_whole(console, _drawn(shown.select(range(fitting)), columns[:fitting], console))
    for line in _left_out(table, columns, fitting):
        say(console, line, "dim")


def _drawn(table: ArrowTable, columns: Sequence[Sequence[str]], console: Console) -> Table:
    drawn = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        drawn.add_column(
            as_text(console, _cut(name)),
            justify="right" if _is_number(kind) else "left",
            no_wrap=True,
            header_style="bold",
        )
    for row in zip(*columns, strict=True):
        drawn.add_row(*(as_text(console, _cut(text)) for text in row))
    return drawn


def _left_out(
    table: ArrowTable, columns: Sequence[Sequence[str]], fitting: int
) -> Iterator[str]:
    """Say what of a table is not there, and what to do to see it."""
    if columns and (rows := table.num_rows - len(columns[0])):
        yield f"… {format_number_of(rows, 'more row')}: --rows 0 prints all {table.num_rows:,}"
    if names := table.column_names[fitting:]:
        more = format_number_of(len(names), "more column")
        yield f"… {more} ({', '.join(names)}): --format csv or json"
    if any(len(text) > _WIDEST for column in columns[:fitting] for text in column):
        yield f"… cells are cut after {_WIDEST} characters: --format csv or json"


def _texts(column: pa.ChunkedArray) -> list[str]:
    return [_text(value, column.type) for value in column.to_pylist()]


def _text(value: Any, kind: pa.DataType) -> str:  # noqa: ANN401 - of any column
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        return _real(value)
    found = plain(value, kind)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _real(value: float) -> str:
    """Write a number with six digits, and all of those before the point."""
    if math.isfinite(value) and 1e6 <= abs(value) < _EXACT:
        return f"{value:.0f}"
    return f"{value:.6g}"


def _cut(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 1]}…"


def _widths(names: Sequence[str], columns: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(len(_cut(text)) for text in (name, *column))
        for name, column in zip(names, columns, strict=True)
    ]


def _fitting(widths: Sequence[int], room: int) -> int:
    """Return how many of the first columns have room; one, if none has."""
    used = 0
    for number, width in enumerate(widths):
        used += width + _GAP
        if used - _GAP > room and number:
            return number
    return len(widths)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
