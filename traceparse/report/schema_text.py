"""The tables, as text for people: one block a table, one line a column.

Those of a run (:func:`traceparse.read`) by their names, then those of a report by their files.
"""

from __future__ import annotations

from traceparse.report_tables import REPORT_TABLES
from traceparse.tables import TABLES, Table

__all__ = ["render"]

_IN_SQL = """\
In SQL (`traceparse sql`), tables of a run have these names, and those of a report the names of
their files in the schema report: report.steps. Where no table of a run is called the same, the
name is enough: devices.
"""


def render() -> str:
    """Write every table and column: type, unit, meaning."""
    blocks = [_table(name, table) for name, table in TABLES.items()]
    files = [(f"tables/{name}.parquet", table) for name, table in REPORT_TABLES.items()]
    return "\n".join([*blocks, *(_table(name, table) for name, table in files), _IN_SQL])


def _table(name: str, table: Table) -> str:
    rows = [
        (column.name, str(column.type).partition("<")[0], column.unit, column.meaning)
        for column in table.columns
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    lines = [
        f"  {name:{widths[0]}}  {kind:{widths[1]}}  {unit:{widths[2]}}  {meaning}".rstrip()
        for name, kind, unit, meaning in rows
    ]
    return "\n".join([f"{name}: {table.meaning}", *lines, ""])
