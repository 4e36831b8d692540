"""The tasks of one device on the common clock, and which of them wait for which.

A trace says that a stream was made to wait (``cudaStreamWaitEvent``), but neither which one nor
for what. PyTorch's process groups let the stream of a collective wait for the stream that is
computing, so a call waits for the work that was launched before it. Any other wait is taken for
one of the next computing task for calls (:mod:`traceparse.run.awaited`). Nothing waits for what
had not ended when it began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.rank import NEVER, DeviceDigest
from traceparse.run.across import Across
from traceparse.run.awaited import Awaited, Lane, Waiting, awaited

__all__ = [
    "Chain",
    "Dependencies",
    "awaited_by_host",
    "chain_of",
    "dependencies",
    "follows",
    "task_at",
]

_MOST_STREAMS = 16  # of a device that are looked at; those with most tasks
_AT_ONCE_NS: Final = 10_000  # after what it waits for does a kernel begin

Bools = npt.NDArray[np.bool_]
Edges = tuple[Int64s, Int64s]  # what is awaited, what waits


@dataclass(frozen=True, slots=True)
class Chain:
    """Tasks in the order in which the host asked for them; columns as in ``TASKS``.

    All times are on the common clock; those of calls that make the host wait (``sync_``) are
    in order of their ends. ``call`` is -1 for what is no call, and so is ``kind``, which
    collective a call is, by number.
    """

    start_ns: Int64s
    end_ns: Int64s
    stream: Int64s
    call: Int64s
    kind: Int64s
    work_ns: Int64s
    gaps_ns: Int64s
    launched_ns: Int64s
    ready_ns: Int64s
    arrival_ns: Int64s
    tail_ns: Int64s
    waits: Int64s
    sync_start_ns: Int64s
    sync_end_ns: Int64s
    is_host: bool

    @property
    def tells_waits(self) -> bool:
        """Does anything say which tasks wait for calls? On a stream of their own, it must."""
        is_call = self.call >= 0
        apart = np.isin(self.stream[is_call], self.stream[~is_call], invert=True)
        return self.is_host or not apart.any() or bool(self.waits.any())

    @property
    def num(self) -> int:
        """How many tasks there are."""
        return self.start_ns.size


def chain_of(device: DeviceDigest, place: int, together: Across | None, base_ns: int) -> Chain:
    """Return the tasks of a device, times counted from ``base_ns`` of the common clock."""

    def aligned(times_ns: Int64s) -> Int64s:
        known = together.clock.aligned(place, times_ns) if together else None
        moved = (times_ns if known is None else known) - base_ns
        return np.where(times_ns == NEVER, NEVER, moved)

    columns = {
        name: device.tasks[name].to_numpy().astype(np.int64)
        for name in device.tasks.column_names
    }
    for name in ("start_ns", "end_ns", "launched_ns", "ready_ns", "arrival_ns"):
        columns[name] = aligned(columns[name])
    starts, ends = (device.syncs[name].to_numpy() for name in ("start_ns", "end_ns"))
    order = np.argsort(ends, kind="stable")
    return Chain(
        **columns,
        kind=_kinds(together, place, columns["call"]),
        sync_start_ns=aligned(starts[order]),
        sync_end_ns=aligned(ends[order]),
        is_host=device.device == "cpu",
    )


def _kinds(together: Across | None, place: int, call: Int64s) -> Int64s:
    """Return the number of each task's collective, -1 for what is no call."""
    if together is None:
        return np.full(call.size, -1)
    calls = together.calls
    first = np.searchsorted(calls.devices, place)
    return np.where(call >= 0, calls.collectives[first + call], -1)


def follows(chain: Chain) -> Edges:
    """Return each task but the first of a stream, and the one before it there."""
    order = np.lexsort([chain.end_ns, chain.start_ns, chain.stream])
    same = chain.stream[order][1:] == chain.stream[order][:-1]
    return order[:-1][same], order[1:][same]


class Dependencies(NamedTuple):
    """What is awaited, what waits, and whether that is sure; else it may be for another."""

    awaited: Int64s
    waiting: Int64s
    is_sure: Bools

    @classmethod
    def of(cls, found: Sequence[Dependencies]) -> Dependencies:
        """Put some together, each once; what is sure for one reason is sure."""
        awaited, waiting, is_sure = map(np.concatenate, zip(*found, strict=True))
        order = np.lexsort([~is_sure, waiting, awaited])
        pairs = np.stack([awaited, waiting])[:, order]
        is_new = np.any(np.diff(pairs, axis=1, prepend=-1) != 0, axis=0)
        awaited, waiting = pairs[:, is_new]
        return cls(awaited, waiting, is_sure[order][is_new])


def dependencies(chain: Chain) -> Dependencies:
    """Return which tasks wait for tasks of other streams."""
    before, after = follows(chain)
    free_ns = np.full(chain.num, NEVER)  # when its own stream was
    free_ns[after] = chain.end_ns[before]
    return Dependencies.of([_calls(chain, free_ns), *_told(chain), _at_once(chain, free_ns)])


def task_at(starts_ns: Int64s, is_call: Bools, at_ns: int) -> int | None:
    """Return the task that starts at some instant: one that computes, if any does."""
    found = np.flatnonzero(starts_ns == at_ns)
    return None if not found.size else int(found[np.argmin(is_call[found])])


