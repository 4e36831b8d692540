"""When does everything happen, given what waits for what? The longest path to each instant.

Vertices are instants; an edge says that its target comes no sooner than its weight after its
source. Everything happens as soon as it may, so an instant is the latest of all that its edges
ask for. Weights may be negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.rank import NEVER

__all__ = ["CyclicError", "Graph", "tiers_of"]

_AT_ONCE: Final = 1 << 16  # edges that are Python's at a time
_MANY: Final = 1 << 20  # edges that it may be worth to look for ranks of
_WIDE: Final = 128  # edges of a rank, on average, from which on arrays are faster


class CyclicError(Exception):
    """Something waits for itself."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Edges in an order in which all that leads to a source comes before what starts there.

    ``rows`` are their places in the weights that :meth:`instants` takes. A job of many ranks
    does much at a time: where ``tiers`` are known, edges up to each of these lead to vertices
    that do not wait for one another.
    """

    num: int
    rows: Int64s
    sources: Int64s
    targets: Int64s
    tiers: Int64s | None = None

    @classmethod
    def of(cls, sources: Int64s, targets: Int64s, order: Int64s) -> Graph:
        """Make a graph of vertices that are probably in ``order``.

        Raises
        ------
        CyclicError
            There is no order.
        """
        if sources.size >= _MANY:
            tier = tiers_of(sources, targets, order.size, int(sources.size // _WIDE))
            if tier is not None:
                rows = np.lexsort([targets, tier[targets]])
                tiers = np.cumsum(np.bincount(tier[targets]))
                return cls(order.size, rows, sources[rows], targets[rows], tiers)
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        if np.any(places[sources] >= places[targets]):
            places = _places(sources, targets, order.size)
        rows = np.argsort(places[targets], kind="stable")
        return cls(order.size, rows, sources[rows], targets[rows])

    def instants(self, weights: Int64s) -> Int64s:
        """Return when each vertex happens; vertex 0 does at 0, what nothing leads to never."""
        if self.tiers is not None:
            return self._by_tiers(weights, self.tiers)
        found = [NEVER] * self.num
        found[0] = 0
        for first in range(0, self.rows.size, _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            for source, target, weight in zip(
                self.sources[some].tolist(),
                self.targets[some].tolist(),
                weights[self.rows[some]].tolist(),
                strict=True,
            ):
                instant = found[source] + weight
                if instant > found[target]:  # noqa: PLR1730 - half as long again with max
                    found[target] = instant
        return np.array(found, np.int64)

    def _by_tiers(self, weights: Int64s, tiers: Int64s) -> Int64s:
        found = np.full(self.num, NEVER)
        found[0] = 0
        is_first = np.diff(self.targets, prepend=-1) != 0  # each target is of one tier
        firsts = np.flatnonzero(is_first)
        cuts = np.searchsorted(firsts, tiers).tolist()
        for first, last, begin, end in zip(
            [0, *tiers[:-1].tolist()], tiers.tolist(), [0, *cuts[:-1]], cuts, strict=True
        ):
            if first == last:
                continue
            asked = found[self.sources[first:last]] + weights[self.rows[first:last]]
            own = firsts[begin:end]
            latest = np.maximum.reduceat(asked, own - first)
            targets = self.targets[own]
            found[targets] = np.maximum(found[targets], latest)
        return found


def tiers_of(sources: Int64s, targets: Int64s, num: int, most: int) -> Int64s | None:
    """Return how many edges the longest way to each vertex has; ``None`` if it has too many.

    Raises
    ------
    CyclicError
        A way leads back to where it began.
    """
    by_source = np.argsort(sources, kind="stable")
    sizes = np.bincount(sources, minlength=num)
    firsts = np.cumsum(sizes) - sizes
    follow = targets[by_source]
    left = np.bincount(targets, minlength=num)
    tier = np.full(num, -1)
    ready = np.flatnonzero(left == 0)
    for number in range(most):
        tier[ready] = number
        own = sizes[ready]
        ends = np.cumsum(own)
        at = np.repeat(firsts[ready] - ends + own, own) + np.arange(int(own.sum()))
        reached, counts = np.unique(follow[at], return_counts=True)
        left[reached] -= counts
        ready = reached[left[reached] == 0]
        if not ready.size:
            if np.any(tier < 0):
                raise CyclicError
            return tier
    return None


def _places(sources: Int64s, targets: Int64s, num: int) -> npt.NDArray[np.int64]:
    """Put vertices in order one after the other (Kahn, 1962)."""
    by_source = np.argsort(sources, kind="stable")
    ends = np.cumsum(np.bincount(sources, minlength=num)).tolist()
    follow = targets[by_source].tolist()
    open_edges = np.bincount(targets, minlength=num).tolist()
    ready = [vertex for vertex in range(num) if not open_edges[vertex]]
    places = np.full(num, -1)
    for place in range(num):
        if place == len(ready):
            raise CyclicError
        vertex = ready[place]
        places[vertex] = place
        for target in follow[ends[vertex - 1] if vertex else 0 : ends[vertex]]:
            open_edges[target] -= 1
            if not open_edges[target]:
                ready.append(target)
    return places
