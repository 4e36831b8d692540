"""Numbers to text and back."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (1_282_726_144, "1,282.7 ms"),
        (1_282_750_000, "1,282.8 ms"),  # half up
        (3_600_000_000_000, "3,600,000.0 ms"),
        (99_999_999, "100.000 ms"),
        (7_505_110, "7.505 ms"),
        (20, "0.000020 ms"),
        (0, "0 ms"),
        (-1_282_726_144, "-1,282.7 ms"),
        (None, "–"),
    ],
)
def test_nanoseconds_are_written_in_milliseconds(ns, text):
    assert units.format_ns(ns) == text


def test_a_table_writes_all_its_times_with_the_same_decimals():
    assert [units.ms_decimals(ns) for ns in (99_999, 100_000, 99_999_999, 100_000_000)] == [
        6,
        3,
        3,
        1,
    ]
    assert units.format_ms(1_234_567, 1) == "1.2"
    assert units.format_ms(1_234_567, 3) == "1.235"
    assert units.format_ms(49_999, 1) == "0.0"
    assert units.format_ms(0, 3) == "0"
    assert units.format_ms(None) == "–"


def test_times_beyond_a_double_are_exact():
    assert units.format_ms(9_007_199_254_740_993, 6) == "9,007,199,254.740993"


@given(st.integers(-(10**18), 10**18), st.sampled_from([1, 3, 6]))
def test_written_milliseconds_are_off_by_half_a_digit_at_most(ns, decimals):
    digits = units.format_ms(ns, decimals).replace(",", "").replace(".", "")
    unit = 10 ** (6 - decimals)
    written = 0 if digits == "0" else int(digits) * unit
    assert 2 * abs(written - ns) <= unit


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (1, 3, "33.3%"),
        (2, 3, "66.7%"),
        (1, 1, "100.0%"),
        (1, 100_000, "0.0%"),
        (0, 5, "0%"),
        (15, 1, "1,500.0%"),
        (0, 0, "–"),
        (None, 5, "–"),
        (5, None, "–"),
    ],
)
def test_shares_are_written_in_percent(part, whole, text):
    assert units.format_percent(part, whole) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.1234, "12.3%"), (1.0, "100.0%"), (0.0, "0%"), (-1e-5, "0.0%"), (None, "–")],
)
def test_ratios_are_written_in_percent(ratio, text):
    assert units.format_ratio(ratio) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0"),
        (20, "20 ns"),
        (99, "99 ns"),
        (100, "0.1 us"),
        (80_364, "80.4 us"),
        (1_300_000, "1.3 ms"),
        (18_000_000_000_000, "18,000.0 s"),
    ],
)
def test_durations_of_any_size_have_a_fitting_unit(ns, text):
    assert units.format_duration(ns) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (523_412_345, "523.4 MB"),
        (12_345, "0.012 MB"),
        (9_999_999, "10.000 MB"),
        (0, "0 MB"),
        (None, "–"),
    ],
)
def test_bytes_are_written_in_decimal_megabytes(count, text):
    assert units.format_bytes(count) == text


def test_counts_have_their_thousands_apart():
    assert units.format_count(1_234_567) == "1,234,567"
    assert units.format_count(0) == "0"
    assert units.format_count(None) == "–"


def test_a_count_goes_with_its_word():
    assert units.format_number_of(1, "rank") == "1 rank"
    assert units.format_number_of(0, "rank") == "0 ranks"
    assert units.format_number_of(1_024, "rank") == "1,024 ranks"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((0, "0"), (4_096, "4,096"), (99_999, "99,999"), (100_000, "0.1 M")),
        *((1_234_567, "1.2 M"), (999_940_000, "999.9 M"), (999_950_000, "1.0 B")),
        *((8_030_000_000, "8.0 B"), (999_949_999_999, "999.9 B"), (10**12, "1.0 T")),
        (10**16, "10,000.0 T"),
    ],
)
def test_amounts_of_any_size(count, text):
    assert units.format_amount(count) == text


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([0, 1, 2, 5], "0-2, 5"),
        ([3], "3"),
        ([0, 1], "0-1"),
        ([], "none"),
        (range(10_000), "0-9999"),
    ],
)
def test_ranks_are_written_as_ranges(ranks, text):
    assert units.rank_ranges(ranks) == text


def test_many_scattered_ranks_are_counted_not_listed():
    text = units.rank_ranges(range(0, 2_000, 2))
    assert text.startswith("0, 2, 4, ")
    assert text.endswith(", ... and 983 more")
    assert text.count(",") == 17


def test_runs_of_any_length_are_not_counted_through():
    runs = [range(2, 10**18), range(10**18 + 1, 10**18 + 2)]
    assert units.number_ranges(runs) == "2-999999999999999999, 1000000000000000001"
    many = [range(n, n + 10**15) for n in range(1, 10**18, 10**17)]
    assert units.number_ranges(many).endswith("... and 9,000,000,000,000,000 more")


@given(st.sets(st.integers(0, 100_000), max_size=200))
def test_written_ranks_are_short_and_lose_none(ranks):
    text = units.rank_ranges(sorted(ranks))
    assert len(text) <= 80
    listed, _, rest = text.partition("... and ")
    runs = [run.split("-") for run in listed.strip(", ").split(", ") if run != "none"]
    shown = {rank for run in runs for rank in range(int(run[0]), int(run[-1]) + 1)}
    assert shown <= ranks
    assert len(shown) + int(rest.removesuffix(" more").replace(",", "") or 0) == len(ranks)


@pytest.mark.parametrize(
    ("flop", "text"),
    [
        (989.4e12, "989.4"),
        (1_234_567 * 10**12, "1,234,567.0"),
        (9.99e12, "9.990"),
        (5e10, "0.050"),
        (4e6, "0.000004"),
        (0, "0"),
        (None, "–"),
    ],
)
def test_flop_are_written_in_units_of_ten_to_the_twelve(flop, text):
    assert units.format_tflop(flop) == text


def test_rates_have_their_unit():
    assert units.format_flop_per_s(989.4e12) == "989.4 TFLOP/s"
    assert units.format_flop_per_s(None) == "–"


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (1234.5, "$1,234.50"),
        (0.12345, "$0.123"),
        (0.0012345, "$0.0012"),
        (6.6e-8, "$0.000000066"),
        (0.0, "$0"),
        (None, "–"),
    ],
)
def test_money_is_written_with_cents_and_below_where_they_matter(usd, text):
    assert units.format_usd(usd) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (190_272.0, "190,272"),
        (1000, "1,000"),
        (999.96, "1000"),
        (58.2, "58.2"),
        (0.18686, "0.1869"),
        (0.0, "0"),
        (-1234.5, "-1,234"),
        (1.5e16, "15,000,000,000,000,000"),
    ],
)
def test_figures_have_four_digits_or_all_before_the_point(value, text):
    assert units.format_figure(value) == text


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([0], "0"),
        (range(8), "0-7"),
        ([0, 8, 16], "0,8,16"),
        ([0, 1, 2, 5, 7, 8], "0-2,5,7-8"),
        (range(10_000), "0-9999"),
        ([(1 << 20) - 1], "1048575"),
    ],
)
def test_ranges_are_written_and_read_in_full(ranks, text):
    assert units.format_ranges(ranks) == text
    assert units.parse_ranges(text) == tuple(ranks)
    assert sum(map(len, units.parse_runs(text))) == len(ranks)


@given(st.sets(st.integers(0, 99), min_size=1))
def test_any_ranks_come_back(ranks):
    assert units.parse_ranges(units.format_ranges(sorted(ranks))) == tuple(sorted(ranks))


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "-", "1-", "-1", "0-2, 5", " 0", "0\n", "none", "a", "\u0661"),
        *("5-3", "5-5", "0-2,3", "2,1", "1,1", "0-4,2-6", "007", "0-3,", "1--2", "1-2-3"),
        *("1048576", "0-1048576", "0-9999999", "99999999999999999999", "0-3,1e3"),
        ",".join(["0-1048575"] * 50_000),
    ],
)
def test_what_is_no_ranges_is_refused_in_one_short_line(text):
    with pytest.raises(ValueError, match="no ascending ranges of ranks") as caught:
        units.parse_ranges(text)
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, units.UNKNOWN),
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (24_576, "24.6 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (16_777_216, "16.8 MB"),
        (5_000_000_000_000, "5,000.0 GB"),
    ],
)
def test_sizes_have_one_to_three_digits_before_the_point(count, text):
    assert units.format_size(count) == text


@pytest.mark.parametrize(
    ("a_step", "lost", "text"),
    [
        (10.0, 0.5, "$0.500 a step"),
        (1.0, None, f"{units.UNKNOWN} a step"),
        (0.0, 0.0, "$0 a step"),
        (None, 0.5, "$0.500 a step"),
        (0.0075, 0.0009, "$0.900 a thousand steps"),
        (7.5e-6, 9.4e-7, "$0.940 a million steps"),
    ],
)
def test_money_is_told_of_so_many_steps_that_they_cost_a_dollar(a_step, lost, text):
    assert units.per_steps(a_step).text(lost) == text
