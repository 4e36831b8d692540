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
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s, covered_before, from_spans
from traceparse.rank import NEVER, DeviceDigest, Times
from traceparse.run.across import Across
from traceparse.run.called import CallTasks, calls_of
from traceparse.run.chains import Chain, chain_of
from traceparse.run.edges import Edges, Joined, Kind
from traceparse.run.graph import Graph

__all__ = ["Replay", "replay_of"]

_LONGEST_NS: Final = 1 << 48  # three days; sums of what is longer may not fit
_MOST_LATENCY_NS: Final = 50_000  # from a launch to its kernel, that is no wait


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
        return float(self.spans_ns(instants).mean())

    def spans_ns(self, instants: Int64s) -> Int64s:
        """Return how long each of them takes."""
        found: Int64s = instants[self.finishes] - instants[self.begins]
        return found


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
    chains = tuple(
        chain_of(device, place, together, base_ns) for place, device in enumerate(devices)
    )
    edges = Edges(chains)
    calls = calls_of(chains, devices, together)
    for place in range(len(chains)):
        edges.add_device(place)
    edges.add_calls(calls)
    for place, (device, own) in enumerate(zip(devices, steps, strict=True)):
        edges.add_steps(place, device.tasks["start_ns"].to_numpy(), own)
    return _replay(edges, calls) if edges.begins else None


def _replay(edges: Edges, calls: CallTasks) -> Replay:
    """Fix the weights by what was recorded."""
    found = edges.taken()
    recorded = edges.recorded_ns
    late_ns = _fix(found, recorded, edges.start_ns.size)
    tasks = np.arange(edges.start_ns.size)
    order = np.lexsort([edges.turns, np.append(NEVER, recorded[1:])])
    return Replay(
        graph=Graph.of(found.sources, found.targets, order),
        chains=edges.chains,
        kind=found.kinds,
        place=found.places,
        weights=found.weights,
        start=edges.start(tasks),
        end=edges.end(tasks),
        instance=calls.instance,
        firsts=edges.firsts,
        first_syncs=edges.first_syncs,
        transfer_ns=calls.transfer_ns,
        is_known=calls.is_known,
        begins=np.array(edges.begins),
        finishes=np.array(edges.finishes),
        recorded_ns=recorded,
        unexplained_ns=_unexplained_ns(edges, late_ns),
    )


def _fix(edges: Joined, recorded: Int64s, num_tasks: int) -> Int64s:
    """Change weights so that everything happens when it did.

    Return, of each task, by how much it starts later than all that it waits for.
    """
    sources, targets, weights = edges.sources, edges.targets, edges.weights
    asked = recorded[sources] + weights
    latest = np.full(recorded.size, NEVER)
    np.maximum.at(latest, targets, asked)
    apart = recorded - latest
    held = np.flatnonzero((asked == latest[targets]) & (apart[targets] > 0))
    held = held[np.unique(targets[held], return_index=True)[1]]  # one of each
    weights[held] += apart[targets[held]]
    early = asked > recorded[targets]
    weights[early] = (recorded[targets] - recorded[sources])[early]
    odd = np.isin(edges.kinds[held], (Kind.STREAM, Kind.CROSS, Kind.MAYBE))
    odd |= (edges.kinds[held] == Kind.LAUNCH) & (apart[targets[held]] > _MOST_LATENCY_NS)
    late_ns = np.zeros(num_tasks, np.int64)
    late_ns[edges.places[held[odd]]] = apart[targets[held[odd]]]
    return late_ns


def _unexplained_ns(edges: Edges, late_ns: Int64s) -> Int64s:
    """Return how long a device idles before and in each task for no reason that is known.

    ``late_ns`` is by how much tasks start later than all that they wait for.
    """
    found = np.zeros(late_ns.size, np.int64)
    for chain, first in zip(edges.chains, edges.firsts[:-1].tolist(), strict=True):
        if chain.is_host:  # which does what no trace shows
            continue
        busy = from_spans(chain.start_ns, chain.end_ns)
        own = slice(first, first + chain.num)
        since = np.maximum(chain.start_ns - late_ns[own], chain.start_ns.min())
        before, after = (covered_before(busy, at) for at in (since, chain.start_ns))
        found[own] = chain.gaps_ns + chain.start_ns - since - (after - before)
    return found
