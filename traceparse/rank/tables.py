"""The tables of one rank as people query them: events with their rank, step and kind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest import RankTrace
from traceparse.rank.classify import KINDS, kinds_of
from traceparse.rank.link import launches_of
from traceparse.rank.steps import first_steps, markers
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

    Columns are those of :mod:`traceparse.tables`; what no stage fills yet is null. Rows are in
    the order of the file.
    """
    events = _device_events(trace)
    is_kernel = pc.equal(events["category"].cast(pa.string()), "kernel")
    tables = {"device_events": events, "kernels": events.filter(is_kernel)}
    for name in _HOST_TABLES:
        if name in trace.kept:
            tables[name] = _complete(name, trace.kept[name].table(), rank=trace.health.rank)
    return tables


def _device_events(trace: RankTrace) -> ArrowTable:
    kept = trace.kept["device_events"]
    events = kept.table()
    found = markers(trace.kept["annotations"], trace.health.path)
    steps = [step for step in found if step.step is not None]
    place = first_steps(steps, launches_of(kept, trace.kept["launches"]))
    # the last one is for none
    numbers = [*(step.step for step in steps), None]
    step = pa.array(numbers, pa.int64()).take(pa.array(np.where(place < 0, len(steps), place)))
    return _complete(
        "device_events",
        events,
        rank=trace.health.rank,
        step=step,
        kind=pa.DictionaryArray.from_arrays(kinds_of(events).astype(np.int32), pa.array(KINDS)),
        dur_ns=pc.subtract(events["end_ns"], events["start_ns"]),
    )


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
