"""How long would a step take under other conditions? The job, replayed with one thing changed.

* ``straggler_median``: a rank that others wait for does everything as fast as the median of the
  ranks that do the same; a slow link transfers like those of other groups.
* ``network_2x``, ``network_free``: every transfer takes half as long, or no time. Waiting for
  each other stays.
* ``launch_gaps_gone``: no device waits for its host, and a host only for its device.

Kernels that collectives slow down are slowed for as long as they then run side by side. What
subtraction gives stands beside: a step less what the report has of the same loss.

Waiting may cost nothing: where all hosts are slow, a device that waits for another has nothing
to do that soon. If a step took as long with all stragglers like the others, nobody is
to blame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from traceparse.errors import Note
from traceparse.intervals import Int64s, covered_before, from_spans
from traceparse.rank import DeviceDigest, Times
from traceparse.run.across import Across
from traceparse.run.edges import Kind
from traceparse.run.graph import CyclicError
from traceparse.run.peers import FREE_NS, Peers
from traceparse.run.replay import Replay, replay_of
from traceparse.run.stragglers import Straggler

__all__ = ["Losses", "WhatIf", "losses_of", "what_if"]

_MOST_STRAGGLERS: Final = 4
_LEAST_WON: Final = 0.01  # of a step, without stragglers
_LEAST_SLOWDOWN: Final = 0.01  # of a kernel by a collective beside it; less is chance
_MOST_PASSES = 8
_SETTLED: Final = 1e-4  # of a step
_MOST_UNCERTAIN: Final = 0.02  # of a device's steps
_UNEXPLAINED: Final = 0.1


@dataclass(frozen=True, slots=True)
class Losses:
    """What a mean device-step loses, in ns, as the report has it; ``None``: unknown."""

    exposed_transfer_ns: float | None
    contention_ns: float | None
    idle_ns: float


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Field ``what_if`` (an addition to the contract), and what is doubtful of it.

    ``stragglers`` are those that cost something, as far as that can be told.
    """

    field: dict[str, Any] | None
    notes: Sequence[Note]
    stragglers: Sequence[Straggler]


def losses_of(
    steps: Sequence[Sequence[Times]], scaling_loss: Mapping[str, Any] | None
) -> Losses:
    """Return what the mean of some device-steps loses, given field ``scaling_loss``."""
    every = [times for own in steps for times in own]
    idle_ns = sum(times.idle_ns for times in every) / max(len(every), 1)
    if scaling_loss is None:
        return Losses(None, None, idle_ns)
    step_ns = scaling_loss["step_ns"]
    return Losses(
        scaling_loss["exposed_transfer_ratio"] * step_ns,
        scaling_loss["contention_ratio"] * step_ns,
        idle_ns,
    )


def what_if(
    devices: Sequence[DeviceDigest],
    steps: Sequence[Sequence[Times]],
    together: Across | None,
    stragglers: Sequence[Straggler],
    losses: Losses,
) -> WhatIf:
    """Replay a job. ``steps`` are, of each device, those that the run is judged by."""
    try:
        replay = replay_of(devices, steps, together)
    except CyclicError:
        note = Note(
            "replay_impossible",
            "what was recorded waits for itself, so that no step can be replayed: do all files "
            "belong to one job?",
        )
        return WhatIf(None, [note], stragglers)
    if replay is None or not replay.step_ns(replay.recorded_ns) > 0:
        note = Note(
            "replay_impossible",
            "no step can be replayed: a device did more than is kept of it, nothing in the "
            "steps took any time, or files are days apart",
        )
        return WhatIf(None, [note], stragglers)
    if not all(chain.tells_waits for chain in replay.chains):
        note = Note(
            "replay_impossible",
            "no trace says which kernels waited for collectives (there is no "
            "cudaStreamWaitEvent), so no step can be replayed; capture with CPU activities, "
            "and give whole traces",
        )
        return WhatIf(None, [note], stragglers)
    job = _Job(replay, devices, together)
    step_ns = replay.step_ns(replay.recorded_ns)
    if job.are_harmless(stragglers, step_ns):
        stragglers = [one for one in stragglers if not one.blames]
    rows = [
        *job.stragglers(stragglers, step_ns),
        *job.networks(losses, step_ns),
        *job.without_gaps(losses, step_ns),
    ]
    field = {
        "step_ns": round(step_ns),
        "unexplained_ratio": job.unexplained_ratio,
        "changes": rows,
    }
    return WhatIf(field, list(_about(job)), stragglers)


