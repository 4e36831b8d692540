"""The tables of one rank as people query them: events with their rank, step and kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest import RankTrace
from traceparse.rank.attribute import Attributed
from traceparse.rank.classify import COPY, KINDS, kinds_of
from traceparse.rank.collectives import Collectives
from traceparse.rank.link import UNLINKED
from traceparse.rank.nesting import NOTHING
from traceparse.rank.owners import Owners
from traceparse.rank.runs import dtype_of, runs_on_devices
from traceparse.rank.signatures import read_inputs, shapes_text
from traceparse.rank.steps import Marker, markers, step_numbers
from traceparse.rank.works import CPU, device_work, devices_of, host_work
from traceparse.tables import ArrowTable, schema_of

__all__ = ["public_tables"]

_HOST_TABLES = (
    "launches",
    "ops",
    "annotations",
    "collective_args",
    "python_functions",
    "counters",
)


def public_tables(trace: RankTrace) -> dict[str, ArrowTable]:
    """Return ``kernels``, ``device_events`` and the host tables of a trace, complete.

    Columns are those of :mod:`traceparse.tables`. Rows are in the order of the file.
    """
    steps = markers(trace.kept["annotations"], trace.health.path)
    owned = _Owned(trace)
    events = _device_events(trace, owned, steps)
    is_kernel = pc.equal(events["category"].cast(pa.string()), "kernel")
    tables = {
        "device_events": events,
        "kernels": events.filter(is_kernel),
        "collectives": _collectives(trace, owned, steps),
    }
    for name in _HOST_TABLES:
        if name in trace.kept:
            tables[name] = _complete(name, trace.kept[name].table(), rank=trace.health.rank)
    return tables


def _collectives(trace: RankTrace, owned: _Owned, steps: Sequence[Marker]) -> ArrowTable:
    tables = [
        table.append_column("device", pa.array([device] * table.num_rows, pa.string()))
        for device, table in zip(owned.devices, owned.collectives.tables(steps), strict=True)
    ]
    table = pa.concat_tables(tables).sort_by(
        [("start_ns", "ascending"), ("end_ns", "ascending")]
    )
    return _complete("collectives", table, rank=trace.health.rank)


def _device_events(trace: RankTrace, owned: _Owned, steps: Sequence[Marker]) -> ArrowTable:
    events = trace.kept["device_events"].table()
    return _complete(
        "device_events",
        events,
        rank=trace.health.rank,
        step=step_numbers(steps, owned.launched_ns),
        kind=pa.DictionaryArray.from_arrays(kinds_of(events).astype(np.int32), pa.array(KINDS)),
        dur_ns=pc.subtract(events["end_ns"], events["start_ns"]),
        **owned.columns(trace.kept["ops"].table()),
    )


class _Owned:
    """Which operator owns each device event, when it was launched, and what it works."""

    def __init__(self, trace: RankTrace) -> None:
        num = trace.kept["device_events"].num_rows
        self.launched_ns = np.full(num, UNLINKED)
        self._ops = np.full(num, NOTHING)  # rows of their table
        self._calls = np.full(num, NOTHING)
        self._hints = np.zeros(num, np.uint16)
        self._is_first = np.zeros(num, np.bool_)
        owners = Owners(on_host=not num, is_complete=True)
        self._signatures = owners.signatures
        owners.add_launches(trace.kept["launches"])
        self.devices = devices_of(trace) or [CPU]
        self.collectives = Collectives(trace, len(self.devices))
        for work in device_work(trace, self.devices) if num else host_work(trace):
            self.collectives.add(work)
            if not num:
                continue
            owners.add_events(
                work,
                row=work.rows,
                start=work.starts,
                end=work.ends,
                device=work.devices,
                kind=work.kinds,
            )
        for linked in owners.links.parts():
            self.launched_ns[linked.events["row"]] = linked.launched_ns
            owners.add_linked(linked)
            self.collectives.add_linked(linked)
        if num:
            owners.add_spans(trace.kept["annotations"])
            owners.add_ops(trace.kept["ops"])
        for part in owners.parts():
            self._add(part)
            self.collectives.add_attributed(part)

    def _add(self, part: Attributed) -> None:
        inside = part.rows["is_event"] & part.is_done & (part.operators != NOTHING)
        self._ops[part.rows["row"][inside]] = part.rows["row"][part.operators[inside]]
        runs = runs_on_devices(part)
        events = runs.events["row"]
        self._ops[events] = runs.rows[runs.run_of]
        self._calls[events] = runs.calls[runs.run_of]
        self._hints[events] = runs.hints[runs.run_of]
        kernels = np.flatnonzero(runs.events["kind"] != COPY)
        _, first = np.unique(runs.run_of[kernels], return_index=True)
        self._is_first[events[kernels[first]]] = True

    def columns(self, ops: ArrowTable) -> dict[str, pa.Array]:
        """Return the columns that tell of the operator; null where there is none."""
        found = ops.select(["name", "input_dims"]).unify_dictionaries()
        names, dims = (column.combine_chunks() for column in found.columns)
        shapes = [shapes_text(read_inputs(text)) for text in dims.dictionary.to_pylist()]
        # several dims may be written alike, and pandas takes each text only once
        texts = pa.array(shapes, pa.string()).dictionary_encode()
        dims = pa.DictionaryArray.from_arrays(
            texts.indices.take(dims.indices), texts.dictionary
        )
        rows = pa.array(self._ops, mask=self._ops == NOTHING)
        known = [self._signatures[call] for call in range(len(self._signatures))]
        dtypes = [
            dtype_of(known[call].kind.dtype, hint, on_host=False)[0] if call >= 0 else None
            for call, hint in zip(self._calls.tolist(), self._hints.tolist(), strict=True)
        ]
        counted = self._is_first & (self._calls != NOTHING)

        def worked(numbers: list[int]) -> pa.Array:
            values = np.array([*numbers, 0], np.int64)[self._calls]
            return pa.array(values, mask=~counted)

        return {
            "op": names.take(rows),
            "shapes": dims.take(rows),
            "dtype": pa.array(dtypes, pa.string()).dictionary_encode(),
            "flop": worked([call.flop for call in known]),
            "bytes": worked([call.least_bytes for call in known]),
        }


def _complete(
    name: str, table: ArrowTable, *, rank: int | None, **columns: pa.Array
) -> ArrowTable:
    """Add the columns of later stages to a table: the given ones, the rank, else nulls."""
    for field in schema_of(name):
        if field.name in columns:
            table = table.append_column(field, columns[field.name])
        elif field.name == "rank":
            table = table.append_column(field, pa.array([rank] * table.num_rows, pa.int64()))
        elif field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(schema_of(name).names)
