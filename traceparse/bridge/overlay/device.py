"""The streams of a device as its trace has them.

In less detail, short events that follow each other closely are put together: as how many they
are, and how long they took.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from traceparse.bridge.overlay.job import MERGED, Device, Job, by_value, groups
from traceparse.bridge.overlay.lanes import lanes, outside_in
from traceparse.bridge.overlay.lines import Event, Track, at_once, span
from traceparse.bridge.overlay.plan import DETAILS_NS, tracks_layer
from traceparse.bridge.overlay.rows import Ids, Rows, by_row
from traceparse.bridge.overlay.steps import Window
from traceparse.intervals import Int64s

__all__ = ["Events", "draw_events"]


@dataclass(frozen=True, slots=True)
class Events:
    """Device events of one device in the order in which they are drawn, track by track.

    ``rows`` are those of the table; ``tids`` are the threads that they are drawn on.
    """

    rows: Int64s
    tids: Int64s
    starts: Int64s
    ends: Int64s
    own_starts: Int64s
    own_ends: Int64s


def draw_events(job: Job, device: Device, table: Rows, ids: Ids) -> Events:
    """Draw the streams of a device; return where its events are drawn."""
    events = _placed(job, device, table)
    streams = _Streams(job, device, table, ids, events)
    streams.draw()
    for detail in range(1, len(DETAILS_NS)):
        if job.plan.wants_layer(tracks_layer(detail)):
            streams.draw_merged(detail)
    return events


def _placed(job: Job, device: Device, table: Rows) -> Events:
    """Find a track for each event of a device: its stream's, or where it overlaps another."""
    names = table.texts("device", np.arange(table.num))
    rows = np.flatnonzero(np.array([name == device.name for name in names], np.bool_))
    own_starts, own_ends = table.times("start_ns")[rows], table.times("end_ns")[rows]
    starts, ends = (job.aligned(device.place, one) for one in (own_starts, own_ends))
    labels: dict[str, int] = {}
    streams = [
        labels.setdefault(label, len(labels))
        for label in table.labels("stream", rows, "stream")
    ]
    rows_of = dict(by_value(np.array(streams, np.int64)))
    order, tids = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for label in sorted(labels, key=lambda one: (len(one), one)):
        mine = rows_of[labels[label]]
        mine = mine[outside_in(starts[mine], ends[mine])]
        for number, own in by_value(lanes(starts[mine], ends[mine], may_nest=False)):
            suffix = f" ({number + 1})" if number else ""
            track = job.names.thread(device.pid, (label or "no stream") + suffix)
            order.append(mine[own])
            tids.append(np.full(own.size, track.tid))
    at = np.concatenate(order)
    return Events(
        rows[at],
        np.concatenate(tids),
        *(column[at] for column in (starts, ends, own_starts, own_ends)),
    )


_NUMBERS: Final = ("step", "flop")
_TEXTS: Final = ("kind", "op", "shapes", "dtype")


class _Streams:
    """The streams of one device, drawn step by step in each detail."""

    def __init__(self, job: Job, device: Device, table: Rows, ids: Ids, events: Events) -> None:
        self._job, self._device, self._table, self._ids = job, device, table, ids
        self._events = events
        self._places = job.steps.of(device.marked, events.own_starts)

    def draw(self) -> None:
        """Draw each event."""
        for place, at in by_value(self._places):
            for some in at_once(at.size):
                self._put(0, place, at[some], self._each)

    def draw_merged(self, detail: int) -> None:
        """Draw short events together; what communicates stays apart but in the least detail."""
        events, table = self._events, self._table
        kept = None
        if detail < len(DETAILS_NS) - 1:
            kept = np.array(
                [one == "comm" for one in table.texts("kind", events.rows)], np.bool_
            )
        tracks = events.tids * (len(self._job.steps.numbers) + 2) + self._places
        firsts = groups(events.starts, events.ends, tracks, DETAILS_NS[detail], kept)
        lasts = np.append(firsts[1:], events.starts.size)
        for place, mine in by_value(self._places[firsts]):
            self._put(
                detail,
                place,
                firsts[mine],
                partial(self._merged, lasts[mine]),
            )

    def _put(
        self, detail: int, place: int, rows: Int64s, drawn: Callable[[Int64s], list[Event]]
    ) -> None:
        plan, layer = self._job.plan, tracks_layer(detail)
        if plan.wants(layer, place, place):
            plan.put(layer, drawn(rows), self._events.starts[rows], Window(place, place))

    def _merged(self, lasts: Int64s, firsts: Int64s) -> list[Event]:
        events = self._events
        alone = iter(self._each(firsts[lasts - firsts == 1]))
        drawn: list[Event] = []
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            if last - first == 1:
                drawn.append(next(alone))
                continue
            own = slice(first, last)
            time_ns = int((events.own_ends[own] - events.own_starts[own]).sum())
            track = Track(self._device.pid, int(events.tids[first]))
            lasting = int(events.ends[own].max()) - int(events.starts[first])
            args = {"count": last - first, "time_ns": time_ns}
            drawn.append(span(f"{last - first} device events", MERGED, track, lasting, args))
        return drawn

    def _each(self, at: Int64s) -> list[Event]:
        """Return events as the trace has them, with what is known of each."""
        events, table, device = self._events, self._table, self._device
        rows = events.rows[at]
        columns: dict[str, list[Any]] = {
            "stream": table.numbers("stream", rows),
            "correlation": self._ids.of(table.numbers("correlation", rows)),
            "External id": self._ids.of(table.numbers("external_id", rows)),
            "Collective name": table.texts("collective", rows),
            **{name: table.texts(name, rows) for name in _TEXTS},
            **{name: table.numbers(name, rows) for name in _NUMBERS},
            "least_bytes": table.numbers("bytes", rows),
        }
        return [
            span(
                name or "",
                category or "",
                Track(device.pid, tid),
                ns,
                {"device": device.number, **args},
            )
            for name, category, tid, ns, args in zip(
                table.texts("name", rows),
                table.texts("category", rows),
                events.tids[at].tolist(),
                (events.ends[at] - events.starts[at]).tolist(),
                by_row(columns, rows.size),
                strict=True,
            )
        ]
