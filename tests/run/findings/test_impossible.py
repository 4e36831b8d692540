"""What cannot be is found; what can be is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.run.conftest import H100, renamed

BF16 = 989_400
CODES = {"faster_than_peak", "mfu_above_measured_maximum", "model_flop_exceed_executed"}


def one_step(make, *works, span=1_000, counted=900, **fields):
    step = make.step(
        1, make.times(compute=counted, idle=span - counted), *works, counted=counted
    )
    return make.digest(0, make.device(step), **{"told": (H100,), **fields})


def impossible(report) -> list[Mapping[str, Any]]:
    return [finding for finding in report.findings if finding["code"] in CODES]


def found(report) -> list[tuple[str, str]]:
    return [(finding["severity"], finding["code"]) for finding in impossible(report)]


def test_kernels_that_beat_the_peak_are_an_error(make):
    digest = one_step(make, make.work(flop=945 * BF16))
    report = make.report(digest)
    assert report.utilization["hfu"] == 0.945
    assert impossible(report)[0] == {
        "code": "faster_than_peak",
        "severity": "error",
        "title": "matrix products of the run are faster than the device can be",
        "evidence": "their kernels reach 105.0% of the peak while they run",
        "advice": (
            "the device is another, or the peak of a partition or of another power limit "
            "applies (--accelerator, --peak), or FLOP are counted by another convention than "
            "they ran"
        ),
        "lost_ratio": None,
        "lost_usd": None,
    }
    assert found(make.report(one_step(make, make.work(flop=700 * BF16)))) == []


def test_a_rank_that_beats_the_peak_is_named_where_the_run_does_not(make):
    slow = one_step(make, make.work(flop=100 * BF16), world_size=2)
    fast = renamed(one_step(make, make.work(flop=990 * BF16), world_size=2), 1)
    (finding, *_) = impossible(make.report(slow, fast))
    assert finding["title"] == "matrix products of rank 1 are faster than the device can be"
    assert finding["evidence"].startswith("their kernels reach 110.0%")


def test_an_operator_faster_than_the_peak_by_more_than_a_percent(make):
    fast = make.operator(op="aten::bmm", time_ns=1_000, flop=1_011 * BF16, least_bytes=1)
    fair = make.operator(op="aten::mm", time_ns=1_000, flop=1_009 * BF16, least_bytes=1)
    digest = one_step(make, make.work(flop=1), operators=(fast, fair))
    (finding,) = impossible(make.report(digest))
    assert (finding["severity"], finding["code"]) == ("error", "faster_than_peak")
    assert finding["title"] == "aten::bmm in bf16 is faster than the device can be"
    assert finding["evidence"] == (
        "1,000.3 TFLOP/s with shapes [[1, 2], [2, 3]], where the peak is 989.4 TFLOP/s"
    )
    many = [make.operator(op=f"op{n}", time_ns=10, flop=20 * BF16) for n in range(7)]
    findings = impossible(make.report(one_step(make, make.work(flop=1), operators=many)))
    assert len(findings) == 5
    assert findings[0]["evidence"].endswith("; 2 more rows like it")


def test_what_may_have_run_as_tf32_is_only_a_warning(make):
    flop = 67_000 * 2_000
    work = make.work("fp32", flop, maybe_tf32=flop)
    operator = make.operator(dtype="fp32", time_ns=900, flop=flop, is_maybe_tf32=True)
    report = make.report(one_step(make, work, operators=(operator,)))
    assert report.utilization["hfu"] == 2.0
    assert found(report) == [("warning", "faster_than_peak")]
    assert "give --peak fp32=TFLOPS with the peak of tf32" in report.findings[0]["advice"]


def test_a_measured_ceiling_may_be_beaten_by_kernels(make):
    report = make.report(one_step(make, make.work(flop=850 * BF16)), ceiling="mamf")
    assert found(report) == [("error", "mfu_above_measured_maximum")]
    report = make.report(one_step(make, make.work(flop=850 * BF16), span=2_000), ceiling="mamf")
    assert found(report) == []


def test_an_mfu_that_nobody_reaches_is_an_error(make):
    # the fastest products of an H100 reach 794.5 of 989.4 TFLOP/s
    report = make.report(one_step(make, make.work(flop=820 * BF16)))
    (finding,) = impossible(report)
    assert (finding["severity"], finding["code"]) == ("error", "mfu_above_measured_maximum")
    assert finding["evidence"] == (
        "MFU would be 82.0%, estimated; the fastest products reach 80.3% of the peak"
    )


def test_declared_flop_that_nothing_could_do_are_an_error(make):
    report = make.report(one_step(make, make.work(flop=100 * BF16)), model_flop_per_step=2e9)
    assert found(report) == [
        ("error", "faster_than_peak"),
        ("warning", "model_flop_exceed_executed"),
    ]
    assert report.findings[0]["title"] == "MFU is above 100%"
    assert report.findings[0]["evidence"] == "MFU would be 202.1%, declared"


def test_declared_flop_that_exceed_what_ran_are_a_warning(make):
    report = make.report(
        one_step(make, make.work(flop=100 * BF16)), model_flop_per_step=200 * BF16
    )
    (finding,) = impossible(report)
    assert (finding["severity"], finding["code"]) == ("warning", "model_flop_exceed_executed")
    assert finding["evidence"] == "MFU 20.0% (declared) is above HFU 10.0%"
    waterfall = {term["name"]: term["ratio"] for term in report.utilization["waterfall"]}
    assert waterfall["recompute"] == -0.1


def test_nothing_is_found_of_a_device_without_a_peak(make):
    digest = one_step(make, make.work(flop=10**15), told=(), operators=(make.operator(flop=9),))
    assert impossible(make.report(digest)) == []


def test_work_without_any_time_is_found_too(make):
    digest = one_step(make, make.work(flop=100), counted=0)
    (finding,) = impossible(make.report(digest))
    assert finding["evidence"] == "there are FLOP, but their kernels took no time"


def test_files_of_unknown_rank_are_counted(make):
    fast = one_step(make, make.work(flop=990 * BF16))
    slow = one_step(make, make.work(flop=BF16))
    unknown = [renamed(digest, None) for digest in (fast, slow)]
    assert (
        make.report(*unknown).findings[0]["title"].startswith("matrix products of 1 file are")
    )


def test_a_declared_hfu_that_cannot_be_is_an_error(make):
    step = make.step(1, make.times(compute=1_000), told=False)
    asked = {"tokens_per_step": 1e3, "params": 140_000, "recompute": "full"}
    report = make.report(make.digest(0, make.device(step)), peak={"bf16": 989.4e12}, **asked)
    assert report.utilization["hfu"] > 1 > report.utilization["mfu"]
    assert found(report) == [("error", "faster_than_peak")]


def test_a_span_of_nothing_is_no_division(make):
    """A step whose kernels took no time, as whole microseconds have them."""
    report = make.report(one_step(make, make.work(flop=BF16), span=0, counted=0))
    assert report.utilization is not None
    assert report.utilization["mfu"] is None
