"""How many pairs of a query and a key does attention look at?

Closed forms in whole numbers. A query ``i`` sees the keys from ``i + shift - left`` to
``i + shift + right``. Causal is ``right = 0``; aligned top-left is ``shift = 0``, aligned
bottom-right is ``shift = keys - queries``.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Bounds", "Packed", "Span", "cross_pairs", "pairs", "self_pairs"]


class Span(NamedTuple):
    """How far a query sees; ``None`` is without end."""

    left: int | None = None
    right: int | None = None
    is_bottom_right: bool = False

    @property
    def is_full(self) -> bool:
        """Does every query see every key?"""
        return self.left is None and self.right is None


class Packed(NamedTuple):
    """Sequences packed one after another: how many, of which length in sum and at most."""

    num: int
    total: int
    longest: int

    @property
    def is_possible(self) -> bool:
        """Can so few sequences be so long together?"""
        return self.total <= self.num * self.longest


class Bounds(NamedTuple):
    """The least pairs there can be, those of equal lengths, and the most."""

    lowest: int
    equal: int
    highest: int


def pairs(queries: int, keys: int, span: Span) -> int:
    """Count the pairs of one sequence that are not masked."""
    shift = keys - queries if span.is_bottom_right else 0
    last = keys * queries
    if span.right is not None:
        last = _clipped_sum(shift + span.right + 1, queries, keys)
    first = 0 if span.left is None else _clipped_sum(shift - span.left, queries, keys)
    return last - first


def self_pairs(packed: Packed, span: Span) -> Bounds:
    """Bound the pairs of sequences that each look at themselves.

    The pairs of a sequence are convex in its length, so that equal lengths have the fewest,
    and as many as possible of the longest have the most.
    """

    def alone(length: int) -> int:
        return pairs(length, length, span)

    equal = _equal_pairs(packed, packed, span)
    num_longest, rest = divmod(packed.total, max(packed.longest, 1))
    return Bounds(equal, equal, num_longest * alone(packed.longest) + alone(rest))


def cross_pairs(queries: Packed, keys: Packed, span: Span) -> Bounds:
    """Bound the pairs of sequences whose queries and keys differ in number.

    From below by McCormick: ``(Q - q)(K - k) >= 0`` for lengths ``q`` and ``k`` up to ``Q``
    and ``K``, summed over the sequences. It is exact where all queries come alone, as in
    decoding. A mask is taken to leave each query its own key, ``q <= k``, if there are enough:
    what it hides of a sequence is then at most what it hides of ``q`` by ``q``.
    """
    full = queries.longest * keys.total + keys.longest * queries.total
    lowest = max(0, full - queries.num * queries.longest * keys.longest)
    highest = min(queries.longest * keys.total, keys.longest * queries.total)
    if not span.is_full:
        if span.left is not None and span.right is not None:
            highest = min(highest, queries.total * (span.left + span.right + 1))
        lowest = _masked_lowest(queries, keys, span, lowest)
    return Bounds(lowest, _equal_pairs(queries, keys, span), highest)


def _masked_lowest(queries: Packed, keys: Packed, span: Span, unmasked: int) -> int:
    if queries.total > keys.total:
        return 0
    own = self_pairs(queries, span)
    if span.left is not None or not span.is_bottom_right:
        return own.lowest
    return max(own.lowest, unmasked - self_pairs(queries, Span()).highest + own.highest)


def _equal_pairs(queries: Packed, keys: Packed, span: Span) -> int:
    """Count the pairs of sequences as equal as they can be, the longer with the longer."""
    if not queries.num:
        return 0
    query, longer_queries = divmod(queries.total, queries.num)
    key, longer_keys = divmod(keys.total, queries.num)
    both = min(longer_queries, longer_keys)
    either = max(longer_queries, longer_keys)
    between = (query + (longer_queries > both), key + (longer_keys > both))
    return (
        both * pairs(query + 1, key + 1, span)
        + (either - both) * pairs(*between, span)
        + (queries.num - either) * pairs(query, key, span)
    )


def _clipped_sum(first: int, count: int, most: int) -> int:
    """Add up ``first``, ``first + 1``, ..., ``count`` of them, each clipped to 0 to most."""

    def up_to(last: int) -> int:
        if last <= 0:
            return 0
        ramp = min(last, most)
        return ramp * (ramp + 1) // 2 + (last - ramp) * most

    return up_to(first + count - 1) - up_to(first - 1)
