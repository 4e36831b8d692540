"""The report as tables, for programs: one file a table, Parquet or CSV.

Tables and columns are those of :mod:`traceparse.report_tables`; all of them are always
written, those of what is not known without rows. Parquet has names as the trace has them. In
CSV, which people open in spreadsheets, names are made visible, and one that a spreadsheet
would take for a formula (it begins with ``=``, ``+``, ``-`` or ``@``) has an apostrophe put
before it.
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from traceparse.report.csv_text import csv_text, scalar_cell
from traceparse.run import Report
from traceparse.run.tabled import tables_of
from traceparse.units import format_ranges

__all__ = ["render_csv", "render_parquet", "tables_of"]


def render_parquet(report: Report) -> dict[str, bytes]:
    """Return the tables as Parquet files, by their names beside the report."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - a tenth of a second for who wants none

    files = {}
    for name, table in tables_of(report).items():
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        files[f"tables/{name}.parquet"] = buffer.getvalue()
    return files


def render_csv(report: Report) -> dict[str, str]:
    """Return the tables as CSV files, by their names beside the report.

    Unknown is empty. A list of ranks is written ``0-2,5``, counts by name as JSON.
    """
    return {
        f"tables/{name}.csv": csv_text(table, _cell)
        for name, table in tables_of(report).items()
    }


def _cell(value: Any, kind: pa.DataType) -> object:  # noqa: ANN401 - of any column
    if value is not None and pa.types.is_list(kind):
        return format_ranges(value)
    return scalar_cell(value, kind)
