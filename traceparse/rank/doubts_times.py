"""Doubts about times: how exact they are, whose they are, whether they can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest import FileHealth, RankTrace
from traceparse.intervals import EMPTY, Int64s, from_spans, intersection, length
from traceparse.rank.rows import numbers_of, parts, rows_where, texts_of
from traceparse.rank.steps import Marker
from traceparse.rank.times import DeviceDigest
from traceparse.tables import ArrowTable
from traceparse.units import format_ns, format_number_of, format_percent

__all__ = ["about_times", "overruns"]

_WINDOW = "PyTorch Profiler"
# Less overhead than a thousandth does not show: reports print percent with one decimal
_OVERHEAD_PARTS = 1000
# Of category overhead, but what the program pays without a profiler too: loading and compiling
# of kernels, and waiting because the launch queue is full (names as in Kineto's cupti_strings)
_NOT_PROFILER = (
    "Command Buffer Full",
    "Driver Compiler",
    "Lazy Function Loading",
    "Runtime Triggered Module Loading",
)
# Kineto keeps no record from before its window, and waits for the device when it stops; a
# writer that does not wait still ends within a full launch queue, a thousand short kernels
_TAIL_NS = 1_000_000_000
# Kernels on one stream do overlap a little: by up to 5 us where the next may start early (PDL)
_OVERLAP_NS = 10_000


def _is_of_profiler(names: pa.Array) -> pa.Array:
    return pc.invert(pc.is_in(names, value_set=pa.array(_NOT_PROFILER)))


def about_times(
    trace: RankTrace,
    health: FileHealth,
    steps: Sequence[Marker],
    devices: Sequence[DeviceDigest],
) -> Iterator[tuple[str, str]]:
    """Say what is odd about the times of a trace: codes and messages."""
    yield from _about_resolution(trace, health)
    yield from _about_overhead(trace, steps, devices)
    yield from _about_window(trace)
    yield from _about_overlaps(trace)


def _about_resolution(trace: RankTrace, health: FileHealth) -> Iterator[tuple[str, str]]:
    if health.time_resolution_ns != 1000:
        return
    starts, ends = _spans(trace.tables["device_events"])
    num = int(np.sum(starts == ends))
    of_device = f"; {num:,} of {starts.size:,} device events last 0" if starts.size else ""
    yield (
        "time_resolution_us",
        f"times are whole microseconds: each is up to 1 us off, and time in short kernels "
        f"or operators comes out low{of_device}",
    )


def _about_overhead(
    trace: RankTrace, steps: Sequence[Marker], devices: Sequence[DeviceDigest]
) -> Iterator[tuple[str, str]]:
    """Buffer requests hold up the launch that meets one (Kineto issue 1020)."""
    starts, ends = _ranges(trace, "overhead", _is_of_profiler)
    windows = [device.window for device in devices]
    inside = from_spans(
        np.array([span.start_ns for span in (steps or windows)], np.int64),
        np.array([span.end_ns for span in (steps or windows)], np.int64),
    )
    lost_ns = length(intersection(from_spans(starts, ends), inside))
    whole_ns = length(inside)
    if lost_ns * _OVERHEAD_PARTS <= whole_ns:
        return
    firsts = np.searchsorted(inside.ends, starts, "right")
    num = int(np.sum(firsts < np.searchsorted(inside.starts, ends)))
    yield (
        "profiler_overhead",
        f"the profiler's own work on the host takes {format_percent(lost_ns, whole_ns)} of "
        f"{'the steps' if steps else 'the window'} ({format_number_of(num, 'range')}, "
        f"{format_ns(lost_ns)}): launches wait for it, so some idle time is the profiler's",
    )


def _about_window(trace: RankTrace) -> Iterator[tuple[str, str]]:
    """Old ROCm kept the kernels of the warm-up (Kineto issue 743: 45 s of them)."""
    begins, closes = _ranges(trace, "trace", lambda names: pc.starts_with(names, _WINDOW))
    if not begins.size:
        return
    begin, end = int(begins.min()), int(closes.max())
    starts, ends = _spans(trace.tables["device_events"])
    outside = (starts < begin) | (ends > end + _TAIL_NS)
    num = int(outside.sum())
    if num:
        far_ns = max(begin - int(starts[outside].min()), int(ends[outside].max()) - end)
        yield (
            "device_events_outside_window",
            f"{num:,} of {starts.size:,} device events outside the profiler's recorded window, "
            f"by up to {format_ns(far_ns)}: they count, and stretch the device's window beyond "
            f"what was recorded of the host",
        )


def _about_overlaps(trace: RankTrace) -> Iterator[tuple[str, str]]:
    starts, ends = overruns(trace.tables["device_events"])
    if starts.size:
        yield (
            "kernels_overlap_on_stream",
            f"{format_number_of(starts.size, 'kernel')} running into the next on the same "
            f"stream by more than 10 us and half the duration, "
            f"{format_ns(length(from_spans(starts, ends)))} in all: a stream runs one kernel "
            f"at a time, so these durations, and busy time with them, may be too long",
        )


def overruns(events: ArrowTable) -> tuple[Int64s, Int64s]:
    """Return from when to when kernels run on although the next on their stream has begun.

    Only overlaps that no healthy trace has: more than ``_OVERLAP_NS``, and at least half of
    the kernel (the durations that ROCm gets wrong are nearly all overlap: TraceLens issue
    669). Kernels of one launch are not compared: a graph runs its branches side by side, and
    the tracer puts them all on the stream it was launched into.
    """
    order, new_lane = _by_lane(events)
    new_launch = new_lane | _has_new_launch(events, order)
    starts, ends = _spans(events)
    found: list[tuple[Int64s, Int64s]] = [EMPTY]
    for rows in _with_next(new_launch):
        at = order[rows]
        found.append(_overruns(starts[at], ends[at], new_launch[rows], new_lane[rows]))
    overrun = [np.concatenate(times) for times in zip(*found, strict=True)]
    return overrun[0], overrun[1]


def _by_lane(events: ArrowTable) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Order the kernels that are on a stream, and say which is the first on its stream."""
    is_kernel = rows_where(events, "category", lambda texts: pc.equal(texts, "kernel"))
    is_kernel &= events["stream"].is_valid().to_numpy()
    streams, devices = numbers_of(events, "stream"), texts_of(events, "device")[1]
    starts, ends = _spans(events)
    # all rows, those not wanted last: nothing has to be copied to leave them out
    order = np.lexsort((ends, starts, streams, devices, ~is_kernel))[: int(is_kernel.sum())]
    return order, _changes(streams, order) | _changes(devices, order)


