"""Doubts about events: whose they are, what they are called, whether they ended."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest import RankTrace
from traceparse.rank.link import calls_of
from traceparse.rank.rows import number_parts, numbers_of, rows_where, texts_of
from traceparse.tables import ArrowTable
from traceparse.units import format_number_of

__all__ = ["about_events"]

_MOST_NAMED = 4  # processes that are named; more are only counted
_NAMELESS = "unknown"  # libkineto writes that for a name with bytes that do not print
_NUMS = pa.schema([("pid", pa.string()), ("num", pa.int64())])
_NAMED = ("device_events", "launches", "ops", "annotations")


def about_events(trace: RankTrace) -> Iterator[tuple[str, str]]:
    """Say what is odd about the events of a trace: codes and messages."""
    yield from _about_external_ids(trace)
    yield from _about_processes(trace)
    nameless = sum(_num_called(trace.tables[name], _NAMELESS) for name in _NAMED)
    if nameless:
        yield (
            "names_unknown",
            f"{format_number_of(nameless, 'event')} named `{_NAMELESS}`: the profiler hides "
            f"names with characters it cannot print; steps and collectives among them are "
            f"not recognized",
        )
    if trace.unfinished:
        yield (
            "events_unfinished",
            f"{format_number_of(trace.unfinished, 'event')} unfinished when the profiler "
            f"stopped: their ends are not their own, which matters to times of the host and to "
            f"the last step",
        )


def _about_external_ids(trace: RankTrace) -> Iterator[tuple[str, str]]:
    """Kineto before February 2024 wrote the correlation there (its issues 843 and 873)."""
    num = both = 0
    for ids, keys in _ids_and_keys(trace):
        both += int(np.sum((ids != 0) & (keys != 0)))
        num += int(np.sum((ids != 0) & (ids == keys)))
    if 20 * num <= 19 * both:  # ids of one kind also meet those of the other by chance
        return
    if 2 * _num_within_their_op(trace) >= num:
        return  # both count from 1 and each operator launched one kernel: the ids are right
    yield (
        "external_id_is_correlation",
        f"External id equals correlation on {num:,} of {both:,} device events, as profilers "
        f"before torch 2.3 write it: it names no operator, and is not used to find one",
    )


def _ids_and_keys(
    trace: RankTrace,
) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]]:
    """Yield external ids and correlations of device events, some at a time."""
    events = trace.tables["device_events"]
    for _, (ids, keys) in number_parts(events, "external_id", "correlation"):
        yield ids, keys


def _num_within_their_op(trace: RankTrace) -> int:
    """How many device events were launched while the operator of their external id ran?

    Of those whose external id is their correlation.
    """
    ops, calls = trace.tables["ops"], calls_of(trace.tables["launches"])
    starts, ends = ops["start_ns"].to_numpy(), ops["end_ns"].to_numpy()
    op_ids = numbers_of(ops, "external_id")
    order = np.argsort(op_ids, kind="stable")
    num = 0
    for ids, keys in _ids_and_keys(trace):
        wanted = ids[(ids != 0) & (ids == keys)]
        at = np.searchsorted(op_ids, wanted, sorter=order)
        known = at < op_ids.size
        rows, wanted = order[at[known]], wanted[known]
        launched_ns = calls.starts_of(wanted)
        within = (starts[rows] <= launched_ns) & (launched_ns < ends[rows])
        num += int(np.sum(within & (op_ids[rows] == wanted)))
    return num


def _about_processes(trace: RankTrace) -> Iterator[tuple[str, str]]:
    processes = _processes(trace)
    num = processes.num_rows
    if num > 1:
        shown = processes.to_pylist() if num <= _MOST_NAMED else []
        events = [f"{one['pid']}: {format_number_of(one['num_sum'], 'event')}" for one in shown]
        which = f" ({', '.join(events)})" if events else ""
        yield (
            "several_processes",
            f"host events of {num:,} processes{which} in one file: all count as one rank's, "
            f"and work of one may fall into the steps of another",
        )


def _processes(trace: RankTrace) -> ArrowTable:
    """Return how many operators, marks and launches each process has, the largest first."""
    ranges = trace.tables["annotations"]
    marks = rows_where(ranges, "category", lambda texts: pc.equal(texts, "user_annotation"))
    own = pa.concat_tables(
        [_by_pid(trace.tables["ops"]), _by_pid(ranges.select(["pid"]).filter(marks))]
    )
    launches = _by_pid(trace.tables["launches"])
    # MTIA draws some of its runtime on the row of the device: that is no process
    devices = pa.array(texts_of(trace.tables["device_events"], "device")[0], pa.string())
    of_process = pc.or_(
        pc.is_in(launches["pid"], value_set=own["pid"]),
        pc.invert(pc.is_in(launches["pid"], value_set=devices)),
    )
    nums = pa.concat_tables([own, launches.filter(of_process)]).group_by("pid")
    return nums.aggregate([("num", "sum")]).sort_by(
        [("num_sum", "descending"), ("pid", "ascending")]
    )


def _by_pid(table: ArrowTable) -> ArrowTable:
    """Count the rows of each process, once for each chunk of the column that has some."""
    return pa.Table.from_batches(map(_of_chunk, table["pid"].chunks), _NUMS)


def _of_chunk(pids: pa.DictionaryArray) -> pa.RecordBatch:
    ids = pids.indices.drop_null().to_numpy()  # an event without a pid is nobody's
    nums = np.bincount(ids, minlength=len(pids.dictionary))
    counts = pa.record_batch([pids.dictionary, nums], schema=_NUMS)
    return counts.filter(pa.array(nums > 0))


def _num_called(table: ArrowTable, name: str) -> int:
    return int(rows_where(table, "name", lambda names: pc.equal(names, name)).sum())
