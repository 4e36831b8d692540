"""The tables, as text for people: one block a table, one line a column."""

from __future__ import annotations

from traceparse.tables import TABLES, Table

__all__ = ["render"]


def render() -> str:
    """Write every table and column of :mod:`traceparse.tables`: type, unit, meaning."""
    return "\n".join(_table(table) for table in TABLES.values())


def _table(table: Table) -> str:
    rows = [
        (column.name, str(column.type).partition("<")[0], column.unit, column.meaning)
        for column in table.columns
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    lines = [
        f"  {name:{widths[0]}}  {kind:{widths[1]}}  {unit:{widths[2]}}  {meaning}".rstrip()
        for name, kind, unit, meaning in rows
    ]
    return "\n".join([f"{table.name}: {table.meaning}", *lines, ""])
