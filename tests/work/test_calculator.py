"""Figures of papers, worked out from their inputs; all stored rows are in tests/contract."""

from __future__ import annotations

import math
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.errors import UsageError
from traceparse.work.calculator import Calculated, calculate, impossible
from traceparse.work.model import Model

A100 = 312e12
LLAMA3_8B = Model(
    layers=32, heads=32, head_dim=128, params=8_030_261_248, embedding_params=525_336_576
)


def of(model, **given) -> Calculated:
    return calculate(model, **({"gpus": 1, "peak_flop_per_s": 1e12} | given))


def test_llm_foundry_7b_on_128_h100():
    """Its benchmarking README: 1,340,830 tokens/s, 45.71 % of 989.5."""
    model = Model(params=6_658_859_008, layers=32, hidden=4096)
    run = of(
        model,
        convention="llm-foundry",
        seq=2048,
        gpus=128,
        tokens_per_s=1_340_830,
        peak_flop_per_s=989.5e12,
    )
    assert run.flop_per_token == 43_174_379_520
    assert run.mfu == run.hfu == pytest.approx(0.4571, abs=5e-5)
    assert run.achieved_flop_per_s_per_gpu == pytest.approx(452.26e12, rel=1e-4)
    assert run.model_flop_per_step is None  # of how large a batch?


def test_korthikanti_530b_on_280_a100():
    """Tables 3 and 5: 37.83 s, MFU 56.0 %, HFU 57.0 %."""
    model = Model(layers=105, hidden=20480, vocab=51200)
    run = of(
        model,
        convention="megatron",
        batch=280,
        seq=2048,
        gpus=280,
        step_s=37.83,
        peak_flop_per_s=A100,
        recompute="selective",
    )
    assert run.mfu == pytest.approx(0.560, abs=5e-4)
    assert run.hfu == pytest.approx(0.570, abs=5e-4)
    assert run.tokens_per_s == pytest.approx(280 * 2048 / 37.83)
    assert run.model_flop_per_step == 280 * 2048 * run.flop_per_token
    assert run.hardware_flop_per_step == 280 * 2048 * 3_282_881_740_800


def test_llama3_8b_is_58_percent_with_embeddings_and_55_without():
    """torchtitan, docs/performance.md, on 64 A100: 2,973 tokens/s a GPU."""

    def mfu(convention):
        speed = {"tokens_per_s": 2973, "per_gpu": True, "peak_flop_per_s": A100}
        return of(LLAMA3_8B, convention=convention, seq=8192, gpus=64, **speed).mfu

    assert mfu("palm") == pytest.approx(0.582, abs=5e-4)
    assert mfu("torchtitan") == pytest.approx(0.552, abs=5e-4)


def test_palm_540b_with_and_without_attention():
    """PaLM, section 4.1: 238.3K tokens/s on 6144 TPU v4, 46.2 % and 45.7 %."""
    model = Model(params=540_350_000_000, layers=118, heads=48, head_dim=256)

    def mfu(convention):
        speed = {"tokens_per_s": 238_300, "peak_flop_per_s": 275e12}
        return of(model, convention=convention, seq=2048, gpus=6144, **speed).mfu

    assert mfu("palm") == pytest.approx(0.462, abs=5e-4)
    assert mfu("palm-noattn") == pytest.approx(0.457, abs=5e-4)


def test_gpt3_takes_34_days_and_deepseek_v3_5_576_million_dollars():
    """Narayanan et al., section 5.1: 1024 A100 at 140 TFLOP/s; DeepSeek-V3, table 1."""
    gpt = of(
        Model(params=175_000_000_000),
        convention="6nd",
        recompute="full",
        gpus=1024,
        tokens_per_s=1024 * 140e12 / (8 * 175e9),
        peak_flop_per_s=A100,
    )
    assert gpt.achieved_flop_per_s_per_gpu == pytest.approx(140e12)
    hours = gpt.gpu_hours_per_billion_tokens * 300
    assert hours / 1024 / 24 == pytest.approx(34, abs=0.2)
    deepseek = of(
        Model(params=37_000_000_000),
        convention="6nd",
        gpus=2048,
        tokens_per_s=14.8e12 / (2.788e6 / 2048 * 3600),
        usd_per_gpu_hour=2.0,
    )
    assert deepseek.usd_per_million_tokens is not None
    assert deepseek.usd_per_million_tokens * 14.8e6 == pytest.approx(5.576e6)
    assert deepseek.gpu_hours_per_billion_tokens * 14_800 == pytest.approx(2.788e6)


def test_throughput_is_that_of_all_gpus_unless_it_says_otherwise():
    model = Model(params=1_000_000)
    whole = of(model, convention="6nd", gpus=8, tokens_per_s=800)
    each = of(model, convention="palm-noattn", gpus=8, tokens_per_s=100, per_gpu=True)
    assert whole == each
    assert (each.tokens_per_s, each.tokens_per_s_per_gpu) == (800, 100)
    assert each.convention == "6nd"
    assert each.usd_per_million_tokens is None
    assert of(model, convention="6nd", tokens_per_s=1, usd_per_gpu_hour=0).mfu > 0


