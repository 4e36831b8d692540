"""Tables of the page as plain data: their cells, and where report.json has each number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from traceparse.report.bars import Bar
from traceparse.units import (
    UNKNOWN,
    PerSteps,
    format_bytes,
    format_count,
    format_ms,
    format_percent,
    format_ratio,
    format_tflop,
    format_usd,
)

__all__ = [
    "AnyCell",
    "Cell",
    "Column",
    "Figure",
    "Picture",
    "Table",
    "Words",
    "count",
    "megabytes",
    "ms",
    "percent",
    "ratio",
    "tera",
    "usd",
    "without_unknown",
]

Align = Literal["text", "number", "picture"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A number as text, the number that it is sorted by, and its path in ``report.json``."""

    kind: ClassVar[str] = "number"
    text: str
    value: float | None = None
    field: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """Text of a cell, what stands muted below it, and where it leads."""

    kind: ClassVar[str] = "text"
    text: str
    below: str = ""
    href: str = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A bar in a cell; ``None`` where there is nothing to draw."""

    kind: ClassVar[str] = "picture"
    bar: Bar | None


AnyCell: TypeAlias = Cell | Words | Picture


@dataclass(frozen=True, slots=True)
class Column:
    """A heading: what it says, the definition behind it (a key or a text), how cells stand."""

    text: str
    definition: str = ""
    align: Align = "number"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; the first cell of a row names it.

    There was no room for ``left`` rows more, and ``which`` says which are here.
    """

    key: str
    label: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[AnyCell]]
    left: int = 0
    what: str = "row"
    is_sortable: bool = True
    which: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A key figure: its name, number, unit or remark, and what is thought of it."""

    name: str
    definition: str
    cell: Cell
    below: str = ""
    key: str = ""
    band: str = ""
    source: str = ""


def without_unknown(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell | Words]]
) -> tuple[list[Column], list[list[Cell | Words]]]:
    """Leave out the columns of which no row knows anything."""
    kept = [
        place
        for place in range(len(columns))
        if not rows or any(row[place].text != UNKNOWN for row in rows)
    ]
    return [columns[place] for place in kept], [[row[place] for place in kept] for row in rows]


def ms(ns: int | None, decimals: int, path: str = "") -> Cell:
    """Write a time in ms."""
    return Cell(format_ms(ns, decimals), ns, path)


def percent(part: int | None, whole: int | None) -> Cell:
    """Write a share of a span. The report has its parts, and not the share itself."""
    value = None if part is None or not whole else part / whole
    return Cell(format_percent(part, whole), value)


def ratio(value: float | None, path: str = "") -> Cell:
    """Write a ratio in percent."""
    return Cell(format_ratio(value), value, path)


def count(value: int | None, path: str = "") -> Cell:
    """Write a count."""
    return Cell(format_count(value), value, path)


def megabytes(value: int | None, path: str = "") -> Cell:
    """Write a number of bytes in MB, with the unit."""
    return Cell(format_bytes(value), value, path)


def tera(value: float | None, path: str = "") -> Cell:
    """Write FLOP, or FLOP/s, in units of 10^12."""
    return Cell(format_tflop(value), value, path)


def usd(value: float | None, path: str = "", priced: PerSteps | None = None) -> Cell:
    """Write an amount of money; one that a step costs as that of so many steps."""
    return Cell(format_usd(priced.amount(value) if priced else value), value, path)
