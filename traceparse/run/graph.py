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

__all__ = ["CyclicError", "Graph"]

_AT_ONCE: Final = 1 << 16  # edges that are Python's at a time


class CyclicError(Exception):
    """Something waits for itself."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Edges in an order in which all that leads to a source comes before what starts there.

    ``rows`` are their places in the weights that :meth:`instants` takes.
    """

    num: int
    rows: Int64s
    sources: Int64s
    targets: Int64s

    @classmethod
    def of(cls, sources: Int64s, targets: Int64s, order: Int64s) -> Graph:
        """Make a graph of vertices that are probably in ``order``.

        Raises
        ------
        CyclicError
            There is no order.
        """
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        if np.any(places[sources] >= places[targets]):
            places = _places(sources, targets, order.size)
        rows = np.argsort(places[targets], kind="stable")
        return cls(order.size, rows, sources[rows], targets[rows])

    def instants(self, weights: Int64s) -> Int64s:
        """Return when each vertex happens; vertex 0 does at 0, what nothing leads to never."""
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
