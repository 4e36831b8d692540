"""When everything happens: the longest path, whatever order vertices are given in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.rank import NEVER
from traceparse.run.graph import CyclicError, Graph, tiers_of

BOTH = pytest.mark.parametrize("is_wide", [False, True], ids=["narrow", "wide"])


def graph(edges, order, *, is_wide=False):
    """Make a graph; one that is wide goes tier by tier, as those of many ranks do."""
    sources, targets, _ = (np.array(column) for column in zip(*edges, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        if is_wide:
            patch.setattr("traceparse.run.graph._MANY", 0)
            patch.setattr("traceparse.run.graph._WIDE", 0.25)
        found = Graph.of(sources, targets, np.array(order))
    assert (found.tiers is not None) == is_wide
    return found


def weights(edges):
    return np.array([weight for _, _, weight in edges])


@BOTH
def test_an_instant_is_the_latest_of_what_is_asked(is_wide):
    edges = [(0, 1, 5), (1, 2, 7), (0, 2, 20), (2, 3, -4)]
    assert graph(edges, [0, 1, 2, 3], is_wide=is_wide).instants(weights(edges)).tolist() == [
        0,
        5,
        20,
        16,
    ]


@BOTH
def test_what_nothing_leads_to_never_happens(is_wide):
    edges = [(0, 2, 5), (1, 2, 7)]
    assert graph(edges, [0, 1, 2], is_wide=is_wide).instants(weights(edges)).tolist() == [
        0,
        NEVER,
        5,
    ]


def test_a_wrong_order_is_put_right():
    edges = [(0, 3, 1), (3, 1, 1), (1, 2, 1)]
    found = graph(edges, [2, 1, 3, 0])
    assert found.instants(weights(edges)).tolist() == [0, 2, 3, 1]


@BOTH
def test_what_waits_for_itself_is_told(is_wide):
    with pytest.raises(CyclicError):
        graph([(0, 1, 1), (1, 2, 1), (2, 1, 1)], [0, 1, 2], is_wide=is_wide)


def test_what_is_long_and_narrow_goes_edge_by_edge():
    edges = [(at, at + 1, 1) for at in range(9)]
    sources, targets, _ = (np.array(column) for column in zip(*edges, strict=True))
    tiers = tiers_of(sources, targets, 10, most=10)
    assert tiers is not None
    assert tiers.tolist() == list(range(10))
    assert tiers_of(sources, targets, 10, most=9) is None


@BOTH
@given(st.data())
def test_by_brute_force(is_wide, data):
    num = data.draw(st.integers(2, 9))
    names = data.draw(st.permutations(range(1, num)))
    rank = {0: 0} | {name: place + 1 for place, name in enumerate(names)}
    pairs = st.tuples(st.integers(0, num - 1), st.integers(0, num - 1), st.integers(-9, 99))
    drawn = data.draw(st.lists(pairs, min_size=1, max_size=30))
    edges = [(a, b, w) for a, b, w in drawn if rank[a] < rank[b]] + [(0, names[0], 1)]
    order = data.draw(st.permutations(range(num)))
    wanted = [0] + [NEVER] * (num - 1)
    for vertex in sorted(range(num), key=lambda vertex: rank[vertex]):
        for source, target, weight in edges:
            if source == vertex:
                wanted[target] = max(wanted[target], wanted[source] + weight)
    found = graph(edges, order, is_wide=is_wide).instants(weights(edges)).tolist()
    reached = [instant > NEVER // 2 for instant in wanted]
    assert [at > NEVER // 2 for at in found] == reached
    assert [at for at, is_one in zip(found, reached, strict=True) if is_one] == [
        at for at, is_one in zip(wanted, reached, strict=True) if is_one
    ]
