"""Sets of time, as sorted disjoint half-open intervals over int64 arrays.

The only interval code there is. A set is an :class:`Intervals`: ``starts[i] < ends[i] <
starts[i + 1]``, so equal sets have equal arrays. Exact: no floats, no tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "EMPTY",
    "Int64s",
    "Intervals",
    "clip",
    "covered_before",
    "difference",
    "from_spans",
    "gaps",
    "intersection",
    "length",
    "merged",
    "union",
]

Int64s: TypeAlias = npt.NDArray[np.int64]
_Mask: TypeAlias = npt.NDArray[np.bool_]
_AT_ONCE = 1 << 16  # spans, which fit the cache


class Intervals(NamedTuple):
    """A set of instants: ``starts`` and ``ends``, int64, sorted, disjoint, none empty."""

    starts: Int64s
    ends: Int64s


EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def from_spans(starts: Int64s, ends: Int64s) -> Intervals:
    """Which instants do these spans cover? Any order, any overlap; empty spans cover none.

    Spans that are a set already are returned as they are; others are never copied all at once.
    """
    if np.all(starts < ends) and np.all(starts[1:] > ends[:-1]):
        return Intervals(starts, ends)
    order = None
    if np.any(starts[1:] < starts[:-1]):
        order = np.argsort(starts, kind="stable")
    found = Intervals(np.empty_like(starts), np.empty_like(ends))
    size = 0
    parts = (
        slice(at, at + _AT_ONCE) if order is None else order[at : at + _AT_ONCE]
        for at in range(0, starts.size, _AT_ONCE)
    )
    for some in merged((starts[part], ends[part]) for part in parts):
        rows = slice(size, size + some.starts.size)
        found.starts[rows], found.ends[rows] = some
        size = rows.stop
    return Intervals(found.starts[:size], found.ends[:size])


def merged(parts: Iterable[tuple[Int64s, Int64s]]) -> Iterator[Intervals]:
    """Yield what spans cover, set after set; they come in order of start, some at a time."""
    last = EMPTY  # it may grow yet
    for starts, ends in parts:
        some = _merged(np.concatenate([last.starts, starts]), np.concatenate([last.ends, ends]))
        yield Intervals(some.starts[:-1], some.ends[:-1])
        last = Intervals(some.starts[-1:], some.ends[-1:])
    yield last


def _merged(starts: Int64s, ends: Int64s) -> Intervals:
    lasting = starts < ends
    if not lasting.all():
        starts, ends = starts[lasting], ends[lasting]
    if not starts.size:
        return EMPTY
    reach = np.maximum.accumulate(ends)
    opens = np.append(True, starts[1:] > reach[:-1])
    closes = np.append(opens[1:], True)
    return Intervals(starts[opens], reach[closes])


def union(one: Intervals, other: Intervals) -> Intervals:
    """Return the instants in either set."""
    return from_spans(
        np.concatenate([one.starts, other.starts]), np.concatenate([one.ends, other.ends])
    )


def intersection(one: Intervals, other: Intervals) -> Intervals:
    """Return the instants in both sets."""
    return _combine(one, other, np.logical_and)


def difference(one: Intervals, other: Intervals) -> Intervals:
    """Return the instants in the first set that are not in the second."""
    return _combine(one, other, np.greater)


def gaps(inside: Intervals, start: int, end: int) -> Intervals:
    """Return the instants of ``[start, end)`` that the set leaves free."""
    return difference(from_spans(np.array([start]), np.array([end])), inside)


def clip(spans: Intervals, start: int, end: int) -> Intervals:
    """Return the part of a set that lies in ``[start, end)``."""
    if end <= start:
        return EMPTY
    first = int(np.searchsorted(spans.ends, start, "right"))
    last = int(np.searchsorted(spans.starts, end, "left"))
    return Intervals(
        np.maximum(spans.starts[first:last], start), np.minimum(spans.ends[first:last], end)
    )


def length(spans: Intervals) -> int:
    """How many instants (nanoseconds) are in the set."""
    return int(np.sum(spans.ends - spans.starts))


def covered_before(spans: Intervals, points: Int64s) -> Int64s:
    """How many instants of the set come before each of these points?"""
    begun = np.searchsorted(spans.starts, points)
    lengths = np.append(0, np.cumsum(spans.ends - spans.starts))
    # the last one that has begun may go on beyond the point
    beyond = np.append(0, spans.ends)[begun] - points
    return lengths[begun] - np.where(begun > 0, np.maximum(beyond, 0), 0)


def _combine(
    one: Intervals, other: Intervals, keep: Callable[[_Mask, _Mask], _Mask]
) -> Intervals:
    # not np.unique, which hashes: these are four sorted runs, which a stable sort merges
    points = np.sort(np.concatenate([*one, *other]), kind="stable")
    if points.size < 2:
        return EMPTY
    points = points[np.append(True, points[1:] != points[:-1])]
    kept = keep(_covers(one, points[:-1]), _covers(other, points[:-1]))
    return from_spans(points[:-1][kept], points[1:][kept])


def _covers(spans: Intervals, points: Int64s) -> _Mask:
    begun = np.searchsorted(spans.starts, points, "right")
    done = np.searchsorted(spans.ends, points, "right")
    return begun > done
