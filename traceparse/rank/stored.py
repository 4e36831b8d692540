"""Digests as an Arrow table: what processes hand to one another, and what is cached.

A row is one window, or one step on one device, with its times; tables of a device are Arrow's
streams beside its window. All else is JSON in the schema's metadata. What comes out equals
what went in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.errors import Note
from traceparse.ingest import FileHealth, Header
from traceparse.rank.counted import CopyWork, KernelWork, OperatorWork, StepWork
from traceparse.rank.digest import RankDigest
from traceparse.rank.times import (
    CALLS,
    EXPOSED,
    SYNCS,
    TASKS,
    DeviceDigest,
    IdleTimes,
    KernelCounts,
    StepTimes,
    Times,
)
from traceparse.tables import ArrowTable

__all__ = ["StoredError", "from_table", "to_table"]

_TIMES = tuple(field.name for field in fields(Times))
_TABLES = {"calls": CALLS, "exposed": EXPOSED, "tasks": TASKS, "syncs": SYNCS}
_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")
_SCHEMA = pa.schema(
    [
        ("device", pa.int32()),  # its place among all devices of all digests
        ("is_window", pa.bool_()),
        ("step", pa.int64()),
        ("name", pa.string()),
        ("open_ended", pa.bool_()),
        *((name, pa.int64()) for name in _TIMES),
        *((name, pa.large_binary()) for name in _TABLES),
    ]
)
_KEY = b"traceparse.digests"


class StoredError(Exception):
    """A table that holds no digests."""


@dataclass(frozen=True, slots=True)
class _Device:
    """What is said of a device besides its times."""

    device: int | str
    kernels: KernelCounts
    work: tuple[StepWork | None, ...]  # step by step
    twice_contention_ns: tuple[int, ...]
    idle: tuple[IdleTimes | None, ...]
    overlapped_ns: int
    never_alone_ns: int


@dataclass(frozen=True, slots=True)
class _Rest:
    """What is said of a digest besides its times."""

    header: Header
    health: FileHealth
    notes: tuple[Note, ...]
    process: str | None
    devices: tuple[_Device, ...]
    operators: tuple[OperatorWork, ...]
    conventions: tuple[str, ...]
    shortest_kernel_ns: int | None
    kernels: tuple[KernelWork, ...]
    copies: tuple[CopyWork, ...]


def to_table(digests: Sequence[RankDigest]) -> ArrowTable:
    """Write digests as a table."""
    devices = [device for digest in digests for device in digest.devices]
    rows = [row for place, device in enumerate(devices) for row in _rows(place, device)]
    rest = [
        _Rest(
            header=digest.header,
            health=digest.health,
            notes=digest.notes,
            process=digest.process,
            devices=tuple(
                _Device(
                    one.device,
                    one.kernels,
                    tuple(step.work for step in one.steps),
                    tuple(step.twice_contention_ns for step in one.steps),
                    tuple(step.idle for step in one.steps),
                    one.overlapped_ns,
                    one.never_alone_ns,
                )
                for one in digest.devices
            ),
            operators=digest.operators,
            conventions=digest.conventions,
            shortest_kernel_ns=digest.shortest_kernel_ns,
            kernels=digest.kernels,
            copies=digest.copies,
        )
        for digest in digests
    ]
    # Python's writer has no bounds for integers: a sum of times may pass 64 bits
    text = json.dumps(msgspec.to_builtins(rest))
    columns = zip(*rows, strict=True) if rows else [()] * len(_SCHEMA)
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA.with_metadata({_KEY: text}))


def _rows(place: int, device: DeviceDigest) -> Iterator[tuple[Any, ...]]:
    tables = (_written(getattr(device, name)) for name in _TABLES)
    yield (place, True, None, None, False, *_of(device.window), *tables)
    nothing = (None,) * len(_TABLES)
    for step in device.steps:
        yield (place, False, step.step, step.name, step.open_ended, *_of(step.times), *nothing)


def _written(table: ArrowTable) -> bytes | None:
    if not table.num_rows:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_PACKED) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _read(name: str, stored: bytes | None) -> ArrowTable:
    if stored is None:
        return _TABLES[name].empty_table()
    with pa.ipc.open_stream(stored) as stream:
        table = stream.read_all()
    table.validate(full=True)
    if not table.schema.equals(_TABLES[name]):
        raise ValueError(f"columns of {name} are others")
    return table


def _of(times: Times | None) -> Iterable[int | None]:
    return (None if times is None else getattr(times, name) for name in _TIMES)


def from_table(table: ArrowTable) -> list[RankDigest]:
    """Read digests from a table.

    Raises
    ------
    StoredError
        It is not one that :func:`to_table` has written.
    """
    if not table.schema.equals(_SCHEMA) or _KEY not in (table.schema.metadata or {}):
        raise StoredError("its columns are others")
    try:
        rest = msgspec.convert(json.loads(table.schema.metadata[_KEY]), list[_Rest])
        devices = iter(_devices(table, [one for each in rest for one in each.devices]))
        return [
            RankDigest(
                header=one.header,
                health=one.health,
                devices=tuple(next(devices) for _ in one.devices),
                notes=one.notes,
                process=one.process,
                operators=one.operators,
                conventions=one.conventions,
                shortest_kernel_ns=one.shortest_kernel_ns,
                kernels=one.kernels,
                copies=one.copies,
            )
            for one in rest
        ]
    except (ValueError, TypeError, LookupError, RecursionError, OSError) as error:
        raise StoredError(str(error)) from error


def _devices(table: ArrowTable, known: Sequence[_Device]) -> Iterator[DeviceDigest]:
    windows: list[Times] = []
    steps: list[list[StepTimes]] = [[] for _ in known]
    tables: list[Mapping[str, ArrowTable]] = []
    for row in table.to_pylist():
        times = _times(row)
        if not row["is_window"]:
            own = steps[row["device"]]
            told, at = known[row["device"]], len(own)
            own.append(
                StepTimes(
                    row["step"],
                    row["name"],
                    row["open_ended"],
                    times,
                    told.work[at],
                    told.twice_contention_ns[at],
                    told.idle[at],
                )
            )
        elif times is not None:
            windows.append(times)
            tables.append({name: _read(name, row[name]) for name in _TABLES})
    for one, window, own, more in zip(known, windows, steps, tables, strict=True):
        if (pc.max(more["tasks"]["call"]).as_py() or 0) >= max(more["calls"].num_rows, 1):
            raise ValueError("tasks have calls that there are not")
        yield DeviceDigest(
            one.device,
            window,
            tuple(own),
            one.kernels,
            one.overlapped_ns,
            one.never_alone_ns,
            **more,
        )


def _times(row: Mapping[str, Any]) -> Times | None:
    return None if row["start_ns"] is None else Times(*(row[name] for name in _TIMES))
