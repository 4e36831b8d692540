"""HFU, MFU and their parts, against numbers worked out by hand and as properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.run.conftest import A100, H100, Maker, renamed
from tests.run.test_peaks import said

AT_PEAK = 989_400  # FLOP a nanosecond of an H100 in bf16
FP8_AT_PEAK = 1_978_900


def shares(waterfall) -> dict[str, float]:
    return {term["name"]: term["ratio"] for term in waterfall}


def test_three_kernels_worked_out_by_hand(make, three_kernels):
    report = make.report(three_kernels)
    use = report.utilization
    assert use["executed_flop"] == 400 * AT_PEAK
    assert use["recompute_flop"] == 100 * AT_PEAK
    assert use["model_flop"] == 300 * AT_PEAK
    assert use["achieved_flop_per_s"] == 400 * AT_PEAK / 1_000e-9
    assert (use["hfu"], use["mfu"], use["mfu_source"]) == (0.4, 0.3, "estimated")
    assert use["waterfall"] == [
        {"name": "idle", "ratio": 0.15},
        {"name": "exposed_copy", "ratio": 0.05},
        {"name": "exposed_comm", "ratio": 0.1},
        {"name": "other_kernels", "ratio": 0.1},
        {"name": "matmul_inefficiency", "ratio": 0.2},
        {"name": "recompute", "ratio": 0.1},
        {"name": "mfu", "ratio": 0.3},
    ]
    assert use["by_dtype"] == [
        {
            "dtype": "bf16",
            "executed_flop": 400 * AT_PEAK,
            "peak_flop_per_s": 989.4e12,
            "utilization_ratio": 0.4,
        }
    ]
    assert use["efficiency"] == {
        "model_over_executed": 0.75,
        "kernel_efficiency": 400 / 700,
        "parallel_efficiency": 0.7,
    }
    assert use["bounds"] == {"executed_flop": [400 * AT_PEAK] * 2, "hfu": [0.4, 0.4]}
    assert report.run.reference_dtype == "bf16"
    (device,) = report.devices
    assert device.utilization == use
    (step,) = device.steps
    assert (step.hfu, step.mfu, step.waterfall) == (0.4, 0.3, use["waterfall"])
    assert (step.executed_flop, step.model_flop) == (400 * AT_PEAK, 300 * AT_PEAK)


def test_data_types_are_weighed_by_their_own_peaks(make):
    step = make.step(
        1,
        make.times(compute=1_000),
        make.work("bf16", 200 * AT_PEAK, 100 * AT_PEAK),
        make.work("fp8", 300 * FP8_AT_PEAK),
        counted=900,
    )
    report = make.report(make.digest(0, make.device(step)))
    use = report.utilization
    assert (use["hfu"], use["mfu"]) == (0.5, 0.4)
    assert {row["dtype"]: row["utilization_ratio"] for row in use["by_dtype"]} == {
        "fp8": 0.3,
        "bf16": 0.2,
    }
    assert report.run.reference_dtype == "fp8"


def test_of_two_types_with_as_many_flop_the_slower_one_is_the_reference(make):
    step = make.step(
        1, make.times(compute=9), make.work("fp8", 1_000), make.work("bf16", 1_000)
    )
    assert make.report(make.digest(0, make.device(step))).run.reference_dtype == "bf16"


def test_the_run_is_over_the_steps_of_its_summary(make):
    def steps(flop):
        return (
            make.step(1, make.times(compute=100), make.work(flop=flop * AT_PEAK), counted=100),
            make.step(2, make.times(idle=900), make.work(flop=7), counted=0, open_ended=True),
        )

    report = make.report(
        *(make.digest(rank, make.device(*steps(flop)), world_size=2) for rank, flop in
          ((0, 40), (1, 20)))
    )  # fmt: skip
    assert report.summary.num_device_steps == 2
    use = report.utilization
    assert use["executed_flop"] == 60 * AT_PEAK
    assert use["hfu"] == 0.3
    assert use["achieved_flop_per_s"] == 60 * AT_PEAK / 200e-9  # of each device
    assert [device.utilization["hfu"] for device in report.devices] == [0.4, 0.2]
    assert report.devices[0].steps[1].hfu == pytest.approx(7 / AT_PEAK / 900)


def test_a_step_without_time_has_work_and_no_rate(make):
    step = make.step(1, None, make.work(flop=10), counted=None)
    full = make.step(2, make.times(compute=10), make.work(flop=10), counted=1)
    report = make.report(make.digest(0, make.device(step, full)))
    first = report.devices[0].steps[0]
    assert (first.executed_flop, first.achieved_flop_per_s, first.hfu) == (10, None, None)
    assert first.waterfall is None
    assert report.utilization["executed_flop"] == 10


def test_model_flop_of_the_whole_job_are_divided_among_its_devices(make, three_kernels):
    told = make.digest(0, *three_kernels.devices, world_size=4)
    report = make.report(told, model_flop_per_step=4 * 200 * AT_PEAK)
    use = report.utilization
    assert (use["model_flop"], use["mfu"], use["mfu_source"]) == (
        200 * AT_PEAK,
        0.2,
        "declared",
    )
    assert shares(use["waterfall"])["recompute"] == pytest.approx(0.2)
    assert report.run.conventions == {"model_flop": "given"}


def test_model_flop_are_per_device_where_a_rank_has_several(make):
    step = make.step(1, make.times(compute=100), make.work(flop=50 * AT_PEAK), counted=80)
    digest = make.digest(0, make.device(step), make.device(step, device=1))
    use = make.report(digest, model_flop_per_step=80 * AT_PEAK).utilization
    assert (use["model_flop"], use["mfu"], use["hfu"]) == (80 * AT_PEAK, 0.4, 0.5)


def test_model_flop_that_do_not_divide_are_rounded_only_when_shown(make):
    step = make.step(1, make.times(compute=100), make.work(flop=50 * AT_PEAK), counted=80)
    digest = make.digest(0, make.device(step), world_size=3)
    report = make.report(digest, renamed(digest, 1), model_flop_per_step=10)
    assert report.devices[0].steps[0].model_flop == 3
    assert report.utilization["model_flop"] == 7  # 2 of 3 ranks
    assert report.utilization["mfu"] == pytest.approx(10 / 3 / AT_PEAK / 100, rel=1e-15)


def test_params_and_tokens_are_six_nd(make, three_kernels):
    report = make.report(three_kernels, params=1e6, tokens_per_step=24.735)
    assert report.utilization["model_flop"] == round(6 * 24.735 * 1e6)
    assert report.run.conventions == {"causal_attention": "half", "model_flop": "6nd"}


def test_what_ran_counts_before_declared_recomputation(make, three_kernels):
    report = make.report(three_kernels, params=1e6, tokens_per_step=20, recompute="full")
    assert report.utilization["hfu"] == 0.4


def test_without_shapes_hfu_is_that_of_the_declared_hardware_flop(make):
    step = make.step(1, make.times(compute=1_000), told=False)
    digest = make.digest(0, make.device(step))
    n, d = 1_000, 32_980  # 6ND takes 200 ns at the peak
    asked = {"params": n, "tokens_per_step": d, "peak": {"bf16": 989.4e12}}
    report = make.report(digest, **asked)
    use = report.utilization
    assert (use["mfu"], use["hfu"], use["executed_flop"]) == (0.2, None, None)
    full = make.report(digest, **asked, recompute="full")
    assert said(full)["flop_unknown"] == [
        "the traces of rank 0 tell no operators with shapes: HFU is that of the declared 8ND, "
        "and the waterfall is unknown"
    ]
    use = full.utilization
    assert use["hfu"] == pytest.approx(0.2 * 4 / 3)
    assert (use["executed_flop"], use["waterfall"]) == (None, None)
    assert report.run.reference_dtype == "bf16"
    assert said(report) == {
        "flop_unknown": [
            "the traces of rank 0 tell no operators with shapes, so FLOP, HFU and the "
            "waterfall are unknown: profile with record_shapes=True, which `traceparse "
            "capture` does"
        ],
        "reference_dtype_assumed": [
            "no trace tells in which data type work ran: model FLOP are measured against the "
            "one peak that was given, of bf16"
        ],
    }


def test_without_shapes_nothing_is_guessed(make):
    step = make.step(1, make.times(compute=1_000), told=False)
    report = make.report(make.digest(0, make.device(step)))
    use = report.utilization
    assert {name: value for name, value in use.items() if value is not None} == {}
    assert report.roofline is None
    assert report.run.conventions is None
    assert set(said(report)) == {"flop_unknown", "model_flop_unknown"}
    report = make.report(make.digest(0, make.device(step)), model_flop_per_step=1e9)
    assert set(said(report)) == {"flop_unknown", "reference_dtype_unknown"}
    assert (report.utilization["model_flop"], report.utilization["mfu"]) == (10**9, None)


def test_one_rank_without_shapes_leaves_the_run_unknown_and_is_named(make):
    step = make.step(1, make.times(compute=100), make.work(flop=AT_PEAK), counted=1)
    silent = make.step(1, make.times(compute=100), told=False)
    report = make.report(
        make.digest(0, make.device(step), world_size=2),
        make.digest(1, make.device(silent), world_size=2),
    )
    assert report.utilization["executed_flop"] is None
    assert report.devices[0].utilization["hfu"] == 0.01
    assert said(report)["flop_unknown"][0].startswith("the traces of rank 1 tell no operators")


def test_what_capture_recorded_is_used_if_all_ranks_agree(make, three_kernels):
    def ranks(*facts):
        return [
            make.digest(rank, *three_kernels.devices, world_size=2, facts=each)
            for rank, each in enumerate(facts)
        ]

    fact = {"model_flop_per_step": 2 * 100 * AT_PEAK}
    report = make.report(*ranks(fact, fact))
    use = report.utilization
    assert (use["mfu"], use["mfu_source"]) == (0.1, "counted")
    assert report.run.conventions == {"model_flop": "counted"}
    report = make.report(*ranks(fact, {"model_flop_per_step": 10}))
    assert report.utilization["mfu_source"] == "estimated"
    assert said(report)["facts_disagree"] == [
        f"the traces disagree on model_flop_per_step ({200 * AT_PEAK:,}, 10), so it is not used"
    ]
    facts = {"params": 1_000, "tokens_per_step": 500}
    use = make.report(*ranks(facts, {})).utilization
    assert (use["model_flop"], use["mfu_source"]) == (3_000_000, "counted")
    odd = {"model_flop_per_step": True, "params": "x", "tokens_per_step": -1}
    assert make.report(*ranks(odd, odd)).utilization["mfu_source"] == "estimated"
    use = make.report(*ranks(fact, fact), model_flop_per_step=2 * AT_PEAK).utilization
    assert use["mfu_source"] == "declared"


def test_what_declared_flop_rest_on_is_said(make):
    step = make.step(None, make.times(compute=100), make.work(flop=AT_PEAK), counted=90)
    digest = make.digest(0, make.device(step), world_size=None)
    found = said(make.report(digest, model_flop_per_step=AT_PEAK))
    assert found["world_size_assumed"] == [
        "declared model FLOP are divided among the ranks that have a trace, as no trace tells "
        "the world size"
    ]
    assert found["one_step_assumed"] == [
        "declared model FLOP are of one step, and without step markers the whole window counts "
        "as one"
    ]


def test_fp32_that_may_be_tf32_has_two_hfus(make):
    # 670 FLOP/ns... an H100 does 67,000 FLOP a nanosecond in fp32, 494,700 in tf32
    flop = 67_000 * 494_700
    step = make.step(
        1,
        make.times(compute=1_000_000),
        make.work("fp32", flop, maybe_tf32=flop),
        counted=900_000,
    )
    report = make.report(make.digest(0, make.device(step)))
    use = report.utilization
    assert use["hfu"] == 0.4947
    assert use["bounds"]["hfu"] == [0.067, 0.4947]
    assert said(report) == {
        "tf32_unknown": [
            "100.0% of the FLOP are fp32 that may have run as tf32, which kernel names do not "
            "tell: HFU is 49.5% against the peak of fp32, which is used, and 6.7% against that "
            "of tf32"
        ]
    }
    host = make.digest(0, make.device(step, device="cpu"))
    assert said(make.report(host, peak={"fp32": 67e12})) == {}


def test_bounded_counts_have_their_interval(make):
    step = make.step(
        1,
        make.times(compute=100),
        make.work("bf16", 20 * AT_PEAK, bounds=(10 * AT_PEAK, 50 * AT_PEAK)),
        counted=90,
    )
    report = make.report(make.digest(0, make.device(step)))
    assert report.utilization["bounds"] == {
        "executed_flop": [10 * AT_PEAK, 50 * AT_PEAK],
        "hfu": [0.1, 0.5],
    }
    assert said(report)["flop_bounded"][0].startswith(
        "the shapes only bound the executed FLOP, to 9,894,000 to 49,470,000"
    )


def test_kernels_without_operator_make_lower_bounds(make):
    step = make.step(1, make.times(compute=100), make.work(flop=1), counted=1)
    report = make.report(make.digest(0, make.device(step, unattributed=250)))
    assert said(report)["kernels_unattributed"][0].startswith(
        "1 kernel, 25.0% of the kernels' time"
    )


def test_nothing_counted_is_nothing_executed(make):
    step = make.step(1, make.times(compute=100), counted=0)
    report = make.report(make.digest(0, make.device(step)))
    use = report.utilization
    assert (use["executed_flop"], use["hfu"], use["mfu"]) == (0, 0.0, 0.0)
    assert shares(use["waterfall"])["other_kernels"] == 1.0
    assert use["efficiency"] is None
    assert (report.run.reference_dtype, report.roofline) == (None, [])
    assert "nothing_counted" in said(report)


@st.composite
def steps(draw, make=Maker()):  # noqa: B008 - it holds nothing
    """Return a step that does not beat any peak by more than ten times."""
    most = 10**10
    compute, comm, copy, idle = (draw(st.integers(0, most)) for _ in range(4))
    works = []
    for dtype in draw(st.sets(st.sampled_from(["bf16", "fp32", "fp8"]))):
        flop = draw(st.integers(0, 10 * 67_000 * (compute + 1)))
        low, high = draw(st.integers(0, flop)), flop + draw(st.integers(0, flop))
        maybe = draw(st.integers(0, flop)) if dtype == "fp32" else 0
        again = draw(st.integers(0, flop))
        works.append(make.work(dtype, flop, again, (low, high), maybe))
    times = make.times(compute=compute, comm=comm, copy=copy, idle=idle + 1)
    return make.step(
        draw(st.integers(1, 2)), times, *works, counted=draw(st.integers(0, compute))
    )


@given(
    ranks=st.lists(st.tuples(st.lists(steps(), min_size=1, max_size=3), st.booleans())
        , min_size=1, max_size=3),
    model_flop=st.none() | st.integers(1, 10**16),
)  # fmt: skip
def test_shares_add_up_to_one_and_factors_multiply_to_mfu(ranks, model_flop):
    make = Maker()
    digests = [
        make.digest(
            rank, make.device(*own), world_size=len(ranks), told=(A100 if old else H100,)
        )
        for rank, (own, old) in enumerate(ranks)
    ]
    asked = {"peak": {"fp8": 624e12}}  # which an A100 has not
    if model_flop is not None:
        asked["model_flop_per_step"] = model_flop
    report = make.report(*digests, **asked)
    uses = [report.utilization, *(device.utilization for device in report.devices)]
    waterfalls = [use["waterfall"] for use in uses if use]
    waterfalls += [step.waterfall for device in report.devices for step in device.steps]
    for waterfall in waterfalls:
        if waterfall is None:  # nothing ran that tells a reference for declared FLOP
            assert model_flop is not None
            assert report.run.reference_dtype is None
            continue
        sizes = [abs(term["ratio"]) for term in waterfall]
        total = math.fsum(term["ratio"] for term in waterfall)
        assert abs(total - 1) <= 1e-12 * max(1.0, *sizes)
    for use in uses:
        if use and use["efficiency"]:
            assert use["mfu"] == pytest.approx(math.prod(use["efficiency"].values()), rel=1e-12)
        if use and use["bounds"]["hfu"]:
            low, high = use["bounds"]["hfu"]
            assert low <= use["hfu"] * (1 + 1e-15)
            assert use["hfu"] <= high * (1 + 1e-15)


@given(st.lists(steps(), min_size=2, max_size=6), st.integers(1, 5))
def test_splitting_a_job_by_rank_changes_nothing(own, at):
    """Sums over device-steps do not depend on whose they are, without step markers."""
    make = Maker()
    windows = [
        make.step(None, s.times, *s.work.by_dtype, counted=s.work.counted_ns) for s in own
    ]
    one = make.report(make.digest(0, make.device(*windows)), peak={"fp8": 624e12})
    parts = [part for part in (windows[:at], windows[at:]) if part]
    several = make.report(
        *(make.digest(rank, make.device(*part)) for rank, part in enumerate(parts)),
        peak={"fp8": 624e12},
    )
    assert several.utilization == one.utilization


def test_a_waterfall_needs_to_know_how_long_counted_kernels_took(make):
    step = make.step(1, make.times(compute=100), make.work(flop=AT_PEAK), counted=None)
    report = make.report(make.digest(0, make.device(step)))
    assert (report.utilization["hfu"], report.utilization["waterfall"]) == (0.01, None)
    assert "waterfall_unknown" in said(report)
