"""What a query found, as a file for programs: JSON, CSV or Parquet.

Whole numbers are exact, however large. What is unknown is ``null`` in JSON, and empty in CSV.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from traceparse.errors import UsageError, one_line
from traceparse.report.csv_text import csv_text, text_cell
from traceparse.tables import ArrowTable

__all__ = ["plain", "readable", "render_csv", "render_json", "write_parquet"]


def render_json(table: ArrowTable) -> str:
    """Return rows as a JSON list of objects, one a line, in ASCII.

    JSON has neither infinities nor NaN: they are ``null``. Instants and durations are text,
    bytes are hexadecimal.
    """
    table = readable(table)
    columns = [column.to_pylist() for column in table.columns]
    rows = [
        json.dumps(
            {
                name: plain(value, kind)
                for name, value, kind in zip(
                    table.column_names, row, table.schema.types, strict=True
                )
            },
            allow_nan=False,
        )
        for row in zip(*columns, strict=True)
    ]
    return "[" + ",\n ".join(rows) + "]\n"


def render_csv(table: ArrowTable) -> str:
    """Return rows as CSV: lists, maps and structures as JSON, nothing that is a formula."""
    return csv_text(readable(table), _cell)


def write_parquet(table: ArrowTable, path: Path) -> None:
    """Write rows as a Parquet file.

    Raises
    ------
    UsageError
        Parquet has no such type as a column is of.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - a tenth of a second for who wants none

    try:
        pq.write_table(table, path, compression="zstd")
    except pa.ArrowNotImplementedError as error:
        raise UsageError(
            f"Parquet cannot hold a column of the query ({one_line(error)}); cast it in the "
            f"query, or write JSON or CSV"
        ) from error


def readable(table: ArrowTable) -> ArrowTable:
    """Return a table whose instants are text, to the nanosecond, as Python's own are not."""
    for place, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type) and not pa.types.is_interval(field.type):
            table = table.set_column(place, field.name, pc.cast(table[place], pa.string()))
    return table


def plain(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - of any column
    """Return a value as JSON has it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return _nested(value, kind) if isinstance(value, Mapping | list) else _spelled(value)


def _spelled(value: Any) -> str:  # noqa: ANN401 - of what JSON has no type for
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, pa.MonthDayNano):
        return f"{value.months} months {value.days} days {value.nanoseconds} ns"
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _nested(value: Mapping[str, Any] | Sequence[Any], kind: pa.DataType) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return {name: plain(value[name], kind.field(name).type) for name in value}
    if pa.types.is_map(kind):
        return {str(key): plain(item, kind.item_type) for key, item in value}
    return [plain(item, kind.value_type) for item in value]


def _cell(value: Any, kind: pa.DataType) -> object:  # noqa: ANN401 - of any column
    if value is None:
        return ""
    found = plain(value, kind)
    if isinstance(value, Mapping | list):
        return text_cell(json.dumps(found, allow_nan=False))
    if isinstance(found, str):
        return text_cell(found)
    return value if found is None else found
