"""Sets of time, as sorted disjoint half-open intervals over int64 arrays.

The only interval code there is. A set is an :class:`Intervals`: ``starts[i] < ends[i] <
starts[i + 1]``, so equal sets have equal arrays. Exact: no floats, no tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "EMPTY",
    "Int64s",
    "Intervals",
    "clip",
    "difference",
    "from_spans",
    "gaps",
    "intersection",
    "length",
    "union",
]

Int64s: TypeAlias = npt.NDArray[np.int64]
_Mask: TypeAlias = npt.NDArray[np.bool_]


class Intervals(NamedTuple):
    """A set of instants: ``starts`` and ``ends``, int64, sorted, disjoint, none empty."""

    starts: Int64s
    ends: Int64s


EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def from_spans(starts: Int64s, ends: Int64s) -> Intervals:
    """Which instants do these spans cover? Any order, any overlap; empty spans cover none."""
    lasting = starts < ends
    if not lasting.all():
        starts, ends = starts[lasting], ends[lasting]
    if not starts.size:
        return EMPTY
    if np.any(starts[1:] < starts[:-1]):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
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
