"""On which lane of its track is each slice drawn? Where two cross, the later one needs another.

Perfetto takes slices of one track for calls that nest: one that begins within another and ends
after it is dropped.
"""

from __future__ import annotations

import numpy as np

from traceparse.intervals import Int64s

__all__ = ["lanes", "outside_in"]


_MOST_TRIED = 64


def outside_in(starts: Int64s, ends: Int64s) -> Int64s:
    """Return rows in order of start, of equal starts the longest first."""
    return np.lexsort((-ends, starts))


def lanes(starts: Int64s, ends: Int64s, *, may_nest: bool) -> Int64s:
    """Return a lane for each slice, from 0 on, given as :func:`outside_in` orders them.

    Slices of a lane are disjoint or, if they ``may_nest``, within one another.
    """
    if starts.size < 2 or np.all(starts[1:] >= np.maximum.accumulate(ends)[:-1]):
        return np.zeros(starts.size, np.int64)
    open_ends: list[list[int]] = []
    found = [
        _lane(open_ends, start, end, may_nest=may_nest)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return np.array(found, np.int64)


def _lane(open_ends: list[list[int]], start: int, end: int, *, may_nest: bool) -> int:
    """Find a lane that has room, and take it; ``open_ends`` are stacks, a lane each.

    Where there are more than people look at, only the last ones are tried.
    """
    for lane in range(max(0, len(open_ends) - _MOST_TRIED), len(open_ends)):
        stack = open_ends[lane]
        while stack and stack[-1] <= start:
            stack.pop()
        if not stack or (may_nest and end <= stack[-1]):
            stack.append(end)
            return lane
    open_ends.append([end])
    return len(open_ends) - 1
