"""How many calls later does one rank's recording begin than another's?

Windows of ranks need not begin with the same collective. Where calls carry no number of their
own, their kinds in order tell: two sequences are laid over one another at every lag, and where
all kinds agree, the lag at which ends differ by the same all along is the right one. Layers
repeat, so several may fit as well: then the one whose clocks differ least is as good a guess as
there is, and it is said to be one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s

__all__ = ["Lag", "find_lag", "median"]

_MOST_LAGS = 2_000  # either way
_MOST_COMPARED = 4_096  # calls of a rank
_LEAST_SHARE = 0.5  # of the shorter one's calls that have to lie over one another
_AS_GOOD = 2  # times the least spread
_SAME_NS = 1_000  # spreads below are all the same: Kineto's old resolution


class Lag(NamedTuple):
    """``calls`` is the place in the reference that the other one's first call is at.

    ``spread_ns`` is the median deviation of the difference of ends from its median.
    """

    calls: int
    spread_ns: int
    is_ambiguous: bool


def find_lag(
    reference: npt.NDArray[np.int64],
    other: npt.NDArray[np.int64],
    reference_ends: Int64s,
    other_ends: Int64s,
) -> Lag | None:
    """Find the lag of one rank's calls behind another's, both in order; ``None`` if none fits.

    ``reference`` and ``other`` number the kinds of calls.
    """
    num, own = min(reference.size, _MOST_COMPARED), min(other.size, _MOST_COMPARED)
    least = max(1, int(min(num, own) * _LEAST_SHARE))
    found: list[tuple[int, int, int]] = []  # spread, difference of clocks, lag
    for lag in range(max(least - own, -_MOST_LAGS), min(num - least, _MOST_LAGS) + 1):
        first, last = max(lag, 0), min(num, own + lag)
        if not np.array_equal(reference[first:last], other[first - lag : last - lag]):
            continue
        apart = other_ends[first - lag : last - lag] - reference_ends[first:last]
        offset = int(median(apart))
        found.append((int(median(np.abs(apart - offset))), abs(offset), lag))
    if not found:
        return None
    least_spread = max(min(found)[0], _SAME_NS)
    good = [one for one in found if one[0] <= _AS_GOOD * least_spread]
    spread, _, lag = min(good, key=lambda one: (one[1], abs(one[2])))
    return Lag(lag, spread, len(good) > 1)


def median(values: Int64s) -> Int64s:
    """Return the median along the first axis, exactly: times do not fit a float."""
    ordered = np.sort(values, axis=0)
    low, high = ordered[(len(values) - 1) // 2], ordered[len(values) // 2]
    found: Int64s = low + (high - low) // 2
    return found
