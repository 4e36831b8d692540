"""What a device did in each bin of its time: FLOP/s, share of the peak, bytes, busy time.

A step has a whole number of bins, and what was done is shared out among them in whole numbers,
so that the bins of a step add up to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from traceparse.intervals import Int64s, Intervals, covered_before

__all__ = ["BUSY", "FLOP", "HFU", "LINK", "Bins", "Done", "bins_of", "samples", "shared_out"]

FLOP: Final = ("achieved", "TFLOP/s")
HFU: Final = ("HFU", "share of the peak")
LINK: Final = ("collectives", "GB/s while transferring")
BUSY: Final = ("busy", "share of the time")
_NS_PER_S = 1_000_000_000
_FLOP_PER_TFLOP_NS = 1000  # a TFLOP/s is so many FLOP a ns


class Bins(NamedTuple):
    """Bins side by side: ``edges`` are one more than bins; ``places`` are those of steps."""

    edges: Int64s
    places: Int64s

    @property
    def num(self) -> int:
        """How many there are."""
        return self.places.size


class Done(NamedTuple):
    """Work, and from when to when it was done; amounts are whole numbers."""

    starts: Int64s
    ends: Int64s
    amounts: Int64s


def bins_of(cuts: Int64s, places: Int64s, num: int) -> Bins:
    """Cut each span between two cuts into as many bins as it has of all of the time.

    At least one, and never bins without length.
    """
    lasts = np.diff(cuts)
    total = max(int(cuts[-1] - cuts[0]), 1)
    edges, of = [], []
    for start, last, place in zip(cuts.tolist(), lasts.tolist(), places.tolist(), strict=False):
        own = min(max(1, num * last // total), max(last, 1))
        edges.append(start + np.arange(own, dtype=np.int64) * last // own)
        of.append(np.full(own, place))
    return Bins(np.append(np.concatenate(edges), cuts[-1]), np.concatenate(of))


def shared_out(done: Done, edges: Int64s) -> Int64s:
    """Share each amount out among bins, by the time that it has in each; sums stay the same.

    What lies beyond the edges counts in the first or the last bin.
    """
    num = edges.size - 1
    found = np.zeros(num, np.int64)
    first = np.clip(np.searchsorted(edges, done.starts, "right") - 1, 0, num - 1)
    last = np.clip(np.searchsorted(edges, done.ends, "left") - 1, first, num - 1)
    alone = first == last
    np.add.at(found, first[alone], done.amounts[alone])
    for row in np.flatnonzero(~alone).tolist():
        start, end, amount = (int(column[row]) for column in done)
        before = 0
        for place in range(int(first[row]), int(last[row]) + 1):
            # of what is done by the end of the bin, in whole numbers of any size
            until = end if place == last[row] else int(edges[place + 1])
            by_then = amount * (until - start) // (end - start)
            found[place] += by_then - before
            before = by_then
    return found


def samples(
    bins: Bins,
    *,
    busy: Intervals,
    flop: Mapping[str, Done] | None,
    peaks: Mapping[str, float],
    moved: Sequence[Done],
) -> Iterator[tuple[tuple[str, str], list[float]]]:
    """Yield each counter that is known, with a value a bin.

    ``flop`` are by data type; ``moved`` are bytes, and the time of the transfers that moved
    them.
    """
    lasts = np.maximum(np.diff(bins.edges), 1)
    yield BUSY, (np.diff(covered_before(busy, bins.edges)) / lasts).tolist()
    if flop is not None:
        by_dtype = {dtype: shared_out(done, bins.edges) for dtype, done in flop.items()}
        total = sum(by_dtype.values(), np.zeros(bins.num, np.int64))
        yield FLOP, (total / (lasts * _FLOP_PER_TFLOP_NS)).tolist()
        if by_dtype and all(peaks.get(dtype) for dtype in by_dtype):
            needed = sum(flop / peaks[dtype] for dtype, flop in by_dtype.items())
            yield HFU, (needed * _NS_PER_S / lasts).tolist()
    if moved:
        num_bytes, ns = (shared_out(one, bins.edges).tolist() for one in moved)
        yield LINK, [b / t if t else 0.0 for b, t in zip(num_bytes, ns, strict=True)]
