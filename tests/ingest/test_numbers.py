from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.ingest.numbers import LIMIT, MISSING, UNUSABLE, nanoseconds, unsigned

_MOST_US = 4 * 10**15  # in the year 2096


def _exact(text: str) -> int:
    with localcontext(prec=100):
        return int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_EVEN))


_NUMBERS = st.builds(
    lambda sign, whole, part: f"{sign}{whole}" + (f".{part}" if part else ""),
    st.sampled_from(["", "", "-"]),
    st.integers(0, _MOST_US),
    st.text("0123456789", max_size=40),
)


@given(st.lists(_NUMBERS, max_size=20))
def test_text_becomes_the_nanoseconds_that_decimal_arithmetic_says(texts):
    found = nanoseconds([text.encode() for text in texts]).values
    assert found.tolist() == [_exact(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1712195495519689.047", 1712195495519689047),  # a double is 250 ns off here
        ("5101149001776.005", 5101149001776005),
        ("154.33", 154330),
        ("7", 7000),
        ("12.0005", 12000),  # half to even, down
        ("12.0015", 12002),  # and up
        ("1.00149999999999999999999999999999999999", 1001),  # not 1.0015, half to even
        ("1e-05", 0),
        ("1.5e3", 1500000),
        ("1E+2", 100000),
        ('"12.5"', 12500),
        ("-3.25", -3250),
        ("", MISSING),
        ("null", MISSING),
        ('""', MISSING),
        ("NaN", UNUSABLE),
        ("Infinity", UNUSABLE),
        ("1.2.3", UNUSABLE),
        ("--5", UNUSABLE),
        ("5-5", UNUSABLE),
        ('"stream 7"', UNUSABLE),
        ("é", UNUSABLE),
        ("[1,\n2]", UNUSABLE),
        ("1e999999999", LIMIT),
        ("-1e999999999", -LIMIT),
        ("99999999999999999999", LIMIT),
        ("-9223372036854775808", -LIMIT),
        ("4700000000000000.5", LIMIT),  # beyond 2^62 ns
        ("1e-999999999", 0),
    ],
)
def test_odd_texts(text, expected):
    assert nanoseconds([text.encode()]).values.tolist() == [expected]
    alone_and_in_company = nanoseconds([b"1", text.encode(), b"2.5"]).values.tolist()
    assert alone_and_in_company == [1000, expected, 2500]


@pytest.mark.parametrize(
    ("texts", "whole_us"),
    [
        (["1", "2.0", "", "x"], True),
        (["1", "2.000"], False),  # three digits: the writer has nanoseconds
        (["1", "2.5"], False),
        (["1.0005"], True),  # rounds to a whole microsecond
        (["1.5e-3"], False),
        (["[\n1.5]"], True),
        ([], True),
    ],
)
def test_resolution(texts, whole_us):
    assert nanoseconds([text.encode() for text in texts]).whole_us is whole_us


def test_ids_survive_up_to_64_bits():
    odd = [2**64 - 1, 2**63, 0, "17", "0x1f", 5.0]
    assert unsigned(odd) == [2**64 - 1, 2**63, 0, 17, 31, 5]
    assert unsigned([2**64, -1, 1.5, True, None, "word", [1]]) == [None] * 7
