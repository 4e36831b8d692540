"""Run a job again from what was recorded of it, under other conditions.

Every device's tasks (:mod:`traceparse.rank.tasks`), every call that makes a host wait and every
instance of a collective become instants of one graph (:mod:`traceparse.run.graph`). A task
starts when the task before it on its stream is done, its launch has arrived, and what it waits
for is done. A call of an instance goes on until all members have started theirs, and then for
the transfer. A host goes on as it did, from the end of the last call that made it wait.

What was recorded fixes the weights: where an instant came later than all that it waits for, the
rest belongs to the one that held it up. So with nothing changed everything happens when it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s, covered_before, from_spans
from traceparse.rank import NEVER, DeviceDigest, Times
from traceparse.run.across import Across
from traceparse.run.chains import Chain, awaited_by_host, chain_of, dependencies, follows
from traceparse.run.graph import CyclicError, Graph
from traceparse.run.lags import median

__all__ = ["CyclicError", "Kind", "Replay", "replay_of"]

_LONGEST_NS: Final = 1 << 55  # a year; sums of what is longer may not fit
_MOST_LATENCY_NS: Final = 50_000  # from a launch to its kernel, that is no wait


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


@dataclass(frozen=True, slots=True)
class Replay:
    """The graph of a job. ``kind``, ``place`` and ``weights`` are of its edges, in its rows.

    ``place`` is the task that an edge leads to, counted through all devices, or the call that
    makes a host wait. ``start``, ``end`` and ``instance`` are of tasks: their vertices, and
    the number of the instance of a call, -1 for others; ``firsts`` is where the tasks, and
    ``first_syncs`` where such calls, of each device begin. ``transfer_ns`` is of tasks: what of
    a call is transfer, 0 for others; ``is_known`` says whether that is known. ``begins`` and
    ``finishes`` are the vertices of device-steps that count; ``recorded_ns`` is when everything
    happened, ``unexplained_ns`` for how long a device idles before and in each task for no
    reason that is known.
    """

    graph: Graph
    chains: tuple[Chain, ...]
    kind: npt.NDArray[np.int8]
    place: Int64s
    weights: Int64s
    start: Int64s
    end: Int64s
    instance: Int64s
    firsts: Int64s
    first_syncs: Int64s
    transfer_ns: Int64s
    is_known: npt.NDArray[np.bool_]
    begins: Int64s
    finishes: Int64s
    recorded_ns: Int64s
    unexplained_ns: Int64s

    def step_ns(self, instants: Int64s) -> float:
        """Return the mean of the device-steps that count, given when everything happens."""
        spans = instants[self.finishes] - instants[self.begins]
        return float(spans.mean())


def replay_of(
    devices: Sequence[DeviceDigest],
    steps: Sequence[Sequence[Times]],
    together: Across | None,
) -> Replay | None:
    """Make the graph of a job; ``steps`` are, of each device, those that count.

    ``None`` where nothing was kept of what a device did, or no step can be found in it.

    Raises
    ------
    CyclicError
        What was recorded waits for itself.
    """
    if any(not device.tasks.num_rows for device in devices):
        return None
    base_ns = min(device.window.start_ns for device in devices)
    if max(device.window.end_ns for device in devices) - base_ns > _LONGEST_NS:
        return None
    clock = together.clock if together else None
    chains = tuple(
        chain_of(device, place, clock, base_ns) for place, device in enumerate(devices)
    )
    building = _Building(chains)
    calls = _calls_of(chains, devices, together)
    for place in range(len(chains)):
        building.add_device(place)
    building.add_calls(calls, together)
    for place, (device, own) in enumerate(zip(devices, steps, strict=True)):
        building.add_steps(place, device.tasks["start_ns"].to_numpy(), own)
    return building.finish(calls) if building.begins else None


@dataclass(frozen=True, slots=True)
class _CallTasks:
    """Of all tasks: the instance of a call, how it takes part, what of it is transfer."""

    instance: Int64s
    is_met: npt.NDArray[np.bool_]
    is_free: npt.NDArray[np.bool_]  # members need not end together
    transfer_ns: Int64s
    is_known: npt.NDArray[np.bool_]


def _calls_of(
    chains: Sequence[Chain], devices: Sequence[DeviceDigest], together: Across | None
) -> _CallTasks:
    own_call = np.concatenate([chain.call for chain in chains])
    num = own_call.size
    nothing = np.zeros(num, np.bool_)
    instance = np.full(num, -1)
    if together is None:
        return _CallTasks(instance, nothing, nothing, np.zeros(num, np.int64), own_call < 0)
    instances = together.instances
    sizes = [device.calls.num_rows for device in devices]
    before = np.repeat(np.cumsum(sizes) - sizes, [chain.num for chain in chains])
    tasks = np.flatnonzero(own_call >= 0)
    instance[tasks] = instances.of_call[before[tasks] + own_call[tasks]]
    own = instance[tasks]
    device = np.repeat(np.arange(len(chains)), [chain.num for chain in chains])[tasks]
    _, which, counts = np.unique(
        np.stack([own, device]), axis=1, return_inverse=True, return_counts=True
    )
    is_alone = counts[which.reshape(-1)] == 1
    has_clock = np.array([line is not None for line in together.clock.lines])
    all_clocks = np.bincount(own, ~has_clock[device], instances.first_call.size) == 0
    is_met = nothing.copy()
    is_met[tasks] = instances.is_split[own] & is_alone & all_clocks[own]
    is_free = nothing.copy()
    is_free[tasks] = ~together.ends_coincide[own] | instances.is_peer[own]
    lasts = np.concatenate([chain.end_ns - chain.start_ns for chain in chains])
    usual = together.usual_transfer_ns()
    transfer_ns = np.zeros(num, np.int64)
    transfer_ns[tasks] = np.where(
        is_met[tasks], instances.transfer_ns[own], np.minimum(usual[own], lasts[tasks])
    )
    is_known = own_call < 0
    is_known[tasks] = is_met[tasks] | (usual[own] >= 0)
    return _CallTasks(instance, is_met, is_free, np.maximum(transfer_ns, 0), is_known)


@dataclass(slots=True)
class _Building:
    """Edges, as they are found, and when each vertex was recorded."""

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

    # -- vertices: time 0, starts, ends, hosts that go on, instances that are met, ends of steps

    def start(self, tasks: Int64s) -> Int64s:
        return 1 + tasks

    def end(self, tasks: Int64s) -> Int64s:
        return 1 + self.start_ns.size + tasks

    def host(self, syncs: Int64s) -> Int64s:
        """Return where a host goes on; -1 is where it began."""
        return np.where(syncs < 0, 0, 1 + 2 * self.start_ns.size + syncs)

    def met(self, instances: Int64s) -> Int64s:
        return 1 + 2 * self.start_ns.size + self.sync_ns.size + instances

    def add(
        self, kind: Kind, sources: Int64s, targets: Int64s, weights: Int64s, places: Int64s
    ) -> None:
        self.sources.append(sources)
        self.targets.append(targets)
        self.weights.append(weights)
        self.kinds.append(np.full(sources.size, kind, np.int8))
        self.places.append(places)

    # -- what a device and its host do

    def add_device(self, place: int) -> None:
        """Add what the tasks of a device wait for by themselves."""
        chain = self.chains[place]
        tasks = self.firsts[place] + np.arange(chain.num)
        before, after = follows(chain)
        awaited, waiting = dependencies(chain)
        self.add(
            Kind.STREAM,
            self.end(tasks[before]),
            self.start(tasks[after]),
            _usual_gaps(chain, before, after, waiting),
            tasks[after],
        )
        self.add(
            Kind.CROSS,
            self.end(tasks[awaited]),
            self.start(tasks[waiting]),
            np.zeros(awaited.size, np.int64),
            tasks[waiting],
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

    def add_calls(self, calls: _CallTasks, together: Across | None) -> None:
        """Add what calls wait for, and how long they take."""
        num = together.instances.first_call.size if together else 0
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
        first = int(self.firsts[place])
        for times in steps:
            begin, finish = (
                np.flatnonzero(starts_ns == at) for at in (times.start_ns, times.end_ns)
            )
            if not begin.size:
                continue
            self.begins.append(int(self.start(first + begin)[0]))
            if finish.size:
                self.finishes.append(int(self.start(first + finish)[0]))
                continue
            inside = (starts_ns >= times.start_ns) & (starts_ns < times.end_ns)
            tasks = first + np.flatnonzero(inside)
            vertex = self.met(np.array([self.met_ns.size + len(self.more_ns)]))
            begun_ns = int(self.start_ns[first + begin[0]])
            self.more_ns.append(begun_ns + times.span_ns)
            self.finishes.append(int(vertex[0]))
            none = np.zeros(tasks.size, np.int64)
            self.add(Kind.END, self.end(tasks), np.repeat(vertex, tasks.size), none, tasks)

    # -- the graph

    def finish(self, calls: _CallTasks) -> Replay:
        """Fix the weights by what was recorded."""
        sources, targets, weights, places = map(
            np.concatenate, (self.sources, self.targets, self.weights, self.places)
        )
        kinds = np.concatenate(self.kinds)
        recorded = np.concatenate(
            [[0], self.start_ns, self.end_ns, self.sync_ns, self.met_ns, self.more_ns]
        ).astype(np.int64)
        asked = recorded[sources] + weights
        latest = np.full(recorded.size, NEVER)
        np.maximum.at(latest, targets, asked)
        apart = recorded - latest
        held = np.flatnonzero((asked == latest[targets]) & (apart[targets] > 0))
        held = held[np.unique(targets[held], return_index=True)[1]]  # one of each
        weights[held] += apart[targets[held]]
        early = asked > recorded[targets]
        weights[early] = (recorded[targets] - recorded[sources])[early]
        order = np.lexsort([self._turns(), np.append(NEVER, recorded[1:])])
        odd = np.isin(kinds[held], (Kind.STREAM, Kind.CROSS))
        odd |= (kinds[held] == Kind.LAUNCH) & (apart[targets[held]] > _MOST_LATENCY_NS)
        held_up = places[held[odd]], apart[targets[held[odd]]]
        tasks = np.arange(self.start_ns.size)
        return Replay(
            graph=Graph.of(sources, targets, order),
            chains=self.chains,
            kind=kinds,
            place=places,
            weights=weights,
            start=self.start(tasks),
            end=self.end(tasks),
            instance=calls.instance,
            firsts=self.firsts,
            first_syncs=self.first_syncs,
            transfer_ns=calls.transfer_ns,
            is_known=calls.is_known,
            begins=np.array(self.begins),
            finishes=np.array(self.finishes),
            recorded_ns=recorded,
            unexplained_ns=self._unexplained_ns(*held_up),
        )

    def _unexplained_ns(self, tasks: Int64s, late_ns: Int64s) -> Int64s:
        """Return how long a device idles before and in each task for no reason that is known.

        ``late_ns`` is by how much some tasks start later than all that they wait for.
        """
        found = np.zeros(self.start_ns.size, np.int64)
        late = np.zeros(self.start_ns.size, np.int64)
        late[tasks] = late_ns
        for chain, first in zip(self.chains, self.firsts[:-1].tolist(), strict=True):
            if chain.is_host:  # which does what no trace shows
                continue
            busy = from_spans(chain.start_ns, chain.end_ns)
            own = slice(first, first + chain.num)
            since = np.maximum(chain.start_ns - late[own], chain.start_ns.min())
            before, after = (covered_before(busy, at) for at in (since, chain.start_ns))
            found[own] = chain.gaps_ns + chain.start_ns - since - (after - before)
        return found

    def _turns(self) -> npt.NDArray[np.int8]:
        """Say in which order vertices probably come that were recorded at one time."""
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