def _calls(chain: Chain, free_ns: Int64s) -> Dependencies:
    """Let each call wait for what was computed before it.

    In a graph nothing says so, but that the call begins as soon as that has ended, and its own
    stream was free before.
    """
    calls = np.flatnonzero(chain.call >= 0)
    before = _last(chain.call < 0)[calls]
    done = (before >= 0) & (chain.end_ns[before] <= chain.start_ns[calls])
    before, calls = before[done], calls[done]
    in_graph = chain.launched_ns[before] == chain.launched_ns[calls]
    ended_ns = chain.end_ns[before]
    is_held = chain.start_ns[calls] - ended_ns <= _AT_ONCE_NS
    is_held &= ended_ns > free_ns[calls]
    return Dependencies(before, calls, ~in_graph | is_held)


def _last(are_such: Bools) -> Int64s:
    """Return for each task the last of some before it, -1 for none; its own if it is such."""
    found: Int64s = np.maximum.accumulate(np.where(are_such, np.arange(are_such.size), -1))
    return found


def _told(chain: Chain) -> list[Dependencies]:
    """Tell for whom waits are that are not a call's own, and for what.

    A wait before a call may be the call's for another stream, or for what computes next.
    """
    is_call = chain.call >= 0
    left = chain.waits - is_call
    rows = np.flatnonzero(left > 0)
    streams = _streams(chain.stream[is_call])
    if not rows.size or not streams.size:
        return []
    follower = chain.num - 1 - _last(~is_call[::-1])[::-1]  # that computes; num: none
    target = follower[rows]
    known = np.flatnonzero(target < chain.num)
    target = target[known]
    found = _of_computing(chain, streams, rows[known], left[rows[known]], target)
    waits = known[found.waits]
    edges = []
    may_be_its = np.zeros(rows.size, np.bool_)
    # a wait before a call is for computing, if that usually waits for the call's own stream,
    # could have waited for the others, and the call was not held up by them
    is_own = found.is_usual & (chain.stream[found.calls] == chain.stream[rows[waits]])
    is_told = left[rows] <= np.bincount(waits[is_own], minlength=rows.size)
    begins = np.full(rows.size, NEVER)
    begins[known] = chain.start_ns[target]
    for own in streams:
        before = np.append(-1, _last(is_call & (chain.stream == own)))[rows]
        other = is_call[rows] & (chain.stream[rows] != own) & (before >= 0)
        ends, starts = chain.end_ns[before], chain.start_ns[rows]
        is_held = (ends > chain.ready_ns[rows]) & (starts - ends <= _AT_ONCE_NS)
        other &= ~is_told | (ends > begins) | is_held
        other &= ends <= starts
        may_be_its |= other
        edges.append(Dependencies(before[other], rows[other], is_held[other]))
    computing = Dependencies(found.calls, target[found.waits], ~may_be_its[waits])
    return [*edges, computing]


def _of_computing(
    chain: Chain, streams: Int64s, rows: Int64s, nums: Int64s, target: Int64s
) -> Awaited:
    """Tell for which calls tasks wait, given before which task how many waits are for them."""
    lanes = []
    for own in streams.tolist():
        calls = np.flatnonzero((chain.call >= 0) & (chain.stream == own))
        lanes.append(Lane(own, calls, chain.end_ns[calls], chain.kind[calls]))
    ends_ns = chain.sync_end_ns
    at = np.searchsorted(ends_ns, chain.launched_ns[rows], "right") - 1
    waiting = Waiting(
        before=rows,
        nums=nums,
        begins_ns=chain.start_ns[target],
        stream=chain.stream[target],
        known_ns=np.where(at >= 0, np.append(ends_ns, NEVER)[at], NEVER),
    )
    return awaited(lanes, waiting)


def _streams(values: Int64s) -> Int64s:
    """Return the streams that have most tasks."""
    found, nums = np.unique(values, return_counts=True)
    return found[np.sort(np.argsort(-nums, kind="stable")[:_MOST_STREAMS])]


def _at_once(chain: Chain, free_ns: Int64s) -> Dependencies:
    """Let tasks wait for calls right after which they begin, if nothing else holds them up."""
    calls = np.flatnonzero(chain.call >= 0)
    calls = calls[np.argsort(chain.end_ns[calls], kind="stable")]
    others = np.flatnonzero(chain.call < 0)
    if not calls.size or chain.is_host:
        return Dependencies(calls[:0], calls[:0], np.zeros(0, np.bool_))
    held_ns = np.maximum(chain.ready_ns, free_ns)
    begins = chain.start_ns[others]
    at = np.searchsorted(chain.end_ns[calls], begins, "right") - 1
    ended_ns = np.where(at >= 0, chain.end_ns[calls[at]], NEVER)
    is_one = (ended_ns > held_ns[others]) & (begins - ended_ns <= _AT_ONCE_NS)
    is_one &= (held_ns[others] != NEVER) & (chain.stream[calls[at]] != chain.stream[others])
    awaited, waiting = calls[at[is_one]], others[is_one]
    return Dependencies(awaited, waiting, np.ones(waiting.size, np.bool_))


def awaited_by_host(chain: Chain) -> Int64s:
    """Return for which task each synchronizing call waits; -1: none is known.

    It is the last to end of those that were launched last on their stream before the call, and
    had ended when it returned.
    """
    begins, returns = chain.sync_start_ns, chain.sync_end_ns
    found = np.full(begins.size, -1)
    latest = np.full(begins.size, NEVER)
    for own in _streams(chain.stream) if begins.size else ():
        tasks = np.flatnonzero(chain.stream == own)
        at = np.searchsorted(chain.launched_ns[tasks], begins, "right") - 1
        task = np.where(at >= 0, tasks[at], -1)
        ends = np.where(at >= 0, chain.end_ns[task], NEVER)
        is_later = (ends > latest) & (ends <= returns)
        found[is_later], latest[is_later] = task[is_later], ends[is_later]
    return found
