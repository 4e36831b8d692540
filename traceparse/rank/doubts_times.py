"""Doubts about times: how exact they are, whose they are, whether they can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest import FileHealth, RankTrace
from traceparse.intervals import (
    Int64s,
    Intervals,
    from_spans,
    intersection,
    length,
    merged,
)
from traceparse.ordered import Ordered
from traceparse.rank.overruns import overruns
from traceparse.rank.rows import rows_where
from traceparse.rank.steps import Marker
from traceparse.rank.times import DeviceDigest
from traceparse.tables import ArrowTable
from traceparse.units import format_ns, format_number_of, format_percent

__all__ = ["about_times"]

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
_SPAN = (("start", "i8"), ("end", "i8"))


def _is_of_profiler(names: pa.Array) -> pa.Array:
    return pc.invert(pc.is_in(names, value_set=pa.array(_NOT_PROFILER)))


def _is_window(names: pa.Array) -> pa.Array:
    return pc.starts_with(names, _WINDOW)


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
    events = trace.kept["device_events"]
    num = sum(int(np.sum(starts == ends)) for starts, ends in _device_spans(trace))
    of_device = f"; {num:,} of {events.num_rows:,} device events last 0" * bool(events.num_rows)
    yield (
        "time_resolution_us",
        f"times are whole microseconds: each is up to 1 us off, and time in short kernels "
        f"or operators comes out low{of_device}",
    )


def _about_overhead(
    trace: RankTrace, steps: Sequence[Marker], devices: Sequence[DeviceDigest]
) -> Iterator[tuple[str, str]]:
    """Buffer requests hold up the launch that meets one (Kineto issue 1020)."""
    windows = [device.window for device in devices]
    inside = from_spans(
        np.array([span.start_ns for span in (steps or windows)], np.int64),
        np.array([span.end_ns for span in (steps or windows)], np.int64),
    )
    ranges = Ordered(_SPAN, by=("start",))
    num = 0
    for starts, ends in _ranges(trace, "overhead", _is_of_profiler):
        firsts = np.searchsorted(inside.ends, starts, "right")
        hit = firsts < np.searchsorted(inside.starts, ends)
        num += int(np.sum(hit))
        ranges.add(int(hit.sum()), start=starts[hit], end=ends[hit])
    lost_ns = sum(length(intersection(part, inside)) for part in _covered(ranges))
    whole_ns = length(inside)
    if lost_ns * _OVERHEAD_PARTS <= whole_ns:
        return
    yield (
        "profiler_overhead",
        f"the profiler's own work on the host takes {format_percent(lost_ns, whole_ns)} of "
        f"{'the steps' if steps else 'the window'} ({format_number_of(num, 'range')}, "
        f"{format_ns(lost_ns)}): launches wait for it, so some idle time is the profiler's",
    )


def _about_window(trace: RankTrace) -> Iterator[tuple[str, str]]:
    """Old ROCm kept the kernels of the warm-up (Kineto issue 743: 45 s of them)."""
    windows = list(_ranges(trace, "trace", _is_window))
    if not windows:
        return
    begin = min(int(starts.min()) for starts, _ in windows)
    end = max(int(ends.max()) for _, ends in windows)
    num = far_ns = 0
    num_events = trace.kept["device_events"].num_rows
    for starts, ends in _device_spans(trace):
        beyond_ns = np.maximum(begin - starts, ends - end)
        outside = (starts < begin) | (ends > end + _TAIL_NS)
        num += int(outside.sum())
        far_ns = max(far_ns, int(beyond_ns.max(initial=0, where=outside)))
    if num:
        yield (
            "device_events_outside_window",
            f"{num:,} of {num_events:,} device events outside the profiler's recorded window, "
            f"by up to {format_ns(far_ns)}: they count, and stretch the device's window beyond "
            f"what was recorded of the host",
        )


def _about_overlaps(trace: RankTrace) -> Iterator[tuple[str, str]]:
    found = Ordered(_SPAN, by=("start",))
    for starts, ends in overruns(trace.kept["device_events"]):
        found.add(starts.size, start=starts, end=ends)
    if found.num_rows:
        yield (
            "kernels_overlap_on_stream",
            f"{format_number_of(found.num_rows, 'kernel')} running into the next on the same "
            f"stream by more than 10 us and half the duration, "
            f"{format_ns(sum(map(length, _covered(found))))} in all: a stream runs one kernel "
            f"at a time, so these durations, and busy time with them, may be too long",
        )


def _covered(spans: Ordered) -> Iterator[Intervals]:
    """Yield what spans cover, in disjoint parts."""
    return merged((rows["start"], rows["end"]) for rows in spans.parts())


def _ranges(
    trace: RankTrace, category: str, wanted: Callable[[pa.Array], pa.Array]
) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield starts and ends of the ranges of a category whose names are wanted, if any."""
    for ranges in trace.kept["annotations"].parts("start_ns", "end_ns", "category", "name"):
        rows = rows_where(ranges, "category", lambda texts: pc.equal(texts, category))
        rows &= rows_where(ranges, "name", wanted)
        if rows.any():
            starts, ends = _spans(ranges)
            yield starts[rows], ends[rows]


def _device_spans(trace: RankTrace) -> Iterator[tuple[Int64s, Int64s]]:
    return map(_spans, trace.kept["device_events"].parts("start_ns", "end_ns"))


def _spans(table: ArrowTable) -> tuple[Int64s, Int64s]:
    return table["start_ns"].to_numpy(), table["end_ns"].to_numpy()
