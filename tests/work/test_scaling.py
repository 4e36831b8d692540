from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.errors import UsageError
from traceparse.work.calculator import calculate
from traceparse.work.model import Model
from traceparse.work.scaling import MODES, scale, scaled_batch


def test_megascale_from_3072_to_12288_gpus_is_strong_scaling_of_93_percent():
    """MegaScale (arXiv 2402.15627), table 2: 23.66 s, then 6.34 s, at the same batch."""
    base, most = scale([(12288, 6.34), (3072, 23.66)], "strong")
    assert (base.gpus, base.speedup, base.efficiency) == (3072, 1.0, 1.0)
    assert most.speedup == pytest.approx(3.732, abs=5e-4)
    assert most.efficiency == pytest.approx(0.933, abs=5e-4)


def test_korthikanti_530b_on_eight_times_the_gpus_is_weak_scaling_of_97_percent():
    """Section 6.3: 37.83 s on 280 GPUs, 39.15 s on 2240 with 8 times the batch."""
    _, most = scale([(280, 37.83), (2240, 39.15)], "weak")
    assert most.efficiency == pytest.approx(0.9663, abs=1e-4)
    assert most.speedup == pytest.approx(7.730, abs=5e-4)
    assert scaled_batch(280, 2240, 280, "weak") == 2240
    assert scaled_batch(280, 2240, 280, "strong") == 280


RUNS = st.dictionaries(st.integers(1, 4096), st.floats(1e-3, 1e3), min_size=2, max_size=6)


@given(RUNS, st.integers(1, 100), st.sampled_from(MODES))
def test_efficiency_is_the_ratio_of_throughputs_per_gpu(times, a_gpu, mode):
    """Whatever the mode, if the batch is the one that the mode is about."""
    pairs = list(times.items())
    base = min(times)
    batch = a_gpu * base
    model = Model(params=1_000)

    def each(gpus, step_s):
        run = calculate(
            model,
            convention="6nd",
            batch=scaled_batch(batch, gpus, base, mode),
            seq=7,
            gpus=gpus,
            step_s=step_s,
            peak_flop_per_s=1e12,
        )
        return run.tokens_per_s_per_gpu

    for row in scale(pairs, mode):
        ratio = each(row.gpus, row.step_s) / each(base, times[base])
        assert row.efficiency == pytest.approx(ratio)
        assert row.speedup == pytest.approx(ratio * row.gpus / base)


@given(RUNS, st.floats(0.1, 10), st.sampled_from(MODES))
def test_a_unit_of_time_and_an_order_change_nothing(times, factor, mode):
    pairs = list(times.items())
    rows = scale(pairs, mode)
    assert rows[0].speedup == rows[0].efficiency == 1.0
    assert [row.gpus for row in rows] == sorted(times)
    assert scale(pairs[::-1], mode) == rows
    slower = scale([(gpus, step_s * factor) for gpus, step_s in pairs], mode)
    for row, other in zip(rows, slower, strict=True):
        assert other.efficiency == pytest.approx(row.efficiency)


@given(RUNS)
def test_perfect_scaling_is_efficiency_1(times):
    base = min(times)
    strong = scale([(gpus, times[base] * base / gpus) for gpus in times], "strong")
    weak = scale([(gpus, times[base]) for gpus in times], "weak")
    for row in (*strong, *weak):
        assert row.efficiency == pytest.approx(1)
        assert row.speedup == pytest.approx(row.gpus / base)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "scaling compares runs on different numbers of GPUs; give two or more"),
        ([(8, 1.0)], "scaling compares runs on different numbers of GPUs; give two or more"),
        (
            [(8, 1.0), (16, 1.0), (8, 2.0)],
            "scaling compares runs on different numbers of GPUs; give two or more",
        ),
        ([(8, 0.0), (16, 1.0)], "step_s is 0.0; give a number above 0, and below 10^24"),
        ([(0, 1.0), (16, 1.0)], "gpus is 0; give a number above 0, and below 10^24"),
    ],
)
def test_what_cannot_be_compared_is_refused(pairs, message):
    with pytest.raises(UsageError) as caught:
        scale(pairs, "strong")
    assert str(caught.value) == message


def test_a_weak_batch_is_whole():
    with pytest.raises(UsageError) as caught:
        scaled_batch(3, 9, 8, "weak")
    assert str(caught.value) == (
        "weak scaling: a batch of 3 on 8 GPUs would be 3.38 on 9; give a batch, of the fewest "
        "GPUs, that is a whole number on all"
    )
