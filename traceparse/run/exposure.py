"""What exposed communication was: transfer, or waiting, and for whom.

Within an instance's interval on a rank the last ``transfer`` nanoseconds are transfer, what
precedes is wait. Where exposed collectives overlap each other, an instant is transfer before
collective wait before pipeline wait before what cannot be split (report contract, section 5).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceparse.intervals import (
    Int64s,
    Intervals,
    covered_before,
    difference,
    from_spans,
    intersection,
    union,
)

__all__ = ["Exposure", "Parts", "exposure_of"]


class Parts(NamedTuple):
    """The parts that one device had in instances; ``is_split`` says whether each counts so."""

    start_ns: Int64s
    end_ns: Int64s
    transfer_ns: Int64s
    is_peer: np.ndarray[tuple[int], np.dtype[np.bool_]]
    is_split: np.ndarray[tuple[int], np.dtype[np.bool_]]


class Exposure(NamedTuple):
    """Four sets that add up to a device's exposed communication."""

    transfer: Intervals
    wait: Intervals
    pipeline_wait: Intervals
    unsplit: Intervals

    def within(self, start_ns: int, end_ns: int) -> tuple[int, int, int, int]:
        """Return how much of each is between two instants, in ns."""
        cuts = np.array([start_ns, max(start_ns, end_ns)])
        before = [covered_before(part, cuts) for part in self]
        transfer, wait, pipeline, unsplit = (int(last - first) for first, last in before)
        return transfer, wait, pipeline, unsplit


def exposure_of(exposed: Intervals, parts: Parts) -> Exposure:
    """Split a device's exposed communication."""
    split, peer = parts.is_split, parts.is_peer
    arrived = np.maximum(parts.end_ns - parts.transfer_ns, parts.start_ns)

    def waiting(rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Intervals:
        return from_spans(parts.start_ns[rows], arrived[rows])

    transfer = intersection(exposed, from_spans(arrived[split], parts.end_ns[split]))
    wait = difference(intersection(exposed, waiting(split & ~peer)), transfer)
    both = union(transfer, wait)
    pipeline = difference(intersection(exposed, waiting(split & peer)), both)
    return Exposure(transfer, wait, pipeline, difference(exposed, union(both, pipeline)))
