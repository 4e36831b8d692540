"""Tables as CSV that a spreadsheet may open: nothing in it is a formula, or moves a cursor."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from traceparse.report.safe import visible
from traceparse.tables import ArrowTable

__all__ = ["Written", "csv_text", "scalar_cell", "text_cell"]

Written: TypeAlias = Callable[[Any, pa.DataType], object]
_FORMULA = ("=", "+", "-", "@")
_LONGEST = 32_000  # characters that a cell of a spreadsheet takes


def csv_text(table: ArrowTable, written: Written) -> str:
    """Return a table as CSV, each value as ``written`` has it, below the columns' names."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(text_cell, table.column_names))
    kinds = table.schema.types
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        writer.writerow(map(written, row, kinds))
    return out.getvalue()


def scalar_cell(value: Any, kind: pa.DataType) -> object:  # noqa: ANN401 - of any column
    """Write what is no list: unknown is empty, counts by name are JSON."""
    if value is None:
        return ""
    if pa.types.is_map(kind):
        return json.dumps({visible(str(name)): number for name, number in value})
    return text_cell(value) if isinstance(value, str) else value


def text_cell(text: str) -> str:
    """Make a name visible, and put an apostrophe before what would be taken for a formula."""
    text = visible(text, _LONGEST)
    return f"'{text}" if text.startswith(_FORMULA) else text
