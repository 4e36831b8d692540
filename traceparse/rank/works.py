"""What each device of a rank worked on and when, as columns; the host where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.ingest import RankTrace
from traceparse.intervals import Int64s
from traceparse.rank.classify import COMM, COMPUTE, COPY, Kinds, kinds_of, kinds_on_host
from traceparse.rank.link import launches_of
from traceparse.rank.rows import distinct, texts_of
from traceparse.rank.steps import past_belief
from traceparse.tables import ArrowTable

__all__ = ["Work", "devices_of", "work_of"]

CPU = "cpu"
_HOST_KINDS = (COMPUTE, COMM)
_MOST_DEVICES = 1024  # of one process; nobody has more than 16
_IGNORED = 99  # the kind of host ranges that are no work
_ALL = slice(None)


class Work(NamedTuple):
    """What was done and when, on one device: columns of equal length, times in Unix ns.

    ``rows`` are its places among all device events. ``launched_ns`` is ``UNLINKED`` where no
    launch is recorded; ``is_kernel`` tells kernels from copies and from host work.
    """

    device: int | str
    rows: slice | npt.NDArray[np.int64]
    starts: Int64s
    ends: Int64s
    kinds: Kinds
    launched_ns: Int64s
    is_kernel: npt.NDArray[np.bool_]


def devices_of(trace: RankTrace) -> list[tuple[int | str, int]]:
    """Return the devices of a trace in order, each with its number in column ``device``.

    Raises
    ------
    InputError
        There are more than any process can have.
    """
    names = distinct(trace.tables["device_events"], "device")
    if len(names) > _MOST_DEVICES:
        raise past_belief(trace.health.path, len(names), "devices")
    found = [(_device(name), number) for number, name in enumerate(names)]
    return sorted(found, key=lambda one: (isinstance(one[0], str), str(one[0]).zfill(20)))


def _device(name: str) -> int | str:
    return int(name) if name.isascii() and name.isdigit() and len(name) < 19 else name


def work_of(trace: RankTrace) -> Iterator[Work]:
    """Yield the work of each device, in order; of the host where there is no device.

    One at a time, for memory's sake: that of several is copied, that of an only one is not.
    """
    events = trace.tables["device_events"]
    if not events.num_rows:
        yield from _host_work(trace)
        return
    devices = devices_of(trace)
    whole = _device_work(trace)
    if len(devices) == 1:
        yield whole._replace(device=devices[0][0])
        return
    _, ids = texts_of(events, "device")
    for device, number in devices:
        rows = np.flatnonzero(ids == number)
        yield Work(
            device=device,
            rows=rows,
            starts=whole.starts[rows],
            ends=whole.ends[rows],
            kinds=whole.kinds[rows],
            launched_ns=whole.launched_ns[rows],
            is_kernel=whole.is_kernel[rows],
        )


def _device_work(trace: RankTrace) -> Work:
    """Return the work of all devices together."""
    events = trace.tables["device_events"]
    kinds = kinds_of(events)
    return Work(
        device="",
        rows=_ALL,
        starts=events["start_ns"].to_numpy(),
        ends=events["end_ns"].to_numpy(),
        kinds=kinds,
        launched_ns=launches_of(events, trace.tables["launches"]),
        is_kernel=kinds != COPY,
    )


def _host_work(trace: RankTrace) -> Iterator[Work]:
    """Yield the work of the host: operators compute, gloo and MPI communicate."""
    parts = [
        _host_part(trace.tables["ops"], other=COMPUTE),
        _host_part(trace.tables["annotations"], other=_IGNORED),
    ]
    starts, ends, kinds = (_joined(columns) for columns in zip(*parts, strict=True))
    if starts.size:
        yield Work(CPU, _ALL, starts, ends, kinds, starts, np.zeros(starts.size, np.bool_))


def _host_part(spans: ArrowTable, *, other: int) -> tuple[Int64s, Int64s, Kinds]:
    kinds = kinds_on_host(spans, other=other)
    is_work = np.isin(kinds, _HOST_KINDS)
    rows = _ALL if is_work.all() else is_work
    return spans["start_ns"].to_numpy()[rows], spans["end_ns"].to_numpy()[rows], kinds[rows]


def _joined(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Put columns under one another; one alone is not copied."""
    filled = [column for column in columns if column.size]
    return filled[0] if len(filled) == 1 else np.concatenate(columns)
