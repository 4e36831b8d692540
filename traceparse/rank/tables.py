"""The tables of one rank as people query them: events with their rank, step and kind."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest import RankTrace
from traceparse.rank.classify import KINDS
from traceparse.rank.steps import Marker, markers, members_of
from traceparse.rank.works import Work, work_of
from traceparse.tables import ArrowTable, schema_of

__all__ = ["public_tables"]

_HOST_TABLES = ("launches", "ops", "annotations", "python_functions", "counters")


def public_tables(trace: RankTrace) -> dict[str, ArrowTable]:
    """Return ``kernels``, ``device_events`` and the host tables of a trace, complete.

    Columns are those of :mod:`traceparse.tables`; what no stage fills yet is null. Rows are in
    the order of the file.
    """
    events = _device_events(trace)
    is_kernel = pc.equal(events["category"].cast(pa.string()), "kernel")
    tables = {"device_events": events, "kernels": events.filter(is_kernel)}
    for name in _HOST_TABLES:
        if name in trace.tables:
            tables[name] = _complete(name, trace.tables[name], rank=trace.health.rank)
    return tables


def _device_events(trace: RankTrace) -> ArrowTable:
    events = trace.tables["device_events"]
    step = np.zeros(events.num_rows, np.int64)
    in_step = np.zeros(events.num_rows, np.bool_)
    kind = np.zeros(events.num_rows, np.int32)
    steps = markers(trace.tables["annotations"], trace.health.path)
    for work in work_of(trace) if events.num_rows else ():
        kind[work.rows] = work.kinds
        step[work.rows], in_step[work.rows] = _steps_of(steps, work)
    return _complete(
        "device_events",
        events,
        rank=trace.health.rank,
        step=pa.array(step, mask=~in_step),
        kind=pa.DictionaryArray.from_arrays(kind, pa.array(KINDS)),
        dur_ns=pc.subtract(events["end_ns"], events["start_ns"]),
    )


def _steps_of(
    steps: list[Marker], work: Work
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the step that launched each row of a device's work, and whether any did."""
    step = np.zeros(work.starts.size, np.int64)
    in_step = np.zeros(work.starts.size, np.bool_)
    members = members_of(steps, work.launched_ns)
    for marker, own in reversed(list(zip(steps, members, strict=True))):
        if marker.step is not None:  # of steps that overlap, the first one stays
            step[own] = marker.step
            in_step[own] = True
    return step, in_step


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
