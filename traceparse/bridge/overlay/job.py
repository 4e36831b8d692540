"""The job that is drawn: its devices, each with its process and tracks, on one clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from traceparse.bridge.overlay.lines import Event, Names, Track
from traceparse.bridge.overlay.plan import NAMES, Plan
from traceparse.bridge.overlay.steps import Marked, StepPlaces, Window
from traceparse.intervals import Int64s
from traceparse.run import DeviceReport
from traceparse.run.assemble import Assembled
from traceparse.run.measure import Part

__all__ = ["MERGED", "Device", "Drawn", "Job", "by_value", "groups", "in_runs", "known"]

MERGED: Final = "merged"  # the category of what was put together


@dataclass(frozen=True, slots=True)
class Device:
    """One device: its place among those of the job, its process and what is drawn there."""

    place: int
    part: Part
    report: DeviceReport
    pid: int
    number: int | str  # as args of its events have it
    steps: Track
    partition: Track
    collectives: list[Track]
    findings: Track
    marked: tuple[Marked, ...]

    @property
    def name(self) -> str:
        """Its name, as tables have it."""
        return str(self.part.device.device)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One rank: its devices, the process of its host, and its place among those drawn."""

    place: int
    devices: tuple[Device, ...]
    host_pid: int


@dataclass(slots=True)
class Job:
    """All that is drawn, and where it is put."""

    assembled: Assembled
    steps: StepPlaces
    names: Names
    plan: Plan
    ranks: list[Drawn] = field(default_factory=list)
    num_flows: int = 0

    def aligned(self, place: int, times_ns: Int64s) -> Int64s:
        """Return times of a device on the common clock; its own, where nobody knows that."""
        together = self.assembled.together
        found = None if together is None else together.clock.aligned(place, times_ns)
        return times_ns if found is None else found

    def put(
        self, layer: str, events: Sequence[Event], starts_ns: Int64s, places: Int64s
    ) -> None:
        """Put events aside, step by step; they come in order of those."""
        for rows, place in in_runs(places):
            self.plan.put(layer, events[rows], starts_ns[rows], Window(place, place))

    def put_names(self) -> None:
        """Put aside what processes and threads that were new are called."""
        self.plan.put(NAMES, self.names.taken(), None, Window(0, 0))

    def next_flow(self) -> int:
        """Return a number that no other flow has."""
        self.num_flows += 1
        return self.num_flows

    @property
    def devices(self) -> Iterator[Device]:
        """All devices that are drawn."""
        return (device for rank in self.ranks for device in rank.devices)


def in_runs(values: Int64s) -> Iterator[tuple[slice, int]]:
    """Yield the rows of each run of equal values."""
    edges = np.flatnonzero(np.diff(values, prepend=values[:1] - 1)).tolist()
    for first, last in pairwise([*edges, values.size]):
        yield slice(first, last), int(values[first])


def by_value(values: Int64s) -> Iterator[tuple[int, Int64s]]:
    """Yield each value, in order, with the rows that have it."""
    order = np.argsort(values, kind="stable")
    for rows, value in in_runs(values[order]):
        yield value, order[rows]


def groups(
    starts: Int64s,
    ends: Int64s,
    tracks: Int64s,
    limit: int,
    is_kept: npt.NDArray[np.bool_] | None = None,
) -> Int64s:
    """Return the first of each group of slices that are drawn as one.

    Those are short, on one track and in one step (which ``tracks`` tell apart), and no further
    apart than they may be long.
    """
    is_short = ends - starts < limit
    if is_kept is not None:
        is_short &= ~is_kept
    joins = is_short[1:] & is_short[:-1] & (tracks[1:] == tracks[:-1])
    joins &= starts[1:] - ends[:-1] <= limit
    return np.flatnonzero(np.append(True, ~joins)[: starts.size])


def known(**args: Any) -> Mapping[str, Any]:  # noqa: ANN401 - of any type that JSON has
    """Return arguments without those that are not known."""
    return {name: value for name, value in args.items() if value is not None}
