from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse import intervals
from traceparse.intervals import (
    EMPTY,
    Intervals,
    clip,
    difference,
    from_spans,
    gaps,
    intersection,
    length,
    merged,
    union,
)

_SPANS = st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 9)), max_size=8)


def _make(spans: list[tuple[int, int]]) -> Intervals:
    starts = np.array([start for start, _ in spans], np.int64)
    return from_spans(starts, starts + np.array([last for _, last in spans], np.int64))


def _points(spans: list[tuple[int, int]]) -> set[int]:
    return {point for start, last in spans for point in range(start, start + last)}


def _inside(found: Intervals) -> set[int]:
    """Return the points of a set, after checking that it is in normal form."""
    flat = np.stack([found.starts, found.ends], axis=1).ravel()
    assert np.all(flat[1:] > flat[:-1])
    return {p for start, end in zip(*found, strict=True) for p in range(start, end)}


@given(_SPANS)
def test_spans_cover_what_brute_force_says(spans):
    found = _make(spans)
    assert _inside(found) == _points(spans)
    assert length(found) == len(_points(spans))


@given(_SPANS)
def test_spans_may_be_taken_two_at_a_time(spans):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "_AT_ONCE", 2)
        assert _inside(_make(spans)) == _points(spans)


@given(_SPANS, st.integers(1, 8))
def test_spans_in_order_are_merged_part_by_part(spans, at_once):
    ordered = sorted(spans)
    parts = [ordered[at : at + at_once] for at in range(0, len(ordered), at_once)]
    sets = list(
        merged(
            (np.array([s for s, _ in part], np.int64), np.array([s + d for s, d in part]))
            for part in parts
        )
    )
    whole = Intervals(*(np.concatenate(sides) for sides in zip(*sets, strict=True)))
    assert _inside(whole) == _points(spans)


@given(_SPANS, _SPANS)
def test_set_operations_are_those_of_sets_of_points(one, other):
    a, b = _make(one), _make(other)
    assert _inside(union(a, b)) == _points(one) | _points(other)
    assert _inside(intersection(a, b)) == _points(one) & _points(other)
    assert _inside(difference(a, b)) == _points(one) - _points(other)


@given(_SPANS, st.integers(-35, 35), st.integers(-35, 35))
def test_clip_and_gaps_share_a_window(spans, start, end):
    window = set(range(start, end))
    assert _inside(clip(_make(spans), start, end)) == _points(spans) & window
    assert _inside(gaps(_make(spans), start, end)) == window - _points(spans)


def test_touching_spans_are_one_and_empty_ones_none():
    found = _make([(0, 5), (5, 5), (20, 0)])
    assert (found.starts.tolist(), found.ends.tolist()) == ([0], [10])
    assert length(EMPTY) == 0


def test_times_of_this_century_do_not_overflow():
    now = 1_800_000_000_000_000_000
    assert length(_make([(now, 5), (now + 3, 5)])) == 8


def test_spans_that_are_a_set_are_not_copied():
    starts, ends = np.array([1, 5, 9]), np.array([3, 6, 12])
    found = from_spans(starts, ends)
    assert found.starts is starts
    assert found.ends is ends
