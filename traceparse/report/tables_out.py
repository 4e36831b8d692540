"""The report as tables, for programs: one file a table, Parquet or CSV.

Tables and columns are those of :mod:`traceparse.report_tables`; all of them are always
written, those of what is not known without rows. A number that 64 bits cannot hold, as only a
broken file has it, is null. Parquet has names as the trace has them. In
CSV, which people open in spreadsheets, names are made visible, and one that a spreadsheet
would take for a formula (it begins with ``=``, ``+``, ``-`` or ``@``) has an apostrophe put
before it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from traceparse.report.safe import visible
from traceparse.report_tables import REPORT_TABLES
from traceparse.run import Report
from traceparse.tables import ArrowTable
from traceparse.units import format_ranges

__all__ = ["render_csv", "render_parquet", "tables_of"]

_FORMULA = ("=", "+", "-", "@")
_MOST = 1 << 63
_LONGEST = 32_000  # characters that a cell of a spreadsheet takes


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
    return {f"tables/{name}.csv": _csv(table) for name, table in tables_of(report).items()}


def tables_of(report: Report) -> dict[str, ArrowTable]:
    """Return the tables of a report by name, in the order of the schema."""
    plain = report.to_dict()
    rows = {
        "run": [_run(plain)],
        "devices": [_device(device) for device in plain["devices"]],
        "steps": list(_steps(plain["devices"])),
        "waterfall": list(_waterfalls(plain)),
        "bands": [{"name": name, **own} for name, own in (plain["bands"] or {}).items()],
        "clock": _clock(plain["clock"] or {}),
    }
    return {
        name: _table(name, rows[name] if name in rows else plain[name] or ())
        for name in REPORT_TABLES
    }


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> ArrowTable:
    columns = REPORT_TABLES[name].columns
    schema = pa.schema([(column.name, column.type) for column in columns])
    return pa.table(
        [
            pa.array([_value(row.get(field.name), field.type) for row in rows], field.type)
            for field in schema
        ],
        schema=schema,
    )


def _value(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - of any column
    """Return what Arrow takes for a value: valid Unicode, doubles, maps as pairs."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_map(kind):
        return [(_text(str(key)), number) for key, number in value.items()]
    if isinstance(value, int):
        return value if -_MOST <= value < _MOST else None
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    """Spell out bytes of a name that were no text, which Arrow cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _run(plain: Mapping[str, Any]) -> dict[str, Any]:
    run, summary = plain["run"], plain["summary"]
    accelerator = run["accelerator"] or {}
    bound = summary["bound"] or {}
    return {
        **(plain["utilization"] or {}),
        **(plain["scaling_loss"] or {}),
        **run,
        **summary,
        **summary["times"],
        **_communication(summary["communication_ns"]),
        **_host(plain["host"]),
        "device": None,
        "accelerator": accelerator.get("id") or accelerator.get("name"),
        "bound": bound.get("by"),
        "bound_ratio": bound.get("ratio"),
        "usd_per_step": (plain["cost"] or {}).get("usd_per_step"),
    }


def _device(device: Mapping[str, Any]) -> dict[str, Any]:
    kernels = dict(device["kernels"])
    counts = {f"kernels_{name}": kernels.pop(name) for name in ("count", "time_ns")}
    return {
        **_place(device),
        **device["window"],
        **counts,
        **kernels,
        **(device["utilization"] or {}),
        **_host(device["host"]),
    }


def _place(device: Mapping[str, Any]) -> dict[str, Any]:
    return {"rank": device["rank"], "device": str(device["device"])}


def _steps(devices: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for device in devices:
        for step in device["steps"]:
            yield {**_place(device), **step, **_communication(step["communication_ns"])}


def _waterfalls(plain: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    nowhere = {"rank": None, "device": None}
    places = [(nowhere, plain["utilization"])]
    places += [(_place(device), device["utilization"]) for device in plain["devices"]]
    for place, use in places:
        for share in (use or {}).get("waterfall") or ():
            yield {**place, **share}


def _communication(told: Mapping[str, int] | None) -> dict[str, int]:
    return {f"{term}_ns": ns for term, ns in (told or {}).items()}


def _host(told: Mapping[str, int] | None) -> dict[str, int]:
    return {f"host_{name}": ns for name, ns in (told or {}).items()}


def _clock(clock: Mapping[str, Any]) -> list[dict[str, Any]]:
    drift = clock.get("drift_ppm") or {}
    return [
        {"rank": int(rank), "offset_ns": offset, "drift_ppm": drift.get(rank)}
        for rank, offset in (clock.get("offsets_ns") or {}).items()
    ]


def _csv(table: ArrowTable) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    kinds = table.schema.types
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        writer.writerow(map(_cell, row, kinds))
    return out.getvalue()


def _cell(value: Any, kind: pa.DataType) -> object:  # noqa: ANN401 - of any column
    if value is None:
        return ""
    if pa.types.is_list(kind):
        return format_ranges(value)
    if pa.types.is_map(kind):
        return json.dumps({visible(name): number for name, number in value})
    if not isinstance(value, str):
        return value
    text = visible(value, _LONGEST)
    return f"'{text}" if text.startswith(_FORMULA) else text
