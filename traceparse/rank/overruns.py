"""Kernels that run on although the next one on their stream has begun, which cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from traceparse.ingest import Kept
from traceparse.intervals import Int64s
from traceparse.ordered import Ordered, Rows
from traceparse.rank.rows import numbers_of, rows_where, texts_of

__all__ = ["overruns"]

# Kernels on one stream do overlap a little: by up to 5 us where the next may start early (PDL)
_OVERLAP_NS = 10_000
_FIELDS = (
    ("device", "i4"),
    ("stream", "u8"),
    ("start", "i8"),
    ("end", "i8"),
    ("row", "i8"),  # the order of the file, where all else is equal
    ("key", "u8"),
)
_LANE = ("device", "stream")


def overruns(device_events: Kept) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield from when to when kernels run on although the next on their stream has begun.

    Only overlaps that no healthy trace has: more than ``_OVERLAP_NS``, and at least half of
    the kernel (the durations that ROCm gets wrong are nearly all overlap: TraceLens issue
    669). Kernels of one launch are not compared: a graph runs its branches side by side, and
    the tracer puts them all on the stream it was launched into.
    """
    waiting: Rows | None = None  # of the last launch: the next one on their stream may follow
    for rows in _by_lane(device_events).parts():
        some = rows if waiting is None else np.concatenate([waiting, rows])
        new_launch = _changes(some, *_LANE, "key") | (some["key"] == 0)
        last = int(np.flatnonzero(new_launch)[-1])
        yield _overruns(some, new_launch, last)
        waiting = _running(some[last:])


def _by_lane(device_events: Kept) -> Ordered:
    """Order the kernels that are on a stream by it, and on it by time."""
    found = Ordered(_FIELDS, by=(*_LANE, "start", "end", "row"))
    devices: dict[str, int] = {}
    num = 0
    columns = ("category", "device", "stream", "start_ns", "end_ns", "correlation")
    for part in device_events.parts(*columns):
        rows = rows_where(part, "category", lambda texts: pc.equal(texts, "kernel"))
        rows &= part["stream"].is_valid().to_numpy()
        found.add(
            int(rows.sum()),
            device=texts_of(part, "device", devices)[1][rows],
            stream=numbers_of(part, "stream")[rows],
            start=part["start_ns"].to_numpy()[rows],
            end=part["end_ns"].to_numpy()[rows],
            row=np.arange(num, num + part.num_rows)[rows],
            key=numbers_of(part, "correlation")[rows],
        )
        num += part.num_rows
    return found


def _changes(rows: Rows, *fields: str) -> npt.NDArray[np.bool_]:
    """Say of every row whether it differs in any of these from the one before it."""
    differs = np.zeros(rows.size, np.bool_)
    differs[0] = True
    for field in fields:
        values: npt.NDArray[Any] = rows[field]
        differs[1:] |= values[1:] != values[:-1]
    return differs


def _overruns(rows: Rows, new_launch: npt.NDArray[np.bool_], num: int) -> tuple[Int64s, Int64s]:
    """Return the overruns among the first rows, those of all launches but the last."""
    starts, ends = rows["start"][:num], rows["end"][:num]
    firsts = np.flatnonzero(new_launch)
    following = firsts[np.cumsum(new_launch)[:num]]
    next_ns = np.where(_changes(rows, *_LANE)[following], ends, rows["start"][following])
    over_ns = ends - next_ns
    hit = (over_ns > _OVERLAP_NS) & (over_ns >= next_ns - starts)
    return next_ns[hit], ends[hit]


def _running(rows: Rows) -> Rows:
    """Return those of one launch that may run into another, and the last one in any case."""
    still = rows["end"] > rows["start"][-1] + _OVERLAP_NS
    still[-1] = True
    running: Rows = rows[still]
    return running
