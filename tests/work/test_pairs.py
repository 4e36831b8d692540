"""Pairs of queries and keys, against counting them one by one."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from traceparse.work.pairs import Packed, Span, cross_pairs, pairs, self_pairs


def one_by_one(queries: int, keys: int, span: Span) -> int:
    shift = keys - queries if span.is_bottom_right else 0
    seen = 0
    for query in range(queries):
        for key in range(keys):
            behind = query + shift - key
            is_left = span.left is None or behind <= span.left
            seen += is_left and (span.right is None or -behind <= span.right)
    return seen


_LENGTH = st.integers(0, 12)
_REACH = st.none() | st.integers(0, 14)
_SPANS = st.builds(Span, _REACH, _REACH, st.booleans())


@given(_LENGTH, _LENGTH, _SPANS)
def test_pairs_one_by_one(queries, keys, span):
    assert pairs(queries, keys, span) == one_by_one(queries, keys, span)


def test_pairs_by_hand():
    causal = Span(right=0)
    assert pairs(4, 6, Span()) == 24
    assert pairs(5, 5, causal) == 5 * 6 // 2
    assert pairs(3, 6, causal) == 1 + 2 + 3
    assert pairs(6, 3, causal) == 1 + 2 + 3 + 3 * 3
    assert pairs(3, 6, causal._replace(is_bottom_right=True)) == 4 + 5 + 6
    assert pairs(6, 3, causal._replace(is_bottom_right=True)) == 1 + 2 + 3
    assert pairs(5, 5, Span(left=1, right=0)) == 1 + 2 * 4


def _packed(lengths: list[int], slack: int) -> Packed:
    return Packed(len(lengths), sum(lengths), max(lengths, default=0) + slack)


@given(st.lists(_LENGTH, max_size=5), st.integers(0, 3), _SPANS)
def test_no_lengths_leave_the_bounds_of_self_attention(lengths, slack, span):
    bounds = self_pairs(_packed(lengths, slack), span)
    assert bounds.lowest == bounds.equal
    seen = sum(pairs(length, length, span) for length in lengths)
    assert bounds.lowest <= seen <= bounds.highest


@given(st.integers(1, 4), _LENGTH, _SPANS)
def test_equal_lengths_are_exact_if_they_are_the_longest(num, length, span):
    bounds = self_pairs(_packed([length] * num, 0), span)
    assert set(bounds) == {num * pairs(length, length, span)}


def test_bounds_of_self_attention_are_reached():
    # GIVEN 3 sequences, 9 in sum, 5 at most: 3 + 3 + 3 have the fewest, 5 + 4 + 0 the most
    assert self_pairs(Packed(3, 9, 5), Span()) == (27, 27, 41)
    assert self_pairs(Packed(3, 9, 5), Span(right=0)) == (18, 18, 25)
    assert self_pairs(Packed(2, 5, 4), Span()) == (4 + 9, 4 + 9, 16 + 1)


_BOTH = st.lists(st.tuples(_LENGTH, _LENGTH), max_size=5)


@given(_BOTH, st.integers(0, 2), st.integers(0, 2), _SPANS)
def test_no_lengths_leave_the_bounds_of_cross_attention(both, slack, more, span):
    # a query under a mask has a key of its own; else all is allowed
    assume(span.is_full or all(query <= key for query, key in both))
    queries = _packed([query for query, _ in both], slack)
    keys = _packed([key for _, key in both], more)
    bounds = cross_pairs(queries, keys, span)
    seen = sum(pairs(query, key, span) for query, key in both)
    assert bounds.lowest <= seen <= bounds.highest
    assert bounds.lowest <= bounds.equal <= bounds.highest


def test_bounds_under_a_mask_with_more_queries_than_keys():
    bounds = cross_pairs(Packed(2, 8, 6), Packed(2, 6, 5), Span(right=0, is_bottom_right=True))
    assert bounds == (0, 2 * (3 * 4 // 2), 36)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_decoding_is_exact(lengths):
    # GIVEN one query a sequence, which sees all keys
    queries = Packed(len(lengths), len(lengths), 1)
    bounds = cross_pairs(queries, _packed(lengths, 0), Span(None, 0, is_bottom_right=True))
    assert set(bounds) == {sum(lengths)}


def test_equal_lengths_of_cross_attention():
    # GIVEN 7 queries and 11 keys in 3 sequences: 3 by 4, 2 by 4, 2 by 3
    bounds = cross_pairs(Packed(3, 7, 4), Packed(3, 11, 6), Span())
    assert bounds.equal == 12 + 8 + 6
    assert cross_pairs(Packed(0, 0, 0), Packed(0, 0, 0), Span()) == (0, 0, 0)


def test_more_than_fits_is_not_possible():
    assert Packed(2, 6, 3).is_possible
    assert not Packed(2, 7, 3).is_possible
