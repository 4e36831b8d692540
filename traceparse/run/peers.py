"""Let some devices do everything as the median of those do that do the same.

Tasks of two devices correspond by their place in a step, if both do the same calls of
collectives in it, in the same order between as many tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traceparse.intervals import Int64s
from traceparse.rank import DeviceDigest
from traceparse.run.across import Across
from traceparse.run.chains import task_at
from traceparse.run.edges import Kind
from traceparse.run.replay import Replay

__all__ = ["FREE_NS", "Peers"]

_OF_TASKS = (Kind.STREAM, Kind.LAUNCH, Kind.LATE, Kind.WORK)
_OF_HOSTS = (Kind.HOST, Kind.SYNC)
_BEFORE = "before"  # all steps
FREE_NS = -(1 << 50)  # of a weight that asks for nothing


@dataclass(frozen=True, slots=True)
class _Step:
    """The tasks of one device in one step, and the calls that made its host wait."""

    tasks: slice
    syncs: slice
    likeness: bytes

    def like(self, other: _Step) -> bool:
        own = self.syncs.stop - self.syncs.start
        return self.likeness == other.likeness and own == other.syncs.stop - other.syncs.start


class Peers:
    """The steps of all devices, and which of them do the same."""

    def __init__(
        self, replay: Replay, devices: Sequence[DeviceDigest], together: Across | None
    ) -> None:
        self._replay = replay
        kinds = None if together is None else together.kinds
        self._steps = [
            dict(_steps_of(replay, device, place, kinds))
            for place, device in enumerate(devices)
        ]
        self._rows = {kind: _rows(replay, kind) for kind in (*_OF_TASKS, *_OF_HOSTS)}

    def like_others(self, chosen: Sequence[int]) -> Int64s | None:
        """Return the weights of the replay with these devices like the median of the others.

        ``None`` if in any step but the last, which may be cut short, no other device does the
        same.
        """
        weights = self._replay.weights.copy()
        for place in chosen:
            steps = self._steps[place]
            last = [number for number in steps if number != _BEFORE][1:][-1:]
            for number, own in steps.items():
                peers = [
                    other[number]
                    for at, other in enumerate(self._steps)
                    if at not in chosen and number in other and own.like(other[number])
                ]
                if peers:
                    self._change(weights, own, peers)
                elif number not in (_BEFORE, *last):
                    return None
        return weights

    def _change(self, weights: Int64s, own: _Step, peers: Sequence[_Step]) -> None:
        """Give one step the weights of the median of its peers."""
        for kind, rows in self._rows.items():
            span = "tasks" if kind in _OF_TASKS else "syncs"
            mine = rows[getattr(own, span)]
            theirs = np.stack([rows[getattr(peer, span)] for peer in peers])
            known = np.where(theirs >= 0, self._replay.weights[theirs], FREE_NS)
            usual = np.sort(known, axis=0)[(len(peers) - 1) // 2 : len(peers) // 2 + 1]
            has = mine >= 0
            weights[mine[has]] = _middle(usual)[has]


def _middle(usual: Int64s) -> Int64s:
    """Return the mean of one or two rows; of two, one of which is free, the lower."""
    low, high = usual[0], usual[-1]
    found: Int64s = np.where(low == FREE_NS, low, low + (high - low) // 2)
    return found


def _rows(replay: Replay, kind: Kind) -> Int64s:
    """Return of each task, or call that makes a host wait, its edge of a kind; -1 for none."""
    size = replay.first_syncs[-1] if kind in _OF_HOSTS else replay.firsts[-1]
    found = np.full(int(size), -1)
    rows = np.flatnonzero(replay.kind == kind)
    found[replay.place[rows]] = rows
    return found


def _steps_of(
    replay: Replay, device: DeviceDigest, device_place: int, kinds: Int64s | None
) -> Iterator[tuple[int | str | None, _Step]]:
    """Yield the steps of a device by their number, and what is before them."""
    chain, first = replay.chains[device_place], int(replay.firsts[device_place])
    starts = device.tasks["start_ns"].to_numpy()
    is_call = chain.call >= 0
    begun: list[tuple[int, int | str | None]] = [
        (at, step.step)
        for step in device.steps
        if step.times and (at := task_at(starts, is_call, step.times.start_ns)) is not None
    ]
    if begun and begun[0][0]:
        begun.insert(0, (0, _BEFORE))
    likeness = _likeness(replay, kinds, slice(first, first + chain.num))
    edges = [*(begin for begin, _ in begun), chain.num]
    launched = np.append(chain.launched_ns, np.iinfo(np.int64).max)
    first_sync = int(replay.first_syncs[device_place])
    syncs = np.searchsorted(np.sort(chain.sync_start_ns), launched[edges]) + first_sync
    for place, (begin, number) in enumerate(begun):
        end = edges[place + 1]
        own = _Step(
            slice(first + begin, first + end),
            slice(int(syncs[place]), int(syncs[place + 1])),
            likeness[begin:end].tobytes(),
        )
        yield number, own


def _likeness(replay: Replay, kinds: Int64s | None, tasks: slice) -> Int64s:
    """Tell of each task which call it is: the collective, its size and data type.

    ``kinds`` are those of all instances, :attr:`traceparse.run.across.Across.kinds`.
    """
    instance = replay.instance[tasks]
    found = np.full((instance.size, 4), -1)
    rows = np.flatnonzero(instance >= 0)
    if kinds is not None and rows.size:
        found[rows] = kinds[instance[rows]]
    return found
