"""One rank, small: what the run needs to know of a trace once its events are forgotten."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
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
    texts_of,
)
from traceparse.rank.link import UNLINKED, launches_of, num_without_device_event
from traceparse.rank.steps import Marker, bounds_of, markers, members_of
from traceparse.rank.times import KernelCounts, Times, partition

__all__ = ["DeviceDigest", "RankDigest", "StepTimes", "Work", "digest", "work_of"]

CPU = "cpu"
_HOST_KINDS = (COMPUTE, COMM)
_IGNORED = 99  # the kind of host ranges that are no work
_DROPPED_SHARE = 0.01  # launches without device event that are worth a note (Kineto issue 996)


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


@dataclass(frozen=True, slots=True)
class RankDigest:
    """One trace file, digested."""

    header: Header
    health: FileHealth
    devices: tuple[DeviceDigest, ...]
    notes: tuple[Note, ...]


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
    """
    steps = markers(trace.tables["annotations"])
    works = work_of(trace)
    if not works:
        raise EmptyTraceError(
            f"{trace.health.path}: the trace has no kernel, copy or operator, only "
            f"{trace.health.events} other events; check the activities that the profiler was "
            f"given"
        )
    devices = tuple(_digest_device(work, steps) for work in works)
    health = _health(trace, works)
    return RankDigest(
        header=trace.header,
        health=health,
        devices=devices,
        notes=(
            *trace.notes,
            *_notes(health, devices, steps, trace.tables["launches"].num_rows),
        ),
    )


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
    if not events.num_rows:
        return replace(
            trace.health,
            launches_without_gpu_event=num_without_device_event(launches, events),
            gpu_events_without_launch=0,
        )
    return replace(
        trace.health,
        launches_without_gpu_event=num_without_device_event(launches, events),
        gpu_events_without_launch=sum(int((w.launched_ns == UNLINKED).sum()) for w in works),
    )


def _notes(
    health: FileHealth,
    devices: tuple[DeviceDigest, ...],
    steps: list[Marker],
    num_launches: int,
) -> list[Note]:
    said = [*_notes_on_events(health, num_launches), *_notes_on_steps(devices, steps)]
    return [Note(code, message, health.rank, health.path) for code, message in said]


def _notes_on_events(health: FileHealth, num_launches: int) -> list[tuple[str, str]]:
    said = []
    dropped, unlinked = health.launches_without_gpu_event, health.gpu_events_without_launch
    if not health.gpu_events:
        said.append(
            (
                "no_device_events",
                "no device events: the host's operators are accounted for, as device cpu",
            )
        )
        if dropped:
            said.append(
                (
                    "device_events_missing",
                    f"{dropped} launches but no device event at all: was another tool using "
                    f"the device's tracer?",
                )
            )
    elif dropped and dropped > _DROPPED_SHARE * num_launches:
        said.append(
            (
                "launches_without_device_event",
                f"{dropped} launches left no device event: the tracer dropped records, so the "
                f"device looks idler than it was",
            )
        )
    if unlinked:
        said.append(
            (
                "device_events_unlinked",
                f"{unlinked} of {health.gpu_events} device events have no launch in the file: "
                f"their time counts, but they belong to no step",
            )
        )
    return said


def _notes_on_steps(
    devices: tuple[DeviceDigest, ...], steps: list[Marker]
) -> list[tuple[str, str]]:
    if not steps:
        return [
            ("no_step_markers", "no ProfilerStep marks: the whole window counts as one step")
        ]
    said = []
    if any(one.end_ns > other.start_ns for one, other in pairwise(steps)):
        said.append(
            ("steps_overlap", "ProfilerStep marks overlap: work in two of them belongs to both")
        )
    for device in devices:
        empty = [step.name or "a step" for step in device.steps if step.times is None]
        if empty:
            said.append(
                (
                    "step_without_work",
                    f"{_some(empty)} launched nothing on device {device.device}: no interval",
                )
            )
    return said


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
