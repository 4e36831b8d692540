"""Whole numbers that still add up, and rows beside each other."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from traceparse.run.compare.rows import Pair, paired, shared_out


@given(st.dictionaries(st.text(max_size=2), st.fractions(), min_size=1))
def test_parts_add_up_and_none_is_off_by_one(parts):
    total = round(sum(parts.values()))
    whole = shared_out(parts, total)
    assert sum(whole.values()) == total
    assert list(whole) == list(parts)
    assert all(abs(whole[name] - part) <= 1 for name, part in parts.items())


def test_the_largest_remainder_is_rounded_up():
    parts = {"a": Fraction(1, 3), "b": Fraction(5, 3), "c": Fraction(-1, 2)}
    assert shared_out(parts, 1) == {"a": 0, "b": 2, "c": -1}
    assert shared_out(parts, 2) == {"a": 0, "b": 2, "c": 0}


def test_pairs():
    found = paired({"a": 1, "b": 2}, {"b": 3, "c": 4})
    assert found == [Pair("a", 1, None), Pair("b", 2, 3), Pair("c", None, 4)]
    assert [pair.change for pair in found] == ["disappeared", None, "appeared"]
