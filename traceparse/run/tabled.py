"""The report as tables: those of :mod:`traceparse.report_tables`, by their names.

All of them are always there, those of what is not known without rows. A number that 64 bits
cannot hold, as only a broken file has it, is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from traceparse.report_tables import REPORT_TABLES
from traceparse.run.report import Report
from traceparse.tables import ArrowTable

__all__ = ["tables_of"]

_MOST = 1 << 63


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
    schema = REPORT_TABLES[name].schema()
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
