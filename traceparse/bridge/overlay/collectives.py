"""Every collective on each of its ranks, tied together: from the last to arrive to the others.

All wait for whoever comes last, so that where clocks agree, an arrow leaves its slice when that
begins, and finds the others in theirs. Where they do not agree well enough for that, ranks are
tied in the order in which they begin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np

from traceparse.bridge.overlay.job import Device, Job, known
from traceparse.bridge.overlay.lanes import lanes, outside_in
from traceparse.bridge.overlay.lines import OWN, Event, Track, span
from traceparse.bridge.overlay.plan import COLLECTIVES
from traceparse.bridge.overlay.steps import Window
from traceparse.intervals import Int64s
from traceparse.run.across import PEERS, Across
from traceparse.run.gathered import NOTHING

__all__ = ["TIE", "draw_collectives"]

TIE: Final = "collective"  # the category of flows between ranks


def draw_collectives(job: Job) -> None:
    """Draw the collectives of all devices, and flows between them."""
    together = job.assembled.together
    if together is None:
        return
    drawn = _Drawn(job, together)
    for device in job.devices:
        drawn.add(device)
    drawn.tie()


class _Drawn:
    """Where each part of an instance is drawn; a part that is not has no thread."""

    def __init__(self, job: Job, together: Across) -> None:
        self._job, self._together = job, together
        num = together.instances.part_device.size
        self._pids, self._tids, self._places = (np.zeros(num, np.int64) for _ in range(3))
        self._starts, self._ends = np.zeros(num, np.int64), np.zeros(num, np.int64)
        self._last = together.instances.last_device()
        self._kinds: dict[int, tuple[str, Mapping[str, Any]]] = {}

    def add(self, device: Device) -> None:
        """Draw the parts that a device had in instances."""
        job, instances = self._job, self._together.instances
        rows = np.flatnonzero(instances.part_device == device.place)
        own_starts, own_ends = instances.part_start_ns[rows], instances.part_end_ns[rows]
        order = outside_in(own_starts, own_ends)
        rows, own_starts, own_ends = rows[order], own_starts[order], own_ends[order]
        starts, ends = (job.aligned(device.place, one) for one in (own_starts, own_ends))
        lane = lanes(starts, ends, may_nest=False)
        tracks = self._tracks(device, int(lane.max(initial=-1)) + 1)
        places = job.steps.of(device.marked, own_starts)
        self._pids[rows], self._places[rows] = device.pid, places
        self._tids[rows] = np.array([track.tid for track in tracks], np.int64)[lane]
        self._starts[rows], self._ends[rows] = starts, ends
        events = [
            self._slice(row, tracks[at], ns)
            for row, at, ns in zip(
                rows.tolist(), lane.tolist(), (ends - starts).tolist(), strict=True
            )
        ]
        job.put(COLLECTIVES, events, starts, places)

    def _tracks(self, device: Device, num: int) -> list[Track]:
        while len(device.collectives) < num:
            name = f"collectives ({len(device.collectives) + 1})"
            device.collectives.append(self._job.names.thread(device.pid, name))
        return device.collectives

    def _slice(self, row: int, track: Track, ns: int) -> Event:
        instances = self._together.instances
        number = int(instances.part_instance[row])
        name, args = self._kind(number)
        wait = int(instances.part_wait_ns[row]) if instances.is_split[number] else None
        return span(name, OWN, track, ns, {**args, **known(wait_ns=wait)})

    def _kind(self, number: int) -> tuple[str, Mapping[str, Any]]:
        """Return what an instance is called, and what is known of it on all ranks."""
        if number not in self._kinds:
            together = self._together
            calls, instances = together.calls, together.instances
            call = int(instances.first_call[number])
            group, ranks, _ = calls.group_texts[calls.groups[call]]
            size = int(calls.message_bytes[call])
            is_split = bool(instances.is_split[number])
            name = calls.collective_texts[calls.collectives[call]]
            name = PEERS if instances.is_peer[number] else name
            args = known(
                instance=number,
                group=group,
                ranks=ranks,
                dtype=calls.dtype_texts[calls.dtypes[call]],
                bytes=None if size == NOTHING else size,
                transfer_ns=int(instances.transfer_ns[number]) if is_split else None,
                last_rank=together.ranks[self._last[number]] if is_split else None,
            )
            name = name or calls.name_texts[calls.names[call]] or "communication"
            self._kinds[number] = name, args
        return self._kinds[number]

    def tie(self) -> None:
        """Draw a flow through each instance that several devices have that are drawn."""
        instances = self._together.instances
        drawn = np.flatnonzero(self._tids)
        drawn = drawn[np.argsort(instances.part_instance[drawn], kind="stable")]
        own = instances.part_instance[drawn]
        edges = [*np.flatnonzero(np.diff(own, prepend=-1)).tolist(), own.size]
        by_window: dict[Window, list[tuple[Event, int]]] = defaultdict(list)
        for first, last in pairwise(edges):
            if last - first > 1:
                rows = drawn[first:last]
                places = self._places[rows]
                window = Window(int(places.min()), int(places.max()))
                by_window[window].extend(self._flow(int(own[first]), rows))
        for window, found in by_window.items():
            starts = np.array([start for _, start in found], np.int64)
            self._job.plan.put(COLLECTIVES, [event for event, _ in found], starts, window)

    def _flow(self, number: int, rows: Int64s) -> Iterator[tuple[Event, int]]:
        order, times = self._chain(number, rows)
        flow, name = self._job.next_flow(), self._kind(number)[0]
        for at, (row, time) in enumerate(zip(order.tolist(), times.tolist(), strict=True)):
            phase = "s" if at == 0 else "f" if at == order.size - 1 else "t"
            yield (
                Event(
                    phase,
                    name,
                    int(self._pids[row]),
                    int(self._tids[row]),
                    TIE,
                    id=flow,
                    bp="e" if phase == "f" else None,
                ),
                time,
            )

    def _chain(self, number: int, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return the parts in the order in which they are tied, and an instant within each."""
        instances = self._together.instances
        starts, ends = self._starts[rows], self._ends[rows]
        is_last = instances.part_device[rows] == self._last[number]
        if instances.is_split[number] and is_last.any():
            arrival = int(starts[is_last][0])
            times = np.maximum(starts, np.minimum(arrival, ends - 1))
            if np.all(times >= arrival):
                order = np.lexsort((rows, times, ~is_last))
                return rows[order], times[order]
        order = np.lexsort((rows, starts))
        return rows[order], starts[order]
