"""Where the time of one device went, added up while its work passes by in order of start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceparse.intervals import (
    EMPTY,
    Int64s,
    Intervals,
    clip,
    covered_before,
    difference,
    from_spans,
    length,
    union,
)
from traceparse.rank.classify import COMM, COMPUTE, COPY, Kinds
from traceparse.rank.times import Times

__all__ = ["MOST_EXPOSED", "Account"]

MOST_EXPOSED = 1 << 20  # intervals of communication alone, of a device; there are some thousand
_KINDS = (COMPUTE, COMM, COPY)


class _Sets(NamedTuple):
    """What a partition is made of; the lengths of spans side by side add up."""

    compute: Intervals
    comm: Intervals
    copy: Intervals
    exposed_comm: Intervals
    exposed_copy: Intervals


class Account:
    """The account of every span between two of some instants, the ``cuts``.

    Of each set of the contract it keeps how much lies before each cut, so that memory is needed
    for what runs at one time, not for all that ran. Of other ``instants`` it keeps only how
    long anything but copies ran before.
    """

    def __init__(self, cuts: Int64s, instants: Int64s = EMPTY.starts) -> None:
        self._cuts, self._instants = np.unique(cuts), np.unique(instants)
        self._covered = np.zeros(self._instants.size, np.int64)
        self._num_covered = 0  # instants that are passed
        self._before = np.zeros((len(_Sets._fields), self._cuts.size), np.int64)
        self._totals = np.zeros((len(_Sets._fields), 1), np.int64)
        self._num_passed = 0  # cuts
        self._swept_ns: int | None = None  # up to where all is accounted for
        self._reach_ns = dict.fromkeys(_KINDS, 0)  # until when what has begun goes on
        self._exposed: list[Intervals] = []
        self._num_exposed = 0

    def add(self, starts: Int64s, ends: Int64s, kinds: Kinds) -> None:
        """Add work, in order of start, none of it before what was added last."""
        if self._swept_ns is None:
            self._swept_ns = int(starts[0])
        self._sweep(starts, ends, kinds, until_ns=int(starts[-1]))

    def finish(self) -> None:
        """Account for what still runs; nothing can be added after it."""
        nothing = np.empty(0, np.int64)
        until_ns = max(self._swept_ns or 0, *self._reach_ns.values())
        self._sweep(nothing, nothing, nothing.astype(np.int8), until_ns)
        self._before[:, self._num_passed :] = self._totals
        self._num_passed = self._cuts.size
        self._covered[self._num_covered :] = self._worked_ns

    def _sweep(self, starts: Int64s, ends: Int64s, kinds: Kinds, until_ns: int) -> None:
        swept_ns = self._swept_ns or 0
        found = []
        for kind in _KINDS:
            rows = kinds == kind
            own_starts, own_ends = starts[rows], ends[rows]
            if self._reach_ns[kind] > swept_ns:
                own_starts = np.append(swept_ns, own_starts)
                own_ends = np.append(self._reach_ns[kind], own_ends)
            covered = from_spans(own_starts, own_ends)
            if covered.ends.size:
                self._reach_ns[kind] = int(covered.ends[-1])
            found.append(clip(covered, swept_ns, until_ns))
        self._count(*found, until_ns=until_ns)
        self._swept_ns = until_ns

    def _count(
        self, compute: Intervals, comm: Intervals, copy: Intervals, *, until_ns: int
    ) -> None:
        sets = _Sets(
            compute,
            comm,
            copy,
            exposed_comm=difference(comm, compute),
            exposed_copy=difference(copy, union(comm, compute)),
        )
        self._num_exposed += sets.exposed_comm.starts.size
        if self._num_exposed <= MOST_EXPOSED:
            self._exposed.append(sets.exposed_comm)
        passed = slice(self._num_passed, int(np.searchsorted(self._cuts, until_ns, "right")))
        cuts = self._cuts[passed]
        before = [covered_before(part, cuts) for part in sets]
        self._before[:, passed] = self._totals + np.array(before)
        own = slice(self._num_covered, int(np.searchsorted(self._instants, until_ns, "right")))
        if own.start < own.stop:
            some = self._instants[own]
            before_ns = covered_before(sets.compute, some) + covered_before(
                sets.exposed_comm, some
            )
            self._covered[own] = self._worked_ns + before_ns
            self._num_covered = own.stop
        self._totals[:, 0] += [length(part) for part in sets]
        self._num_passed = passed.stop

    @property
    def exposed(self) -> Intervals | None:
        """When comm runs and compute does not; ``None`` if nobody could keep as many."""
        if self._num_exposed > MOST_EXPOSED:
            return None
        return from_spans(*map(np.concatenate, zip(EMPTY, *self._exposed, strict=True)))

    @property
    def _worked_ns(self) -> int:
        """How long anything but copies ran, as far as all is accounted for."""
        compute, _, _, exposed_comm, _ = self._totals[:, 0].tolist()
        return int(compute + exposed_comm)

    def covered(self, instants: Int64s) -> Int64s:
        """How long did anything but copies run before each of some of the instants?"""
        covered: Int64s = self._covered[np.searchsorted(self._instants, instants)]
        return covered

    def times(self, start_ns: int, end_ns: int) -> Times:
        """Account for every nanosecond of ``[start_ns, end_ns)``, both of them cuts."""
        first, last = np.searchsorted(self._cuts, [start_ns, end_ns])
        compute, comm, copy, exposed_comm, exposed_copy = (
            self._before[:, last] - self._before[:, first]
        ).tolist()
        busy_ns = compute + exposed_comm + exposed_copy
        span_ns = end_ns - start_ns
        return Times(
            start_ns=start_ns,
            end_ns=end_ns,
            span_ns=span_ns,
            busy_ns=busy_ns,
            compute_ns=compute,
            comm_ns=comm,
            copy_ns=copy,
            overlap_ns=comm - exposed_comm,
            exposed_comm_ns=exposed_comm,
            exposed_copy_ns=exposed_copy,
            idle_ns=span_ns - busy_ns,
        )
