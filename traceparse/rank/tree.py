"""What the operators and device events of each thread are to one another.

Rows stand thread by thread, in order of start. A device event stands where the host launched
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.ordered import Rows
from traceparse.rank.classify import COMM, COPY
from traceparse.rank.nesting import NOTHING, enclosing, nearest

__all__ = ["Bools", "Is", "Tree"]

Bools = npt.NDArray[np.bool_]

_MOST_OPEN = 1 << 14  # rows of a thread that are not done at a time; no calls nest as deep


class Is:
    """What is known of an operator, as bits; those of what it is around are learned."""

    ENGINE: Final = np.uint16(1)  # autograd's, around a node of the backward graph
    CHECKPOINT: Final = np.uint16(2)  # and the node is a reentrant checkpoint
    FORWARD: Final = np.uint16(4)  # recorded for a backward to come
    DETACH: Final = np.uint16(8)  # takes a tensor out of the graph, as saving one does
    COUNTABLE: Final = np.uint16(16)  # its work is known
    AROUND_WORK: Final = np.uint16(32)  # around a countable one that worked
    AROUND_CALL: Final = np.uint16(64)  # around anything but detaches
    AROUND_DETACH: Final = np.uint16(128)
    AROUND_VAGUE: Final = np.uint16(256)  # around one that worked and told too little
    FRAME: Final = np.uint16(512)  # no operator, but Python's call that repeats a forward
    RECORDER: Final = np.uint16(1024)  # records what a collective was given
    MARK: Final = np.uint16(2048)  # no operator, but a backend's mark around its collective


@dataclass(frozen=True)
class Tree:
    """Rows of some threads; places in them stand for the rows.

    Fields of ``rows`` are ``thread``, ``start``, ``end``, ``is_event``, ``kind`` (of device
    events), ``call`` (``NOTHING`` of operators without formula) and ``flags`` (of operators:
    :class:`Is`).
    """

    rows: Rows

    @cached_property
    def is_op(self) -> Bools:
        """Not a device event."""
        found: Bools = ~self.rows["is_event"]
        return found

    @cached_property
    def parents(self) -> Int64s:
        """The innermost operator around each row."""
        starts = np.ascontiguousarray(self.rows["start"])
        ends = np.where(self.is_op, self.rows["end"], starts)
        return enclosing(self.rows["thread"], starts, ends)

    @cached_property
    def is_countable(self) -> Bools:
        """An operator whose work is known."""
        return self._has(Is.COUNTABLE)

    @cached_property
    def is_vague(self) -> Bools:
        """An operator that has a formula, but did not tell enough for it."""
        found: Bools = (self.rows["call"] != NOTHING) & ~self.is_countable
        return found

    @cached_property
    def owners(self) -> Int64s:
        """The innermost countable operator around each row."""
        return nearest(self.parents, self.is_countable)

    @cached_property
    def callers(self) -> Int64s:
        """The innermost operator with a formula around each row."""
        return nearest(self.parents, self.is_countable | self.is_vague)

    @cached_property
    def engines(self) -> Int64s:
        """The innermost node of the backward graph around each row."""
        return nearest(self.parents, self._has(Is.ENGINE))

    @cached_property
    def operators(self) -> Int64s:
        """The innermost operator around each row: what is around it and no other span."""
        return nearest(self.parents, ~self._has(Is.FRAME | Is.MARK))

    @cached_property
    def recorders(self) -> Int64s:
        """The innermost record of a collective around each of :attr:`comm`."""
        return self._around_comm(Is.RECORDER)

    @cached_property
    def marks(self) -> Int64s:
        """The innermost mark of a collective around each of :attr:`comm`."""
        return self._around_comm(Is.MARK)

    @cached_property
    def comm(self) -> Int64s:
        """The device events that communicate."""
        return np.flatnonzero(~self.is_op & (self.rows["kind"] == COMM))

    def _around_comm(self, flag: np.uint16) -> Int64s:
        are_wanted = self._has(flag) if self.comm.size else np.empty(0, np.bool_)
        if not are_wanted.any():
            return np.full(self.comm.size, NOTHING)
        return nearest(self.parents, are_wanted, self.comm)

    @cached_property
    def is_in_frame(self) -> Bools:
        """Whether Python's stack says that it repeats a forward."""
        frames = nearest(self.parents, self._has(Is.FRAME))
        found: Bools = (frames != NOTHING) & (frames > self.engines)
        return found

    @cached_property
    def is_recompute(self) -> Bools:
        """Whether it runs forward inside of backward.

        A reentrant checkpoint calls backward from inside of its node, and what is directly
        below it is forward. Any other unpacks a saved tensor in the node that needs it, and
        forward is what is recorded anew for a backward (torch/utils/checkpoint.py).
        """
        return self.is_in_frame | self._runs_forward

    @cached_property
    def _runs_forward(self) -> Bools:
        forward = self._has(Is.FORWARD)
        innermost = np.where(forward, np.arange(forward.size), nearest(self.parents, forward))
        inside = self.engines != NOTHING
        reentrant = self._has(Is.CHECKPOINT)[self.engines]
        found: Bools = inside & (reentrant | (innermost > self.engines))
        return found

    def worked_on_device(self) -> Bools:
        """Which operators own kernels? A memset alone is no work of theirs."""
        found = np.zeros(self.rows.size, np.bool_)
        kernels = ~self.is_op & (self.rows["kind"] != COPY)
        for above in (self.owners[kernels], self.callers[kernels]):
            found[above[above != NOTHING]] = True
        return found

    def learn_calls(self) -> None:
        """Mark what is around other calls; ``flags`` change, and keep it when rows go on."""
        flags, parents = self.rows["flags"], self.parents
        inside = self.is_op & (parents != NOTHING)
        detach = self._has(Is.DETACH)
        flags[parents[inside & detach]] |= Is.AROUND_DETACH
        flags[parents[inside & ~detach]] |= Is.AROUND_CALL

    @cached_property
    def is_stopped(self) -> Bools:
        """Whether it was called and did nothing, as far as rows tell.

        Recomputation ends with the last tensor that backward needs: the operator that saves it
        is called, saves its inputs, which detaches them, and is left. Nothing is recomputed
        after it. (On a device, an operator that did nothing left no event.)
        """
        inside = np.flatnonzero(self._has(Is.FORWARD) & (self.engines != NOTHING))
        last = np.full(self.rows.size, NOTHING)
        np.maximum.at(last, self.engines[inside], inside)
        reentrant = self._has(Is.CHECKPOINT)[self.engines]
        found: Bools = (
            self.is_recompute
            & ~reentrant
            & self._has(Is.AROUND_DETACH)
            & ~self._has(Is.AROUND_CALL)
            & (last[self.engines] <= np.arange(last.size))
        )
        return found

    def learn_work(self, has_worked: Bools) -> None:
        """Mark what is around operators that worked, as :meth:`learn_calls` does."""
        for are, flag in (
            (self.is_countable, Is.AROUND_WORK),
            (self.is_vague, Is.AROUND_VAGUE),
        ):
            above = self.callers[are & has_worked]
            while above.size:
                above = np.unique(above[above != NOTHING])
                above = above[~self._has(flag)[above]]
                self.rows["flags"][above] |= flag
                above = self.callers[above]

    def counts(self, has_worked: Bools) -> Bools:
        """Which operators that worked are around no other that counts? It would count twice."""
        return self.is_countable & has_worked & ~self._has(Is.AROUND_WORK)

    def is_missed(self, has_worked: Bools) -> Bools:
        """Which worked, but are neither counted nor inside or around what is?"""
        around = self._has(Is.AROUND_WORK) | self._has(Is.AROUND_VAGUE)
        found: Bools = self.is_vague & has_worked & (self.owners == NOTHING) & ~around
        return found

    def are_done(self, is_pending: Bools, *, is_last: bool) -> Bools:
        """Of which rows is all known, if others follow, unless these are the last?

        They are of the last thread of these, begin no earlier than its last row, or are of
        others. What is pending is done when its node of the backward graph is.
        """
        if is_last:
            return np.ones(self.rows.size, np.bool_)
        last = self.rows[-1]
        is_open: Bools = self.is_op & (self.rows["thread"] == last["thread"])
        is_open &= self.rows["end"] > last["start"]
        is_open |= is_pending & _any_of(is_open, self.engines)
        is_held = _any_of(is_open, self.operators)
        for around in (self.owners, self.callers):
            is_held |= _any_of(is_open, around)
        is_open |= ~self.is_op & is_held
        if int(is_open.sum()) > _MOST_OPEN:
            is_open[np.flatnonzero(is_open)[:-_MOST_OPEN]] = False
        found: Bools = ~is_open
        return found

    def _has(self, flag: np.uint16) -> Bools:
        found: Bools = self.is_op & (self.rows["flags"] & flag != 0)
        return found


def _any_of(is_wanted: Bools, places: Int64s) -> Bools:
    """Say of each place whether that row is wanted; ``NOTHING`` is not."""
    return np.append(is_wanted, False)[places]
