"""Change or chance: how often nothing is called something, and something is found."""

from __future__ import annotations

import numpy as np
import pytest

from traceparse.run.compare.bootstrap import Significance, Units, significance_of

NUM_TERMS = 7


def units(rows, counts=None):
    """Units of terms: the first column is their sum, as a span is."""
    terms = np.asarray(rows, float)
    sums = np.column_stack([terms.sum(axis=1), terms])
    return Units(sums, np.ones(len(sums)) if counts is None else np.asarray(counts, float))


def normal(random, num):
    return units(random.normal(1e6, 1e4, (num, NUM_TERMS)))


def skewed(random, num):
    return units(1e6 + 1e4 * random.lognormal(0, 1, (num, NUM_TERMS)))


def with_outliers(random, num):
    late = 1e5 * (random.random((num, NUM_TERMS)) < 0.1)
    return units(random.normal(1e6, 1e4, (num, NUM_TERMS)) + late)


def change(base, new):
    means = [(one.sums.sum(axis=0) / one.num_device_steps.sum())[0] for one in (base, new)]
    return means[1] - means[0]


def is_called(base, new):
    """Is zero outside of the interval of the whole; is any term significant?"""
    found = significance_of(base, new)
    return abs(change(base, new)) > found.half_width, any(found.significant)


@pytest.mark.parametrize(
    ("draw", "num_base", "num_new"),
    [
        (normal, 3, 3),
        (normal, 4, 4),
        (skewed, 4, 12),
        (skewed, 6, 6),
        (with_outliers, 10, 10),
    ],
)
def test_nothing_is_called_something_in_one_case_of_twenty_at_most(draw, num_base, num_new):
    """200 pairs of the same distribution: 10 are called changed if 5 % are.

    With 5 % of 200, 19 and more happen once in 300 times, so that 18 are allowed. (Three runs
    on each side are the fewest, of runs.)
    """
    random = np.random.default_rng(20_261_130)
    called = [is_called(draw(random, num_base), draw(random, num_new)) for _ in range(200)]
    whole, any_term = np.sum(called, axis=0)
    assert whole <= 18
    assert any_term <= 18


def test_at_many_steps_it_is_about_one_case_of_twenty():
    random = np.random.default_rng(3)
    called = [is_called(normal(random, 20), normal(random, 20)) for _ in range(200)]
    whole, any_term = np.sum(called, axis=0)
    assert 3 <= whole <= 18
    assert 1 <= any_term <= 18


@pytest.mark.parametrize(("num", "errors", "found_at_least"), [(4, 12, 180), (8, 5, 180)])
def test_something_is_found(num, errors, found_at_least):
    """One term longer by so many errors of its change: in 9 cases of 10 it is called so."""
    random = np.random.default_rng(7)
    shift = np.zeros(NUM_TERMS + 1)
    found = 0
    for _ in range(200):
        base, new = normal(random, num), normal(random, num)
        # one of 7 terms: its error is 1e4 * sqrt(2 / num)
        shift[[0, 3]] = errors * 1e4 * np.sqrt(2 / num) * np.array([np.sqrt(7), 1])
        moved = Units(new.sums + shift, new.num_device_steps)
        found += abs(change(base, moved)) > significance_of(base, moved).half_width
    assert found >= found_at_least


def test_the_term_that_changed_is_the_one_that_is_called():
    random = np.random.default_rng(1)
    base, new = normal(random, 8), normal(random, 8)
    shift = np.zeros(NUM_TERMS + 1)
    shift[[0, 3]] = 2e5
    found = significance_of(base, Units(new.sums + shift, new.num_device_steps))
    assert found.significant == (False, False, True, False, False, False, False)


def test_it_is_the_same_each_time():
    random = np.random.default_rng(1)
    base, new = normal(random, 8), normal(random, 9)
    assert significance_of(base, new) == significance_of(base, new)


def test_what_never_varies_is_known_for_sure():
    """0.1 + 0.2 has no place here: numbers alike are exactly so."""
    steady = units([[1e9 / 3] * NUM_TERMS] * 5)
    assert significance_of(steady, steady) == Significance(0.0, (False,) * NUM_TERMS)
    moved = units([[1e9 / 3] * 6 + [1e9 / 3 + 1]] * 4)
    assert significance_of(steady, moved) == Significance(0.0, (False,) * 6 + (True,))
    varying = normal(np.random.default_rng(1), 6)
    one_sided = significance_of(steady, varying)
    assert one_sided.half_width > 0
    assert all(one_sided.significant)


def test_the_interval_holds_the_truth_in_nineteen_of_twenty_cases():
    random = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        base = normal(random, 8)
        new = Units(normal(random, 12).sums * 1.1, np.ones(12))
        truth = 0.1 * 1e6 * NUM_TERMS
        held += abs(change(base, new) - truth) <= significance_of(base, new).half_width
    assert held >= 182


def test_steps_of_fewer_ranks_count_less():
    """A ratio of sums: twice the device-steps of each unit change no mean, nor the interval."""
    random = np.random.default_rng(9)
    rows = random.normal(1e6, 1e4, (6, NUM_TERMS))
    once, twice = units(rows), units(2 * rows, [2] * 6)
    other = normal(random, 6)
    assert significance_of(once, other).half_width == pytest.approx(
        significance_of(twice, other).half_width
    )


def test_many_units_are_drawn_in_portions():
    random = np.random.default_rng(2)
    base, new = normal(random, 3_000), normal(random, 3_000)
    error = np.sqrt(2 / 3_000) * 1e4 * np.sqrt(NUM_TERMS)
    assert significance_of(base, new).half_width == pytest.approx(1.96 * error, rel=0.1)
