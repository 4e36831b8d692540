"""Doubts about events: whose they are, what they are called, whether they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest import RankTrace
from traceparse.rank.rows import distinct, num_where, numbers_of, nums_of, rows_where
from traceparse.tables import ArrowTable
from traceparse.units import format_number_of

__all__ = ["about_events"]

_MOST_NAMED = 4  # processes that are named; more are only counted
_ENOUGH = 1 << 16  # external ids, to tell what they are
_NEVER = np.iinfo(np.int64).max
_NAMELESS = "unknown"  # libkineto writes that for a name with bytes that do not print
_NAMED = ("device_events", "launches", "ops", "annotations")


def about_events(trace: RankTrace) -> Iterator[tuple[str, str]]:
    """Say what is odd about the events of a trace: codes and messages."""
    yield from _about_external_ids(trace)
    yield from _about_processes(trace)
    nameless = sum(num_where(trace.kept[name], "name", _is_nameless) for name in _NAMED)
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
    some = np.empty(0, np.uint64)
    for part in trace.kept["device_events"].parts("external_id", "correlation"):
        ids, keys = numbers_of(part, "external_id"), numbers_of(part, "correlation")
        same = (ids != 0) & (ids == keys)
        both += int(np.sum((ids != 0) & (keys != 0)))
        num += int(np.sum(same))
        some = np.append(some, ids[same][: _ENOUGH - some.size])
    if 20 * num <= 19 * both:  # ids of one kind also meet those of the other by chance
        return
    if 2 * _num_within_their_op(trace, some) >= some.size:
        return  # both count from 1 and each operator launched one kernel: the ids are right
    yield (
        "external_id_is_correlation",
        f"External id equals correlation on {num:,} of {both:,} device events, as profilers "
        f"before torch 2.3 write it: it names no operator, and is not used to find one",
    )


def _num_within_their_op(trace: RankTrace, ids: npt.NDArray[np.uint64]) -> int:
    """How many device events were launched while the operator of their external id ran?

    Given those ids, which are their correlations too.
    """
    wanted, nums = np.unique(ids, return_counts=True)
    launched_ns = np.full(wanted.size, _NEVER)
    for part in trace.kept["launches"].parts("correlation", "start_ns"):
        rows, at = _found(numbers_of(part, "correlation"), wanted)
        np.minimum.at(launched_ns, at, part["start_ns"].to_numpy()[rows])
    begin, end = np.full(wanted.size, _NEVER), np.zeros(wanted.size, np.int64)
    for part in trace.kept["ops"].parts("external_id", "start_ns", "end_ns"):
        rows, at = _found(numbers_of(part, "external_id"), wanted)
        rows, at = rows[::-1], at[::-1]  # of several, the first in the file
        is_new = begin[at] == _NEVER
        begin[at[is_new]] = part["start_ns"].to_numpy()[rows[is_new]]
        end[at[is_new]] = part["end_ns"].to_numpy()[rows[is_new]]
    return int(nums[(begin <= launched_ns) & (launched_ns < end)].sum())


def _found(
    ids: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows whose id is wanted, and where it stands among those, sorted."""
    at = np.searchsorted(wanted, ids)
    rows = np.flatnonzero(np.append(wanted, 0)[at] == ids)
    rows = rows[ids[rows] != 0]
    return rows, at[rows]


def _about_processes(trace: RankTrace) -> Iterator[tuple[str, str]]:
    nums = _processes(trace)
    if len(nums) > 1:
        which = f" ({_most_first(nums)})" if len(nums) <= _MOST_NAMED else ""
        yield (
            "several_processes",
            f"host events of {len(nums):,} processes{which} in one file: all count as one "
            f"rank's, and work of one may fall into the steps of another",
        )


def _most_first(nums: Counter[str]) -> str:
    ordered = sorted(nums.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{pid}: {format_number_of(num, 'event')}" for pid, num in ordered)


def _processes(trace: RankTrace) -> Counter[str]:
    """Return how many operators, marks and launches each process has."""
    nums = nums_of(trace.kept["ops"].parts("pid"), "pid")
    nums += nums_of(map(_marks, trace.kept["annotations"].parts("pid", "category")), "pid")
    # MTIA draws some of its runtime on the row of the device: that is no process
    devices = set(distinct(trace.kept["device_events"], "device")) - nums.keys()
    launches = nums_of(trace.kept["launches"].parts("pid"), "pid")
    for pid in devices:
        del launches[pid]
    return nums + launches


def _marks(ranges: ArrowTable) -> ArrowTable:
    return ranges.filter(
        rows_where(ranges, "category", lambda texts: pc.equal(texts, "user_annotation"))
    )


def _is_nameless(names: pa.Array) -> pa.Array:
    return pc.equal(names, _NAMELESS)
