"""Kernels that are slow, and nothing that is known of them says why."""

from __future__ import annotations

import pytest

from traceparse.run.findings.slow import slow_kernels

FULL = "4096x4096, 4096x4096"


@pytest.fixture
def slow(seen, h100):
    """Find what is said of rows, which take all of the steps."""

    def found(*rows, most_reached=None):
        view = seen.view(
            compute=1_000,
            roofline=rows,
            counted_ns=1_000,
            num_sms=132,
            accelerator=h100,
            most_reached=most_reached,
        )
        return list(slow_kernels(view))

    return found


def test_what_good_kernels_reach_is_the_measure(seen, slow):
    (found,) = slow(seen.product(FULL, reached=0.35))
    assert (found["severity"], found["lost_ratio"]) == ("warning", pytest.approx(0.5))
    assert found["evidence"] == (
        f"aten::mm {FULL} in bf16 reaches 35.0% of its roof, which is that of compute, where "
        f"good kernels reach 70.0%"
    )
    assert "max-autotune" in found["advice"]


def test_where_nobody_ever_reached_more_less_is_good(seen, slow):
    """The fastest products of an MI300X reach 51 % of its peak."""
    assert slow(seen.product(FULL, reached=0.45), most_reached=0.5) == []
    (found,) = slow(seen.product(FULL, reached=0.36), most_reached=0.5)
    assert found["lost_ratio"] == pytest.approx(0.2)
    assert slow(seen.product(FULL, reached=0.36, bound="memory"), most_reached=0.5)
    assert slow(seen.product(FULL, reached=0.69), most_reached=1.0) == []


@pytest.mark.parametrize(
    ("shapes", "fields"),
    [
        pytest.param(FULL, {"reached": 0.67}, id="hardly slower"),
        pytest.param(FULL, {"reached": 0.1, "bound": "latency"}, id="too small"),
        pytest.param(FULL, {"reached": 0.5, "bound": "memory"}, id="near the bandwidth"),
        pytest.param(FULL, {"reached": None, "lost_ns": None, "bound": None}, id="unknown"),
        pytest.param("1536x4096, 4096x1536", {"reached": 0.4}, id="explained by waves"),
        pytest.param(FULL, {"reached": 0.1, "dtype": "fp32"}, id="in a slow type"),
    ],
)
def test_what_has_another_reason_or_none(seen, slow, shapes, fields):
    row = {**seen.product(shapes, reached=0.5), **fields, "lost_ns": 1}
    row["roof_ratio"] = fields["reached"]
    assert slow(row) == []


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("aten::convolution_backward", "channels_last"),
        ("aten::_flash_attention_forward", "sdpa_kernel"),
    ],
)
def test_advice_is_for_what_runs(seen, slow, op, words):
    (found,) = slow(seen.product("8x8", reached=0.1, op=op))
    assert words in found["advice"]
    assert "nvidia-smi" in found["advice"]
