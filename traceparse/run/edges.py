"""What has to happen before what, as edges between instants, and when it was recorded.

Instants are, in the order of their numbers: time 0; starts and ends of all tasks; where hosts
go on after a call that made them wait; where all members of an instance have started; and ends
of steps that no other follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.rank import NEVER, Times
from traceparse.run.called import CallTasks
from traceparse.run.chains import Chain, awaited_by_host, dependencies, follows, task_at
from traceparse.run.lags import median

__all__ = ["Edges", "Joined", "Kind"]


class Kind(IntEnum):
    """What an edge stands for."""

    FIXED = 0  # nothing is known to be before: as recorded
    STREAM = 1  # the task before on the stream
    CROSS = 2  # a task of another stream
    LAUNCH = 3  # its first launch
    LATE = 4  # a later launch, and what follows it
    WORK = 5
    LOOSE = 6  # a call whose other members are not known
    MEET = 7  # a member of an instance starts
    TRANSFER = 8  # all have started
    OWN = 9  # a member that need not wait for all has started
    HOST = 10  # between two calls that make the host wait
    SYNC = 11  # what such a call waits for
    END = 12  # of a step that no other follows
    MAYBE = 13  # as CROSS, but it may be another task that waits


class Joined(NamedTuple):
    """All edges; ``places`` as :class:`traceparse.run.replay.Replay` has them."""

    sources: Int64s
    targets: Int64s
    weights: Int64s
    kinds: npt.NDArray[np.int8]
    places: Int64s


@dataclass(slots=True)
class Edges:
    """Edges, as they are found; ``_ns`` is when vertices were recorded.

    ``begins`` and ``finishes`` are the vertices of device-steps.
    """

    chains: tuple[Chain, ...]
    sources: list[Int64s] = field(default_factory=list)
    targets: list[Int64s] = field(default_factory=list)
    weights: list[Int64s] = field(default_factory=list)
    kinds: list[npt.NDArray[np.int8]] = field(default_factory=list)
    places: list[Int64s] = field(default_factory=list)
    more_ns: list[int] = field(default_factory=list)  # of vertices for ends of steps
    begins: list[int] = field(default_factory=list)
    finishes: list[int] = field(default_factory=list)
    firsts: Int64s = field(init=False)
    first_syncs: Int64s = field(init=False)
    start_ns: Int64s = field(init=False)
    end_ns: Int64s = field(init=False)
    sync_ns: Int64s = field(init=False)
    met_ns: Int64s = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        nums = [chain.num for chain in self.chains]
        syncs = [chain.sync_end_ns.size for chain in self.chains]
        self.firsts = np.cumsum([0, *nums])
        self.first_syncs = np.cumsum([0, *syncs])
        self.start_ns, self.end_ns, self.sync_ns = (
            np.concatenate([getattr(chain, name) for chain in self.chains])
            for name in ("start_ns", "end_ns", "sync_end_ns")
        )

    # -- vertices

    def start(self, tasks: Int64s) -> Int64s:
        """Return where tasks start."""
        return 1 + tasks

    def end(self, tasks: Int64s) -> Int64s:
        """Return where tasks end."""
        return 1 + self.start_ns.size + tasks

    def host(self, syncs: Int64s) -> Int64s:
        """Return where a host goes on; -1 is where it began."""
        return np.where(syncs < 0, 0, 1 + 2 * self.start_ns.size + syncs)

    def met(self, instances: Int64s) -> Int64s:
        """Return where all members of instances have started."""
        return 1 + 2 * self.start_ns.size + self.sync_ns.size + instances

    def add(
        self, kind: Kind, sources: Int64s, targets: Int64s, weights: Int64s, places: Int64s
    ) -> None:
        """Add edges of a kind; ``places`` as :class:`traceparse.run.replay.Replay` has them."""
        self.sources.append(sources)
        self.targets.append(targets)
        self.weights.append(weights)
        self.kinds.append(np.full(sources.size, kind, np.int8))
        self.places.append(places)

    def taken(self) -> Joined:
        """Hand over all edges, and forget them: those of many ranks fill memory twice else."""
        found = []
        for name in Joined._fields:
            parts = getattr(self, name)
            found.append(np.concatenate(parts))
            parts.clear()
        return Joined(*found)

    # -- what a device and its host do

    def add_device(self, place: int) -> None:
        """Add what the tasks of a device wait for by themselves."""
        chain = self.chains[place]
        tasks = self.firsts[place] + np.arange(chain.num)
        before, after = follows(chain)
        awaited, waiting, is_sure = dependencies(chain)
        self.add(
            Kind.STREAM,
            self.end(tasks[before]),
            self.start(tasks[after]),
            _usual_gaps(chain, before, after, waiting),
            tasks[after],
        )
        for kind, own in ((Kind.CROSS, is_sure), (Kind.MAYBE, ~is_sure)):
            self.add(
                kind,
                self.end(tasks[awaited[own]]),
                self.start(tasks[waiting[own]]),
                np.zeros(int(own.sum()), np.int64),
                tasks[waiting[own]],
            )
        anchors, since_ns = self._anchors(place, chain.launched_ns)
        launched = np.flatnonzero(chain.ready_ns != NEVER)
        self.add(
            Kind.LAUNCH,
            anchors[launched],
            self.start(tasks[launched]),
            (chain.ready_ns - since_ns)[launched],
            tasks[launched],
        )
        late = np.flatnonzero((chain.arrival_ns != NEVER) & (chain.call < 0))
        self.add(
            Kind.LATE,
            anchors[late],
            self.end(tasks[late]),
            (chain.arrival_ns + chain.tail_ns - since_ns)[late],
            tasks[late],
        )
        rest = np.setdiff1d(np.arange(chain.num), np.concatenate([after, waiting, launched]))
        self.add(
            Kind.FIXED,
            np.zeros(rest.size, np.int64),
            self.start(tasks[rest]),
            chain.start_ns[rest],
            tasks[rest],
        )
        work = np.flatnonzero(chain.call < 0)
        self.add(
            Kind.WORK,
            self.start(tasks[work]),
            self.end(tasks[work]),
            chain.work_ns[work],
            tasks[work],
        )
        self._add_host(place, tasks)

    def _add_host(self, place: int, tasks: Int64s) -> None:
        chain = self.chains[place]
        syncs = self.first_syncs[place] + np.arange(chain.sync_end_ns.size)
        awaited = awaited_by_host(chain)
        ends = np.where(awaited >= 0, chain.end_ns[awaited], NEVER)
        tail_ns = chain.sync_end_ns - np.maximum(chain.sync_start_ns, ends)
        anchors, since_ns = self._anchors(place, chain.sync_start_ns, of_syncs=True)
        self.add(
            Kind.HOST,
            anchors,
            self.host(syncs),
            chain.sync_start_ns - since_ns + tail_ns,
            syncs,
        )
        known = awaited >= 0
        self.add(
            Kind.SYNC,
            self.end(tasks[awaited[known]]),
            self.host(syncs[known]),
            tail_ns[known],
            syncs[known],
        )

    def _anchors(
        self, place: int, times_ns: Int64s, *, of_syncs: bool = False
    ) -> tuple[Int64s, Int64s]:
        """Return from where a host got to some times without waiting, and when that was."""
        ends = self.chains[place].sync_end_ns
        last = np.searchsorted(ends, times_ns, "right") - 1
        if of_syncs:  # one that took no time does not come before itself
            last = np.minimum(last, np.arange(ends.size) - 1)
        since_ns = np.where(last >= 0, np.append(ends, 0)[last], 0)
        return self.host(np.where(last >= 0, self.first_syncs[place] + last, -1)), since_ns

    # -- what they do together

    def add_calls(self, calls: CallTasks) -> None:
        """Add what calls wait for, and how long they take."""
        num = int(calls.instance.max()) + 1
        self.met_ns = np.full(num, NEVER)
        met = np.flatnonzero(calls.is_met)
        own = calls.instance[met]
        np.maximum.at(self.met_ns, own, self.start_ns[met])
        none = np.zeros(met.size, np.int64)
        self.add(Kind.MEET, self.start(met), self.met(own), none, met)
        self.add(Kind.TRANSFER, self.met(own), self.end(met), calls.transfer_ns[met], met)
        free = np.flatnonzero(calls.is_met & calls.is_free)
        self.add(Kind.OWN, self.start(free), self.end(free), calls.transfer_ns[free], free)
        loose = np.flatnonzero((calls.instance >= 0) & ~calls.is_met)
        self.add(
            Kind.LOOSE,
            self.start(loose),
            self.end(loose),
            (self.end_ns - self.start_ns)[loose],
            loose,
        )

    def add_steps(self, place: int, starts_ns: Int64s, steps: Sequence[Times]) -> None:
        """Add device-steps: from a task to one that begins the next, or to the last end.

        ``starts_ns`` are of the tasks on the device's own clock, as the steps have them.
        """
        first, is_call = int(self.firsts[place]), self.chains[place].call >= 0
        for times in steps:
            begin, finish = (
                task_at(starts_ns, is_call, at) for at in (times.start_ns, times.end_ns)
            )
            if begin is None:
                continue
            self.begins.append(int(self.start(np.array(first + begin))))
            if finish is not None:
                self.finishes.append(int(self.start(np.array(first + finish))))
                continue
            inside = (starts_ns >= times.start_ns) & (starts_ns < times.end_ns)
            tasks = first + np.flatnonzero(inside)
            vertex = self.met(np.array([self.met_ns.size + len(self.more_ns)]))
            begun_ns = int(self.start_ns[first + begin])
            self.more_ns.append(begun_ns + times.span_ns)
            self.finishes.append(int(vertex[0]))
            none = np.zeros(tasks.size, np.int64)
            self.add(Kind.END, self.end(tasks), np.repeat(vertex, tasks.size), none, tasks)

    @property
    def recorded_ns(self) -> Int64s:
        """When each vertex was recorded."""
        parts = (self.start_ns, self.end_ns, self.sync_ns, self.met_ns, self.more_ns)
        return np.concatenate([[0], *parts]).astype(np.int64)

    @property
    def turns(self) -> npt.NDArray[np.int8]:
        """In which order vertices probably come that were recorded at one time."""
        nums = (
            1,
            self.start_ns.size,
            self.end_ns.size,
            self.sync_ns.size,
            self.met_ns.size,
            len(self.more_ns),
        )
        return np.repeat(np.array([0, 3, 1, 2, 4, 5], np.int8), nums)


def _usual_gaps(chain: Chain, before: Int64s, after: Int64s, waiting: Int64s) -> Int64s:
    """Return how long after the task before it a task may begin at the soonest.

    A device begins at once. A host does something between its tasks that takes as long as
    usual where it waits for a call, too.
    """
    gaps = np.zeros(after.size, np.int64)
    if chain.is_host:
        found = chain.start_ns[after] - chain.end_ns[before]
        waits = np.isin(after, waiting)
        own = found[~waits & (chain.call[after] < 0)]
        if own.size:
            gaps[:] = np.minimum(int(median(own)), np.maximum(found, 0))
        gaps[chain.call[after] >= 0] = 0
    return gaps