def _has_new_launch(events: ArrowTable, order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Say of every row, in this order, whether another launch than the one before made it."""
    keys = numbers_of(events, "correlation")
    is_new = _changes(keys, order)
    is_new |= (keys == 0)[order]
    return is_new


def _changes(values: npt.NDArray[Any], order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Say of every row, in this order, whether it differs from the one before it."""
    differs = np.ones(order.size, np.bool_)
    for rows in parts(order.size):
        some = values[order[max(rows.start - 1, 0) : rows.stop]]
        differs[rows.stop - some.size + 1 : rows.stop] = some[1:] != some[:-1]
    return differs


def _with_next(new_launch: npt.NDArray[np.bool_]) -> Iterator[slice]:
    """Cut rows into slices of whole launches, each with the first row of the one after."""
    firsts = np.append(np.flatnonzero(new_launch), new_launch.size)
    ends = [rows.stop for rows in parts(new_launch.size)]
    cuts = np.unique(firsts[np.searchsorted(firsts, [0, *ends])])
    return (slice(begin, end + 1) for begin, end in pairwise(cuts.tolist()))


def _overruns(
    starts: Int64s,
    ends: Int64s,
    new_launch: npt.NDArray[np.bool_],
    new_lane: npt.NDArray[np.bool_],
) -> tuple[Int64s, Int64s]:
    next_ns = _next_start(starts, new_launch, new_lane, otherwise=ends)
    over_ns = ends - next_ns
    hit = (over_ns > _OVERLAP_NS) & (over_ns >= next_ns - starts)
    return next_ns[hit], ends[hit]


def _next_start(
    starts: Int64s,
    new_launch: npt.NDArray[np.bool_],
    new_lane: npt.NDArray[np.bool_],
    *,
    otherwise: Int64s,
) -> Int64s:
    """When does the next launch on the same stream start? ``otherwise`` where none does."""
    firsts = np.append(np.flatnonzero(new_launch), starts.size)
    which = np.cumsum(new_launch)  # of the launch after the row's own
    following = firsts[which]
    is_last = (following == starts.size) | np.append(new_lane, True)[following]
    following[is_last] = 0
    return np.where(is_last, otherwise, starts[following])


def _ranges(
    trace: RankTrace, category: str, wanted: Callable[[pa.Array], pa.Array]
) -> tuple[Int64s, Int64s]:
    """Return starts and ends of the ranges of a category whose names are wanted."""
    ranges = trace.tables["annotations"]
    of_category = rows_where(ranges, "category", lambda texts: pc.equal(texts, category))
    starts, ends = _spans(ranges)
    rows = of_category & rows_where(ranges, "name", wanted)
    return starts[rows], ends[rows]


def _spans(table: ArrowTable) -> tuple[Int64s, Int64s]:
    return table["start_ns"].to_numpy(), table["end_ns"].to_numpy()
