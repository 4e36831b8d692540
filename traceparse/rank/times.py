"""Where the time of one device went between two instants: TIMES of the contract."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa

from traceparse.rank.counted import StepWork
from traceparse.tables import ArrowTable, schema_of

__all__ = [
    "CALLS",
    "EXPOSED",
    "NEVER",
    "PART_NAMES",
    "SYNCS",
    "TASKS",
    "DeviceDigest",
    "IdleTimes",
    "KernelCounts",
    "StepTimes",
    "Times",
]

# The table ``collectives`` of one device
CALLS: Final = pa.schema(
    [one for one in schema_of("collectives") if one.name not in ("rank", "device")]
)
EXPOSED: Final = pa.schema([("start_ns", pa.int64()), ("end_ns", pa.int64())])

# What one device did, task by task, in the order in which its host asked for it
NEVER: Final = -(1 << 62)  # of arrivals: none is known
TASKS: Final = pa.schema(
    [
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("stream", pa.int32()),  # numbered from 0
        ("call", pa.int32()),  # its row in ``calls``; -1: no call
        ("work_ns", pa.int64()),  # its kernels, and gaps that no launch explains
        ("gaps_ns", pa.int64()),  # of that, these gaps
        ("launched_ns", pa.int64()),  # its first launch; its start, if that is not known
        ("ready_ns", pa.int64()),  # when that can have arrived
        ("arrival_ns", pa.int64()),  # of the later launch that holds its end up most
        ("tail_ns", pa.int64()),  # what is left to do from there
        ("waits", pa.int32()),  # calls that let a stream wait, since the task before
    ]
)
SYNCS: Final = pa.schema([("start_ns", pa.int64()), ("end_ns", pa.int64())])

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


class IdleTimes(NamedTuple):
    """What the host did while a device idled: a partition, :mod:`traceparse.rank.idle`."""

    data_loader_ns: int
    sync_ns: int
    launch_ns: int
    unknown_ns: int


@dataclass(frozen=True, slots=True)
class KernelCounts:
    """How many kernels a device ran, and how many of them have no launch record in the file.

    ``time_ns`` sums durations, so kernels that run side by side count twice. ``unattributed``
    kernels were launched by no operator that the trace has, or nobody knows by which.
    """

    count: int
    time_ns: int
    unlinked_count: int
    unlinked_time_ns: int
    unattributed_count: int
    unattributed_time_ns: int


@dataclass(frozen=True, slots=True)
class StepTimes:
    """One step on one device; ``times`` is ``None`` if it launched nothing there.

    ``work`` is ``None`` where the trace does not tell it: no operators, or none with shapes.
    ``twice_contention_ns`` is twice how much longer its compute kernels took that collectives
    overlap, than the median of those alike that none does: a median may be half a ns.
    ``idle`` parts ``times.idle_ns``; ``None`` where there is too much of it to be parted.
    """

    step: int | None
    name: str | None
    open_ended: bool
    times: Times | None
    work: StepWork | None = None
    twice_contention_ns: int = 0
    idle: IdleTimes | None = None


@dataclass(frozen=True, slots=True)
class DeviceDigest:
    """One device of one rank: its window, its steps, its kernels, its communication.

    ``calls`` has a row for every collective and point-to-point call, in order of start, ties
    by end; its columns are :data:`CALLS`. ``exposed`` are the intervals of the window in which
    any of them runs and compute does not: disjoint, in order, :data:`EXPOSED`.
    ``overlapped_ns`` sums compute kernels that collectives overlap, ``never_alone_ns`` those of
    them that are like none that ran alone, so that nobody knows what they took longer.
    ``tasks`` are what it did as :mod:`traceparse.rank.tasks` has it, :data:`TASKS`; ``syncs``
    are the calls that made its host wait, in order of start, :data:`SYNCS`.
    """

    device: int | str
    window: Times
    steps: tuple[StepTimes, ...]
    kernels: KernelCounts
    overlapped_ns: int = 0
    never_alone_ns: int = 0
    calls: ArrowTable = field(default_factory=CALLS.empty_table)
    exposed: ArrowTable = field(default_factory=EXPOSED.empty_table)
    tasks: ArrowTable = field(default_factory=TASKS.empty_table)
    syncs: ArrowTable = field(default_factory=SYNCS.empty_table)
