"""Which of the spans of its thread encloses this one, directly or at all?

Spans are given thread by thread, in order of start, of equal starts the longest first. Nothing
is assumed of how they lie: where two cross, as rounded times make them, the one that began last
encloses.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s

__all__ = ["NOTHING", "enclosing", "nearest"]

NOTHING = -1
_SHALLOW = 64


def enclosing(threads: npt.NDArray[np.int32], starts: Int64s, ends: Int64s) -> Int64s:
    """Return for each span the last one before it that goes on until it ends, or ``NOTHING``.

    A span without length is an instant: what encloses it goes on after that. It encloses none
    itself.
    """
    needed = np.maximum(ends, starts + 1)
    # what is between a span and its candidate ends too early: what did not do for the
    # candidate, which itself does not, cannot do for the span. So candidates of candidates
    # are tried, and each round goes twice as far.
    found = np.arange(-1, starts.size - 1)
    found[np.flatnonzero(threads[1:] != threads[:-1]) + 1] = NOTHING

    def failing(rows: Int64s) -> Int64s:
        return rows[(found[rows] >= 0) & (ends[found[rows]] < needed[rows])]

    rows = failing(np.arange(starts.size))
    while rows.size:
        found[rows] = found[found[rows]]
        rows = failing(rows)
    return found


def nearest(
    parents: Int64s, is_wanted: npt.NDArray[np.bool_], rows: Int64s | None = None
) -> Int64s:
    """Return for each row the nearest of its ancestors that is wanted, or ``NOTHING``.

    ``rows`` are those that are asked about, if few: their ancestors are looked at one by one,
    as long as they do not nest too deep for that.
    """
    if rows is not None:
        own = parents[rows]
        for _ in range(_SHALLOW):
            passing = np.flatnonzero((own >= 0) & ~is_wanted[own])
            if not passing.size:
                return own
            own[passing] = parents[own[passing]]
        return nearest(parents, is_wanted)[rows]
    found = parents.copy()

    def unwanted(rows: Int64s) -> Int64s:
        return rows[(found[rows] >= 0) & ~is_wanted[found[rows]]]

    rows = unwanted(np.arange(parents.size))
    while rows.size:
        found[rows] = found[found[rows]]
        rows = unwanted(rows)
    return found
