"""One rank, small: what the run needs to know of a trace once its events are forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.errors import EmptyTraceError, Note
from traceparse.ingest import FileHealth, Header, RankTrace
from traceparse.intervals import Intervals, from_spans
from traceparse.rank.classify import COMM, COMPUTE, COPY
from traceparse.rank.doubts import doubts
from traceparse.rank.link import UNLINKED, num_without_device_event
from traceparse.rank.rows import parts, texts_of
from traceparse.rank.steps import (
    MOST_DEVICE_STEPS,
    Bounds,
    Marker,
    bounds_of,
    markers,
    members_of,
    past_belief,
)
from traceparse.rank.times import DeviceDigest, KernelCounts, StepTimes, Times, partition
from traceparse.rank.works import Work, devices_of, work_of

__all__ = ["RankDigest", "digest"]


@dataclass(frozen=True, slots=True)
class RankDigest:
    """One trace, digested. ``process`` is the id of the process that it shows most of."""

    header: Header
    health: FileHealth
    devices: tuple[DeviceDigest, ...]
    notes: tuple[Note, ...]
    process: str | None = None


def digest(trace: RankTrace) -> RankDigest:
    """Digest a trace: classify its events, link them to launches, cut steps, account for time.

    Raises
    ------
    EmptyTraceError
        Nothing in the trace is work of a device or of the host.
    InputError
        It claims more devices or steps than there can be.
    """
    steps = markers(trace.tables["annotations"], trace.health.path)
    num_step_rows = len(steps) * len(devices_of(trace))
    if num_step_rows > MOST_DEVICE_STEPS:
        raise past_belief(trace.health.path, num_step_rows, "steps of devices")
    digested = list(map(partial(_digest_device, steps), work_of(trace)))
    if not digested:
        raise EmptyTraceError(
            f"{trace.health.path}: the trace has no kernel, copy or operator, only "
            f"{trace.health.events} other events; check the activities that the profiler was "
            f"given"
        )
    devices = tuple(one.device for one in digested)
    health = _health(trace, digested)
    return RankDigest(
        header=trace.header,
        health=health,
        devices=devices,
        notes=(
            *trace.notes,
            *doubts(trace, health, steps, devices),
        ),
        process=_process(trace),
    )


def _process(trace: RankTrace) -> str | None:
    for name in ("ops", "launches", "annotations"):
        pids, ids = texts_of(trace.tables[name], "pid")
        if pids:
            return pids[int(np.bincount(ids[ids >= 0]).argmax())]
    return None


class _Digested(NamedTuple):
    device: DeviceDigest
    num_unlinked: int  # of all its events


def _digest_device(steps: list[Marker], work: Work) -> _Digested:
    bounds = _bounds(steps, work)  # first, as its columns need not wait beside the sets
    sets = [_covered(work, kind) for kind in (COMPUTE, COMM, COPY)]

    def times(start_ns: int, end_ns: int) -> Times:
        return partition(*sets, start_ns=start_ns, end_ns=end_ns)

    window = times(int(work.starts.min()), int(work.ends.max()))
    if not steps:
        cut: tuple[StepTimes, ...] = (StepTimes(None, None, open_ended=False, times=window),)
    else:
        cut = tuple(
            StepTimes(
                step.step,
                step.name,
                open_ended=bool(bound and bound.open_ended),
                times=bound and times(bound.start_ns, bound.end_ns),
            )
            for step, bound in zip(steps, bounds, strict=True)
        )
    return _Digested(
        DeviceDigest(work.device, window, cut, _count(work)),
        int((work.launched_ns == UNLINKED).sum()),
    )


def _bounds(steps: list[Marker], work: Work) -> list[Bounds | None]:
    if not steps:
        return []
    return bounds_of(
        steps,
        members_of(steps, work.launched_ns),
        starts=work.starts,
        ends=work.ends,
        is_compute=work.kinds == COMPUTE,
    )


def _covered(work: Work, kind: int) -> Intervals:
    rows = work.kinds == kind
    if rows.all():  # as often: no copies
        return from_spans(work.starts, work.ends)
    return from_spans(work.starts[rows], work.ends[rows])


def _count(work: Work) -> KernelCounts:
    unlinked = work.is_kernel & (work.launched_ns == UNLINKED)
    return KernelCounts(
        count=int(work.is_kernel.sum()),
        time_ns=_total_ns(work, work.is_kernel),
        unlinked_count=int(unlinked.sum()),
        unlinked_time_ns=_total_ns(work, unlinked),
    )


def _total_ns(work: Work, which: npt.NDArray[np.bool_]) -> int:
    """Add up durations without overflow, however long a file claims its kernels to be."""
    total = 0
    for rows in parts(which.size):
        lasts = (work.ends[rows] - work.starts[rows])[which[rows]]
        total += (int(np.sum(lasts >> 32)) << 32) + int(np.sum(lasts & 0xFFFFFFFF))
    return total


def _health(trace: RankTrace, digested: Sequence[_Digested]) -> FileHealth:
    events, launches = trace.tables["device_events"], trace.tables["launches"]
    return replace(
        trace.health,
        launches_without_gpu_event=num_without_device_event(launches, events),
        # work of the host is its own launch, so none of it counts here
        gpu_events_without_launch=sum(one.num_unlinked for one in digested),
    )
