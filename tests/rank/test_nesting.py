from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.rank.nesting import NOTHING, enclosing, nearest


def _enclosing(spans) -> list[int]:
    starts, ends = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    return [int(place) for place in enclosing(np.zeros(starts.size, np.int32), starts, ends)]


@pytest.mark.parametrize(
    ("spans", "parents"),
    [
        ([(0, 9), (1, 4), (2, 3), (5, 8)], [-1, 0, 1, 0]),
        ([(0, 5), (5, 9)], [-1, -1]),  # one ends where the other begins
        ([(0, 5), (0, 5), (0, 5)], [-1, 0, 1]),
        ([(0, 5), (3, 9), (4, 5)], [-1, -1, 1]),  # crossing: the one that began last
        ([(0, 5), (5, 5)], [-1, -1]),  # an instant where a span ends is outside
        ([(0, 5), (4, 4), (4, 5)], [-1, 0, 0]),  # an instant encloses nothing
    ],
)
def test_the_last_span_that_goes_on_encloses(spans, parents):
    assert _enclosing(spans) == parents


spans = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), min_size=1, max_size=30)


@given(spans)
def test_it_agrees_with_a_search(lengths):
    found = sorted((start, -(start + length)) for start, length in lengths)
    in_order = [(start, -end) for start, end in found]

    def encloser(at: int) -> int:
        start, end = in_order[at]
        around = [
            before
            for before, (_, other) in enumerate(in_order[:at])
            if other >= end and other > start
        ]
        return around[-1] if around else NOTHING

    assert _enclosing(in_order) == [encloser(at) for at in range(len(in_order))]


@given(st.lists(st.tuples(st.integers(0, 99), st.booleans()), max_size=40))
def test_the_nearest_ancestor_agrees_with_a_walk(rows):
    parents = [choice % (at + 1) - 1 for at, (choice, _) in enumerate(rows)]
    wanted = [is_wanted for _, is_wanted in rows]

    def walk(at: int) -> int:
        while at != NOTHING and not wanted[at]:
            at = parents[at]
        return at

    given_rows = np.array(parents, np.int64), np.array(wanted, np.bool_)
    assert nearest(*given_rows).tolist() == [walk(parent) for parent in parents]
    some = np.arange(0, len(rows), 3)
    assert nearest(*given_rows, some).tolist() == [walk(at) for at in parents[::3]]


def test_a_long_row_of_siblings_takes_few_rounds():
    num = 1 << 17
    starts = np.arange(num)
    ends = np.append(num + 1, starts[1:] + 1)
    threads = np.zeros(num, np.int32)
    assert set(enclosing(threads, starts, ends)[1:].tolist()) == {0}


def test_other_threads_enclose_nothing():
    threads = np.array([0, 0, 1, 1, 2], np.int32)
    starts, ends = np.array([0, 2, 1, 2, 0]), np.array([9, 4, 9, 4, 9])
    assert enclosing(threads, starts, ends).tolist() == [-1, 0, -1, 2, -1]


@pytest.mark.parametrize("wanted", [0, 1])
def test_what_nests_deep_is_no_walk_for_each(wanted):
    num = 1 << 16
    parents, rows = np.arange(-1, num - 1), np.arange(num)
    is_wanted = rows == 0 if wanted else np.zeros(num, np.bool_)
    found = nearest(parents, is_wanted, rows)
    assert set(found[1:].tolist()) == {0 if wanted else NOTHING}
