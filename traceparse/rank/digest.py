"""One rank, small: what the run needs to know of a trace once its events are forgotten."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.errors import EmptyTraceError, Note
from traceparse.ingest import FileHealth, Header, RankTrace
from traceparse.intervals import Int64s, from_spans
from traceparse.rank.classify import (
    COMM,
    COMPUTE,
    COPY,
    Kinds,
    kinds_of,
    kinds_on_host,
)
from traceparse.rank.doubts import doubts
from traceparse.rank.link import UNLINKED, launches_of, num_without_device_event
from traceparse.rank.rows import texts_of
from traceparse.rank.steps import (
    MOST_DEVICE_STEPS,
    Marker,
    bounds_of,
    markers,
    members_of,
    past_belief,
)
from traceparse.rank.times import DeviceDigest, KernelCounts, StepTimes, Times, partition

__all__ = ["RankDigest", "Work", "digest", "work_of"]

CPU = "cpu"
_HOST_KINDS = (COMPUTE, COMM)
_MOST_DEVICES = 1024  # of one process; nobody has more than 16
_IGNORED = 99  # the kind of host ranges that are no work


@dataclass(frozen=True, slots=True)
class RankDigest:
    """One trace, digested. ``process`` is the id of the process that it shows most of."""

    header: Header
    health: FileHealth
    devices: tuple[DeviceDigest, ...]
    notes: tuple[Note, ...]
    process: str | None = None


class Work(NamedTuple):
    """What was done and when, on one device: columns of equal length, times in Unix ns.

    ``launched_ns`` is ``UNLINKED`` where no launch is recorded; ``is_kernel`` tells kernels
    from copies and from host work.
    """

    device: int | str
    rows: npt.NDArray[np.int64]
    starts: Int64s
    ends: Int64s
    kinds: Kinds
    launched_ns: Int64s
    is_kernel: npt.NDArray[np.bool_]


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
    works = work_of(trace)
    if not works:
        raise EmptyTraceError(
            f"{trace.health.path}: the trace has no kernel, copy or operator, only "
            f"{trace.health.events} other events; check the activities that the profiler was "
            f"given"
        )
    if len(steps) * len(works) > MOST_DEVICE_STEPS:
        raise past_belief(trace.health.path, len(steps) * len(works), "steps of devices")
    devices = tuple(_digest_device(work, steps) for work in works)
    health = _health(trace, works)
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


def work_of(trace: RankTrace) -> list[Work]:
    """Return the work of each device, in order; of the host where there is no device."""
    events = trace.tables["device_events"]
    if not events.num_rows:
        work = _host_work(trace)
        return [work] if work.rows.size else []
    kinds = kinds_of(events)
    launched_ns = launches_of(events, trace.tables["launches"])
    starts, ends = events["start_ns"].to_numpy(), events["end_ns"].to_numpy()
    names, ids = texts_of(events, "device")
    if len(names) > _MOST_DEVICES:
        raise past_belief(trace.health.path, len(names), "devices")
    works = []
    for number, name in enumerate(names):
        rows = np.flatnonzero(ids == number)
        works.append(
            Work(
                device=_device(name),
                rows=rows,
                starts=starts[rows],
                ends=ends[rows],
                kinds=kinds[rows],
                launched_ns=launched_ns[rows],
                is_kernel=kinds[rows] != COPY,
            )
        )
    return sorted(
        works, key=lambda work: (isinstance(work.device, str), str(work.device).zfill(20))
    )


def _device(name: str) -> int | str:
    return int(name) if name.isascii() and name.isdigit() and len(name) < 19 else name


def _host_work(trace: RankTrace) -> Work:
    """Return the work of the host: operators compute, gloo and MPI communicate."""
    ops, ranges = trace.tables["ops"], trace.tables["annotations"]
    kinds = np.concatenate(
        [kinds_on_host(ops, other=COMPUTE), kinds_on_host(ranges, other=_IGNORED)]
    )
    starts = np.concatenate([ops["start_ns"].to_numpy(), ranges["start_ns"].to_numpy()])
    ends = np.concatenate([ops["end_ns"].to_numpy(), ranges["end_ns"].to_numpy()])
    rows = np.flatnonzero(np.isin(kinds, _HOST_KINDS))
    return Work(
        device=CPU,
        rows=rows,
        starts=starts[rows],
        ends=ends[rows],
        kinds=kinds[rows],
        launched_ns=starts[rows],
        is_kernel=np.zeros(rows.size, np.bool_),
    )


def _digest_device(work: Work, steps: list[Marker]) -> DeviceDigest:
    sets = [
        from_spans(work.starts[work.kinds == kind], work.ends[work.kinds == kind])
        for kind in (COMPUTE, COMM, COPY)
    ]

    def times(start_ns: int, end_ns: int) -> Times:
        return partition(*sets, start_ns=start_ns, end_ns=end_ns)

    window = times(int(work.starts.min()), int(work.ends.max()))
    if not steps:
        cut: tuple[StepTimes, ...] = (StepTimes(None, None, open_ended=False, times=window),)
    else:
        bounds = bounds_of(
            steps,
            members_of(steps, work.launched_ns),
            starts=work.starts,
            ends=work.ends,
            is_compute=work.kinds == COMPUTE,
        )
        cut = tuple(
            StepTimes(
                step.step,
                step.name,
                open_ended=bool(bound and bound.open_ended),
                times=bound and times(bound.start_ns, bound.end_ns),
            )
            for step, bound in zip(steps, bounds, strict=True)
        )
    return DeviceDigest(work.device, window, cut, _count(work))


def _count(work: Work) -> KernelCounts:
    lasts = work.ends - work.starts
    unlinked = work.is_kernel & (work.launched_ns == UNLINKED)
    return KernelCounts(
        count=int(work.is_kernel.sum()),
        time_ns=_total(lasts[work.is_kernel]),
        unlinked_count=int(unlinked.sum()),
        unlinked_time_ns=_total(lasts[unlinked]),
    )


def _total(values: Int64s) -> int:
    """Add up without overflow, however long a file claims its kernels to be."""
    return (int(np.sum(values >> 32)) << 32) + int(np.sum(values & 0xFFFFFFFF))


def _health(trace: RankTrace, works: list[Work]) -> FileHealth:
    events, launches = trace.tables["device_events"], trace.tables["launches"]
    # work of the host is its own launch, so none of it counts here
    unlinked = sum(int((work.launched_ns == UNLINKED).sum()) for work in works)
    return replace(
        trace.health,
        launches_without_gpu_event=num_without_device_event(launches, events),
        gpu_events_without_launch=unlinked,
    )
