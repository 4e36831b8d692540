"""Decoded events to the Arrow tables of one file.

Each kind of event goes to one table or is counted by the reason why it goes to none, so that
``events == sum of rows + sum of skipped``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest.decode import Event, decode_args
from traceparse.ingest.numbers import LIMIT, UNUSABLE, nanoseconds, unsigned
from traceparse.intervals import Int64s
from traceparse.tables import TEXT, ArrowTable, schema_of

__all__ = ["EXTRAS", "STEP_MARK", "Collector"]

EXTRAS = frozenset({"python_functions", "counters"})

_SPANS = ("device_events", "launches", "ops", "annotations", "python_functions")
_DEVICE = {
    "kernel": "kernel",
    "gpu_memcpy": "gpu_memcpy",
    "gpu_memset": "gpu_memset",
    "memcpy": "gpu_memcpy",  # the spelling of 2021
    "memset": "gpu_memset",
    "mtia_ccp_events": "mtia_ccp_events",
}
_HOST = {
    "cpu_op": ("ops", "cpu_op"),
    "operator": ("ops", "cpu_op"),
    "user_annotation": ("annotations", "user_annotation"),
    "user": ("annotations", "user_annotation"),
    "python_function": ("python_functions", "python_function"),
    "gpu_user_annotation": ("skip", "gpu_annotation"),
    "overhead": ("annotations", "overhead"),
    "trace": ("annotations", "trace"),
    "cuda_sync": ("skip", "sync"),
    "xpu_sync": ("skip", "sync"),
    "cuda_event": ("skip", "sync"),
}
_LAUNCHES = {
    "runtime": "cuda_runtime",  # the spelling of 2021
    **{
        f"{vendor}_{layer}": f"{vendor}_{layer}"
        for vendor in ("cuda", "xpu", "mtia", "glow", "privateuse1")
        for layer in ("runtime", "driver")
    },
}
_PHASES = {
    "C": ("counters", "counter"),
    "M": ("skip", "metadata"),
    "s": ("skip", "flow"),
    "t": ("skip", "flow"),
    "f": ("skip", "flow"),
    "i": ("skip", "instant"),
    "I": ("skip", "instant"),
}
_MTIA_SYNC = frozenset({"event_wait", "event_record"})
_LEGACY_PID = {
    "CPU functions": ("ops", "cpu_op"),
    "CUDA functions": ("device_events", "kernel"),
}
STEP_MARK = "ProfilerStep"
_LONGEST_LABEL = 256
# What is held as Python's strings and as small arrays, before it becomes a chunk of Arrow's
_MOST_TEXTS = 1 << 16  # distinct ones
_MOST_LETTERS = 1 << 24  # in these
_MOST_ROWS = 1 << 18


@lru_cache(maxsize=1024)  # a file may have any number of categories
def _route(phase: str, category: str | None) -> tuple[str, str]:
    """Say which table takes such events, and how their category is spelled there."""
    if phase != "X":
        return _PHASES.get(phase, ("skip", "other_phase" if phase else "no_phase"))
    if category is None:
        return "legacy", ""
    lower = category.lower()
    if lower in _DEVICE:
        return "device_events", _DEVICE[lower]
    if "runtime" in lower or "driver" in lower:
        return "launches", _LAUNCHES.get(lower, "other_runtime")
    return _HOST.get(lower, ("skip", "other_category"))


class Collector:
    """Takes events, a list at a time, and makes the tables of their file at the end."""

    def __init__(self, extras: frozenset[str] = frozenset()) -> None:
        self.skipped: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self.unfinished = 0
        self.events = 0
        self.rows = 0
        self.first_ns = 0
        self.whole_us = True
        self._extras = extras
        self._columns: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        self._texts: dict[str, int] = {}
        self._letters = 0
        self._flush_at = _MOST_ROWS
        # by table and column: times grow in one piece each, the others chunk by chunk
        self._times: dict[tuple[str, str], bytearray] = defaultdict(bytearray)
        self._chunks: dict[tuple[str, str], list[pa.Array]] = defaultdict(list)

    def add(self, events: list[Event]) -> None:
        """Sort events into their tables."""
        self.events += len(events)
        groups: dict[tuple[str, str | None], list[Event]] = defaultdict(list)
        for event in events:
            groups[event.ph, event.cat].append(event)
        if self._holds_much():
            self._flush()
        # a file may have any number of categories, but there are few ways to go
        routes: dict[tuple[str, str], list[Event]] = defaultdict(list)
        for (phase, category), group in groups.items():
            routes[_route(phase, category)].extend(group)
        for (table, label), group in routes.items():
            if table == "legacy":
                self._add_legacy(group)
            elif table == "ops":
                self._add_ops(group, label)
            else:
                self._put(table, label, group)

    def _add_legacy(self, group: list[Event]) -> None:
        """Events without category: the old autograd profiler names the device in the pid."""
        for event in group:
            table, label = _LEGACY_PID.get(str(event.pid), ("skip", "no_category"))
            if table == "device_events":
                event.args = msgspec.Raw(msgspec.json.encode({"device": event.tid}))
            self._put(table, label, [event])

    def _add_ops(self, group: list[Event], label: str) -> None:
        """Step markers were operators once; they are no work."""
        marks = [event for event in group if event.name.startswith(STEP_MARK)]
        if marks:
            self._put("annotations", "user_annotation", marks)
            group = [event for event in group if not event.name.startswith(STEP_MARK)]
        self._put("ops", label, group)

    def _put(self, table: str, label: str, group: list[Event]) -> None:
        if table == "skip" or (table in EXTRAS and table not in self._extras):
            self.skipped[label] += len(group)
        elif table == "counters":
            self._add_counters(group)
        else:
            if label == "mtia_ccp_events":
                group = self._without_mtia_sync(group)
            self._add_spans(table, label, group)

    def _without_mtia_sync(self, group: list[Event]) -> list[Event]:
        work = [event for event in group if event.name not in _MTIA_SYNC]
        self.skipped["sync"] += len(group) - len(work)
        return work

    def _add_spans(self, table: str, category: str, group: list[Event]) -> None:
        starts = nanoseconds([event.ts for event in group])
        lasts = nanoseconds([event.dur for event in group])
        usable = self._usable(starts.values, lasts.values)
        if not usable.all():
            group = [event for event, good in zip(group, usable.tolist(), strict=True) if good]
        if not group:
            return
        self.whole_us = self.whole_us and starts.whole_us and lasts.whole_us
        columns = self._columns[table]
        start_ns = starts.values[usable]
        self.first_ns = self.first_ns or int(start_ns[0])
        self.rows += len(group)
        columns["start_ns"].append(start_ns)
        columns["end_ns"].append(start_ns + lasts.values[usable])
        columns["name"].append(self._ids(event.name for event in group))
        columns["category"].append(np.full(len(group), self._id(category), np.int32))
        self._add_args(table, columns, group)

    def _usable(self, starts: Int64s, lasts: Int64s) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Say which times can be right; count the others, each under its first reason."""
        usable = np.ones(starts.size, np.bool_)
        for reason, wrong in (
            ("time_missing", starts <= UNUSABLE),
            ("time_negative", starts < 0),
            ("time_zero", starts == 0),
            ("duration_missing", lasts <= UNUSABLE),
            ("duration_negative", lasts < 0),
            ("time_too_large", lasts >= LIMIT - np.maximum(starts, 0)),
        ):
            hit = usable & wrong
            if hit.any():
                self.skipped[reason] += int(hit.sum())
                usable &= ~wrong
        return usable

    def _add_args(self, table: str, columns: dict[str, list[Any]], group: list[Event]) -> None:
        if table != "device_events":
            columns["pid"].append(self._ids(_label(event.pid) for event in group))
            columns["tid"].append(self._ids(_label(event.tid) for event in group))
        if table == "python_functions":
            return
        args, repaired = decode_args(group)
        self.repaired.update(repaired)
        self.unfinished += sum(a.finished is False for a in args)
        if table == "annotations":
            return
        columns["external_id"].append(
            _numbers(
                [a.external_id_old if a.external_id is None else a.external_id for a in args],
                zero=False,
            )
        )
        if table == "ops":
            return
        columns["correlation"].append(_numbers([a.correlation for a in args], zero=False))
        if table == "device_events":
            columns["stream"].append(_numbers([a.stream for a in args]))
            columns["collective"].append(self._ids(a.collective for a in args))
            columns["device"].append(
                self._ids(
                    _label(event.pid if a.device is None else a.device) or "unknown"
                    for event, a in zip(group, args, strict=True)
                )
            )

    def _add_counters(self, group: list[Event]) -> None:
        times = nanoseconds([event.ts for event in group]).values
        good = times > UNUSABLE
        self.skipped["time_missing"] += int((~good).sum())
        kept = [event for event, keep in zip(group, good.tolist(), strict=True) if keep]
        columns = self._columns["counters"]
        columns["start_ns"].append(times[good])
        columns["name"].append(self._ids(event.name for event in kept))
        columns["pid"].append(self._ids(_label(event.pid) for event in kept))
        columns["values"].append(self._ids(bytes(event.args).decode() for event in kept))

    # -- texts: one dictionary for all columns, begun anew before it grows without end

    def _id(self, text: str | None) -> int:
        if text is None:
            return -1
        return self._texts.setdefault(text, len(self._texts))

    def _ids(self, texts: Iterable[str | None]) -> np.ndarray[Any, np.dtype[np.int32]]:
        num_known = len(self._texts)
        ids = np.fromiter(map(self._id, texts), np.int32)
        added = islice(reversed(self._texts), len(self._texts) - num_known)
        self._letters += sum(map(len, added))
        return ids

    def _holds_much(self) -> bool:
        return (
            len(self._texts) > _MOST_TEXTS
            or self._letters > _MOST_LETTERS
            or self.rows >= self._flush_at
        )

    def _flush(self) -> None:
        """Turn what was collected into Arrow, whose texts take a third of Python's room."""
        texts = pa.array(self._texts, pa.string())
        for name, columns in self._columns.items():
            for field in schema_of(name, stage="ingest"):
                key, parts = (name, field.name), columns.pop(field.name)
                if field.type == pa.int64():
                    self._times[key] += np.concatenate(parts).data
                else:
                    self._chunks[key].append(_column(parts, field.type, texts))
        self._columns.clear()
        self._texts.clear()
        self._letters = 0
        self._flush_at = self.rows + _MOST_ROWS

    # -- the end

    def finish(self, base_ns: int) -> dict[str, ArrowTable]:
        """Return the tables of the file, times moved by ``base_ns``."""
        self._flush()
        return {
            name: self._table(name, base_ns)
            for name in (*_SPANS, "counters")
            if name not in EXTRAS or name in self._extras
        }

    def _table(self, name: str, base_ns: int) -> ArrowTable:
        schema = schema_of(name, stage="ingest")
        columns = [
            _moved(self._times.pop((name, field.name), bytearray()), base_ns)
            if field.type == pa.int64()
            else pa.chunked_array(self._chunks.pop((name, field.name), []), field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)


def _moved(data: bytearray, base_ns: int) -> pa.Array:
    """Make a column of times that are moved where they lie: it may be the most of memory."""
    times = np.frombuffer(data, np.int64)
    times += base_ns
    return pa.array(times)


def _column(parts: Sequence[Any], kind: pa.DataType, texts: pa.Array) -> pa.Array:
    if kind == pa.uint64():
        return pa.concat_arrays(parts)
    return _texts_column(np.concatenate(parts), texts, kind)


def _texts_column(ids: Int64s, texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Make a column of texts whose dictionary holds only what the column has."""
    is_used = np.zeros(len(texts) + 1, np.bool_)
    is_used[ids] = True  # null is -1, the last one
    used = np.flatnonzero(is_used[:-1])
    positions = np.cumsum(is_used, dtype=np.int32) - 1
    column = pa.DictionaryArray.from_arrays(
        pa.array(positions[ids].astype(np.int32), mask=ids < 0), texts.take(pa.array(used))
    )
    return column if kind == TEXT else column.cast(kind)


def _numbers(values: list[Any], *, zero: bool = True) -> pa.Array:
    """Make a column of ids up to 2^64-1; what is none is null, as is 0 where it means none."""
    try:
        column = pa.array(values, pa.uint64())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        column = pa.array(unsigned(values), pa.uint64())
    if zero:
        return column
    nothing = pa.scalar(None, pa.uint64())
    return pc.if_else(pc.equal(column, pa.scalar(0, pa.uint64())), nothing, column)


def _label(value: object) -> str | None:
    """Write a process, thread or device as text: ``0.0`` like ``0``, and nothing endless."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)[:_LONGEST_LABEL]