SIZES = st.integers(1, 1000)
SECONDS = st.floats(1e-3, 1e3)


@given(SIZES, SIZES, SIZES, SECONDS, st.floats(0.01, 100))
def test_utilization_is_inverse_to_the_time_of_a_step(batch, seq, gpus, step_s, factor):
    def run(seconds):
        job = {"batch": batch, "seq": seq, "gpus": gpus, "usd_per_gpu_hour": 3.0}
        return of(LLAMA3_8B, convention="palm", step_s=seconds, recompute="full", **job)

    one, other = run(step_s), run(step_s * factor)
    assert other.mfu * factor == pytest.approx(one.mfu)
    assert other.hfu / other.mfu == pytest.approx(4 / 3)
    assert other.usd_per_million_tokens == pytest.approx(one.usd_per_million_tokens * factor)
    # what the job costs is what its GPUs cost in that time
    hours = one.gpu_hours_per_billion_tokens * batch * seq / 1e9
    assert hours == pytest.approx(gpus * step_s / 3600)


@given(st.floats(1, 1e6), st.integers(1, 4096), st.floats(1e12, 1e16))
def test_hfu_of_the_peak_is_what_is_achieved(tokens_per_s, gpus, peak):
    run = of(
        LLAMA3_8B,
        convention="palm",
        seq=4096,
        recompute="full",
        gpus=gpus,
        tokens_per_s=tokens_per_s,
        peak_flop_per_s=peak,
    )
    assert run.achieved_flop_per_s_per_gpu == pytest.approx(run.hfu * peak)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give either the seconds of a step or the tokens per second"),
        (
            {"step_s": 1.0, "tokens_per_s": 1.0},
            "give either the seconds of a step or the tokens per second",
        ),
        (
            {"step_s": 1.0},
            "the seconds of a step need a batch and a seq; give --batch and --seq",
        ),
        (
            {"step_s": 1.0, "batch": 8},
            "the seconds of a step need a batch and a seq; give --batch and --seq",
        ),
        ({"step_s": 0.0}, "step_s is 0.0; give a number above 0, and below 10^24"),
        (
            {"tokens_per_s": math.nan},
            "tokens_per_s is nan; give a number above 0, and below 10^24",
        ),
        (
            {"tokens_per_s": math.inf},
            "tokens_per_s is inf; give a number above 0, and below 10^24",
        ),
        (
            {"tokens_per_s": 1e-320},
            "tokens_per_s is 1e-320; give a number above 0, and below 10^24",
        ),
        (
            {"step_s": 1.0, "batch": 10**400},
            f"batch is 1{'0' * 39}; give a number above 0, and below 10^24",
        ),
        ({"tokens_per_s": 1.0, "gpus": 0}, "gpus is 0; give a number above 0, and below 10^24"),
        ({"tokens_per_s": 1.0, "seq": -1}, "seq is -1; give a number above 0, and below 10^24"),
        (
            {"tokens_per_s": 1.0, "peak_flop_per_s": -1.0},
            "peak_flop_per_s is -1.0; give a number above 0, and below 10^24",
        ),
        (
            {"tokens_per_s": 1.0, "usd_per_gpu_hour": -2.0},
            "price is -2.0; give USD for a GPU-hour, 0 or more",
        ),
        (
            {"tokens_per_s": 1.0, "usd_per_gpu_hour": math.nan},
            "price is nan; give USD for a GPU-hour, 0 or more",
        ),
    ],
)
def test_numbers_that_say_nothing_are_refused(given, message):
    with pytest.raises(UsageError) as caught:
        of(Model(params=1), convention="6nd", **given)
    assert str(caught.value) == message


def test_the_largest_and_the_smallest_numbers_do_not_overflow():
    run = of(
        Model(params=10**16, layers=10**16, heads=10**16, head_dim=10**16),
        convention="palm",
        batch=10**23,
        seq=10**23,
        step_s=1e-23,
        usd_per_gpu_hour=1e23,
    )
    assert all(
        0 < value < math.inf
        for name, value in asdict(run).items()
        if isinstance(value, int | float)
    )


def test_more_than_the_peak_or_than_any_matmul_cannot_be():
    def run(tokens_per_s):
        return of(Model(params=10**9), convention="6nd", tokens_per_s=tokens_per_s)

    assert impossible(run(1_000_000 / 6000)) is None  # the peak itself
    assert impossible(run(167)) == (
        "cannot be: wrong convention or wrong device, as 1.002 TFLOP/s per GPU exceed the "
        "peak, 1"
    )
    assert impossible(run(100), 0.61e12) is None
    assert impossible(run(110), 0.61e12) == (
        "cannot be: wrong convention or wrong device, as 0.66 TFLOP/s per GPU exceed the "
        "fastest matrix product that was measured on it, 0.61"
    )