class _Job:
    """A job that is replayed again and again."""

    def __init__(
        self, replay: Replay, devices: Sequence[DeviceDigest], together: Across | None
    ) -> None:
        self._replay, self._devices, self._together = replay, devices, together
        self.is_split = together is not None and together.is_split
        sizes = np.diff(replay.firsts)
        self._device = np.repeat(np.arange(sizes.size), sizes)
        self.is_counted = self._are_counted()
        self.uncertain_ratio = self._uncertain_ratio()
        spans_ns = replay.spans_ns(replay.recorded_ns)
        unexplained_ns = replay.unexplained_ns[self.is_counted].sum()
        self.unexplained_ratio = float(unexplained_ns / max(int(spans_ns.sum()), 1))
        self._work = np.flatnonzero(replay.kind == Kind.WORK)
        self._worker = replay.place[self._work]
        self._callers = np.flatnonzero(replay.instance >= 0)
        self._recorded_overlap = self._overlap(replay.recorded_ns, replay.weights)
        self._slowdown = self._slowdown_of()
        self.has_unlike = False  # whether a straggler does what no other rank does
        self.is_doubtful = False  # whether it is not known what waits, and that matters

    # -- changes

    def stragglers(
        self, stragglers: Sequence[Straggler], step_ns: float
    ) -> Iterator[dict[str, Any]]:
        """Yield a row for each that costs much: what if it were like the others?"""
        for one in stragglers[:_MOST_STRAGGLERS]:
            if not one.is_serious or self._together is None:
                continue
            weights = self._like_others([one])
            self.has_unlike |= weights is None
            ranks = [self._together.ranks[device] for device in one.devices]
            lost_ns = one.finding["lost_ratio"] * step_ns
            yield self._row("straggler_median", weights, step_ns, lost_ns, ranks)

    def are_harmless(self, stragglers: Sequence[Straggler], step_ns: float) -> bool:
        """Say whether a step would take as long if they were all like the others."""
        is_doubtful = self.unexplained_ratio > _UNEXPLAINED
        if not stragglers or is_doubtful or self.uncertain_ratio > _MOST_UNCERTAIN:
            return False
        weights = self._like_others(stragglers)
        if weights is None:
            return False
        return self._between_ns(weights)[0] > (1 - _LEAST_WON) * step_ns

    @cached_property
    def _peers(self) -> Peers:
        return Peers(self._replay, self._devices, self._together)

    def _like_others(self, stragglers: Sequence[Straggler]) -> Int64s | None:
        """Return weights with these like the others, if there are others like them."""
        replay, weights = self._replay, self._replay.weights.copy()
        late = [device for one in stragglers if one.link is None for device in one.devices]
        if late:
            found = self._peers.like_others(late)
            if found is None:
                return None
            weights = found
        for group in (group for one in stragglers if one.link for group in one.link.groups):
            rows = np.flatnonzero(
                (replay.kind == Kind.TRANSFER)
                & np.isin(replay.instance[replay.place], group.instances)
            )
            transfer_ns = replay.transfer_ns[replay.place[rows]]
            weights[rows] -= transfer_ns - transfer_ns * group.usual_ns // group.median_ns
        return weights

    def networks(self, losses: Losses, step_ns: float) -> Iterator[dict[str, Any]]:
        """Yield rows for faster networks."""
        if self._together is None:
            return
        replay = self._replay
        known = None not in (losses.exposed_transfer_ns, losses.contention_ns)
        lost_ns = (losses.exposed_transfer_ns or 0) + (losses.contention_ns or 0)
        rows = np.flatnonzero(np.isin(replay.kind, (Kind.TRANSFER, Kind.OWN, Kind.LOOSE)))
        for change, share in (("network_2x", 2), ("network_free", 1)):
            weights = replay.weights.copy()
            weights[rows] -= replay.transfer_ns[replay.place[rows]] // share
            yield self._row(change, weights, step_ns, lost_ns / share if known else None)

    def without_gaps(self, losses: Losses, step_ns: float) -> Iterator[dict[str, Any]]:
        """Yield the row for hosts that take no time; there is none if hosts compute."""
        replay = self._replay
        if any(chain.is_host for chain in replay.chains):
            return
        weights = None
        if self.unexplained_ratio <= _UNEXPLAINED:
            weights = replay.weights.copy()
            kinds = (Kind.LAUNCH, Kind.LATE, Kind.HOST, Kind.SYNC, Kind.END)
            weights[np.isin(replay.kind, kinds)] = 0
        yield self._row("launch_gaps_gone", weights, step_ns, losses.idle_ns)

    def _row(
        self,
        change: str,
        weights: Int64s | None,
        step_ns: float,
        lost_ns: float | None,
        ranks: Sequence[int | None] | None = None,
    ) -> dict[str, Any]:
        between = None
        if weights is not None and self.uncertain_ratio <= _MOST_UNCERTAIN:
            between = self._between_ns(weights)
        is_sure = between is not None and between[1] - between[0] <= _MOST_UNCERTAIN * step_ns
        found = between[1] if between and is_sure else None
        self.is_doubtful |= between is not None and not is_sure
        return {
            "change": change,
            "ranks": ranks,
            "step_ns": None if found is None else round(found),
            "between_ns": between and [round(time_ns) for time_ns in between],
            "won_ratio": None if found is None else 1 - found / step_ns,
            "subtracted_step_ns": None if lost_ns is None else round(step_ns - lost_ns),
        }

    # -- replay

    def _between_ns(self, weights: Int64s) -> tuple[float, float]:
        """Return how long a step takes at least and at most, as it is not sure what waits."""
        most = self._step_ns(weights)
        maybe = self._replay.kind == Kind.MAYBE
        if not maybe.any():
            return most, most
        return min(most, self._step_ns(np.where(maybe, FREE_NS, weights))), most

    def _step_ns(self, weights: Int64s) -> float:
        """Replay, until kernels are slowed for as long as collectives run beside them."""
        graph = self._replay.graph
        instants = graph.instants(weights)
        found = self._replay.step_ns(instants)
        if not self._slowdown:
            return found
        slowed = weights.copy()
        for _ in range(_MOST_PASSES):
            more = self._overlap(instants, slowed) - self._recorded_overlap
            slowed[self._work] = weights[self._work] + np.rint(self._slowdown * more).astype(
                np.int64
            )
            instants = graph.instants(slowed)
            before, found = found, self._replay.step_ns(instants)
            if abs(found - before) <= _SETTLED * found:
                break
        return found

    def _overlap(self, instants: Int64s, weights: Int64s) -> Int64s:
        """Return for how long calls run beside each task that is no call."""
        replay, calls, tasks = self._replay, self._callers, self._worker
        begins = instants[replay.start[tasks]]
        ends = begins + np.maximum(weights[self._work], 0)
        spans = instants[replay.start[calls]], instants[replay.end[calls]]
        # each device in an age of its own
        instants_of = np.concatenate([begins, ends, *spans])
        if not instants_of.size:
            return np.zeros(0, np.int64)
        first = int(instants_of.min())
        age = int(instants_of.max()) - first + 1
        comm = from_spans(*(span - first + age * self._device[calls] for span in spans))
        before, after = (
            covered_before(comm, at - first + age * self._device[tasks])
            for at in (begins, ends)
        )
        found: Int64s = after - before
        return found

    def _slowdown_of(self) -> float:
        """Return which part of its time a kernel loses while a collective runs beside it.

        As those do that ran alone as well; what others do is not known.
        """
        slowed = sum(
            step.twice_contention_ns / 2 for device in self._devices for step in device.steps
        )
        overlapped, never_alone = (
            sum(getattr(device, name) for device in self._devices)
            for name in ("overlapped_ns", "never_alone_ns")
        )
        known = 1 - never_alone / overlapped if overlapped else 0.0
        overlap = known * int(self._recorded_overlap.sum())
        found = slowed / overlap if overlap else 0.0
        return min(found, 0.9) if found >= _LEAST_SLOWDOWN else 0.0

    # -- doubts

    def _are_counted(self) -> npt.NDArray[np.bool_]:
        """Say of each task whether it starts in a device-step that counts."""
        replay = self._replay
        starts = replay.recorded_ns[replay.start]
        found = np.zeros(starts.size, np.bool_)
        owner = self._device[self._owner_of_steps()]
        begins, ends = (replay.recorded_ns[at] for at in (replay.begins, replay.finishes))
        for device, begin, end in zip(owner.tolist(), begins, ends, strict=True):
            own = slice(replay.firsts[device], replay.firsts[device + 1])
            found[own] |= (starts[own] >= begin) & (starts[own] < end)
        return found

    def _owner_of_steps(self) -> Int64s:
        found: Int64s = self._replay.begins - self._replay.start[0]
        return found

    def _uncertain_ratio(self) -> float:
        """Return what of a device's steps is in calls of which nobody knows the transfer.

        Of calls that cannot be split, but are like others that can, that is their wait.
        """
        replay = self._replay
        rows = np.flatnonzero(replay.kind == Kind.LOOSE)
        tasks = replay.place[rows]
        tasks = tasks[self.is_counted[tasks]]
        lasts = replay.recorded_ns[replay.end[tasks]] - replay.recorded_ns[replay.start[tasks]]
        unknown = np.bincount(
            self._device[tasks],
            np.where(replay.is_known[tasks], lasts - replay.transfer_ns[tasks], lasts),
            len(self._devices),
        )
        spans = replay.spans_ns(replay.recorded_ns)
        owner = self._device[self._owner_of_steps()]
        whole = np.bincount(owner, spans, len(self._devices))
        return float(np.max(unknown / np.maximum(whole, 1)))


def _about(job: _Job) -> Iterator[Note]:
    if job.is_split and job.uncertain_ratio > _MOST_UNCERTAIN:
        yield Note(
            "what_if_unknown",
            f"{job.uncertain_ratio:.1%} of a device's steps is in calls whose waiting nobody "
            f"can tell from transfer, so steps under other conditions are not known; give the "
            f"traces of all ranks",
        )
    if job.has_unlike:
        yield Note(
            "what_if_unlike",
            "a rank that is waited for does other work than all others, so that nobody knows "
            "how long its steps would take if it were like them",
        )
    if job.is_doubtful:
        yield Note(
            "what_if_doubtful",
            "some steps under other conditions are known only to be between two times: all had "
            "ended that computing or communication may have waited for, and the traces do not "
            "tell which of them did",
        )
    if job.unexplained_ratio > _UNEXPLAINED:
        yield Note(
            "replay_unexplained",
            f"{job.unexplained_ratio:.1%} of the steps is time before kernels that nothing in "
            f"the traces explains: replayed steps keep it, and what hosts have to do with it "
            f"is not known",
        )
