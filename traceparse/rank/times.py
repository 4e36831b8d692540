"""Where the time of one device went between two instants: TIMES of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from traceparse.intervals import Intervals, clip, difference, length, union

__all__ = ["PART_NAMES", "DeviceDigest", "KernelCounts", "StepTimes", "Times", "partition"]

_PIECE = 1 << 16  # intervals of each set that are combined at a time

# The four that add up to a span, and what people read for them
PART_NAMES: Final = {
    "compute_ns": "compute",
    "exposed_comm_ns": "exposed comm",
    "exposed_copy_ns": "exposed copy",
    "idle_ns": "idle",
}


@dataclass(frozen=True, slots=True)
class Times:
    """An exact partition of a span of device time, in integer nanoseconds.

    ``compute_ns + exposed_comm_ns + exposed_copy_ns + idle_ns == span_ns`` and
    ``overlap_ns + exposed_comm_ns == comm_ns``, always. ``start_ns`` and ``end_ns`` are Unix
    nanoseconds on the rank's own clock.
    """

    start_ns: int
    end_ns: int
    span_ns: int
    busy_ns: int
    compute_ns: int
    comm_ns: int
    copy_ns: int
    overlap_ns: int
    exposed_comm_ns: int
    exposed_copy_ns: int
    idle_ns: int


@dataclass(frozen=True, slots=True)
class KernelCounts:
    """How many kernels a device ran, and how many of them have no launch record in the file.

    ``time_ns`` sums durations, so kernels that run side by side count twice. ``unattributed``
    kernels belong to no operator; they are counted once operators are (``None`` until then).
    """

    count: int
    time_ns: int
    unlinked_count: int
    unlinked_time_ns: int
    unattributed_count: int | None = None
    unattributed_time_ns: int | None = None


@dataclass(frozen=True, slots=True)
class StepTimes:
    """One step on one device; ``times`` is ``None`` if it launched nothing there."""

    step: int | None
    name: str | None
    open_ended: bool
    times: Times | None


@dataclass(frozen=True, slots=True)
class DeviceDigest:
    """One device of one rank: its window, its steps, its kernels."""

    device: int | str
    window: Times
    steps: tuple[StepTimes, ...]
    kernels: KernelCounts


def partition(
    compute: Intervals, comm: Intervals, copy: Intervals, *, start_ns: int, end_ns: int
) -> Times:
    """Account for every nanosecond of ``[start_ns, end_ns)`` on one device.

    The three interval sets are unions over all streams of the device (report contract,
    section 3); whatever lies outside the span is cut off.
    """
    sets = (compute, comm, copy)
    cuts = _cuts(sets, start_ns, end_ns)
    pieces = [_lengths(sets, begin, end) for begin, end in pairwise(cuts)]
    whole = _Lengths(*map(sum, zip(*pieces, strict=True)))
    busy_ns = whole.compute + whole.exposed_comm + whole.exposed_copy
    span_ns = end_ns - start_ns
    return Times(
        start_ns=start_ns,
        end_ns=end_ns,
        span_ns=span_ns,
        busy_ns=busy_ns,
        compute_ns=whole.compute,
        comm_ns=whole.comm,
        copy_ns=whole.copy,
        overlap_ns=whole.comm - whole.exposed_comm,
        exposed_comm_ns=whole.exposed_comm,
        exposed_copy_ns=whole.exposed_copy,
        idle_ns=span_ns - busy_ns,
    )


class _Lengths(NamedTuple):
    """What a partition is made of, in ns; of two spans side by side each adds up."""

    compute: int
    comm: int
    copy: int
    exposed_comm: int
    exposed_copy: int


def _cuts(sets: Sequence[Intervals], start_ns: int, end_ns: int) -> list[int]:
    """Cut a span so that memory is needed for the intervals of a piece, not for all."""
    if all(part.starts.size <= _PIECE for part in sets):
        return [start_ns, end_ns]
    firsts = np.concatenate([part.starts[::_PIECE] for part in sets])
    inside = np.unique(firsts[(firsts > start_ns) & (firsts < end_ns)])
    return [start_ns, *inside.tolist(), end_ns]


def _lengths(sets: Sequence[Intervals], start_ns: int, end_ns: int) -> _Lengths:
    compute, comm, copy = (clip(part, start_ns, end_ns) for part in sets)
    return _Lengths(
        compute=length(compute),
        comm=length(comm),
        copy=length(copy),
        exposed_comm=length(difference(comm, compute)),
        exposed_copy=length(difference(copy, union(comm, compute))),
    )
