"""Products of shapes that a device cannot fill."""

from __future__ import annotations

import pytest

from traceparse.run.findings.shapes import gemm_shapes

WAVES = "1536x4096, 4096x1536"  # 144 tiles on 132 SMs: 54.5 %
FULL = "4096x4096, 4096x4096"
ODD = "4096x768, 768x50257"


@pytest.fixture
def shaped(seen, h100):
    """Find what is said of products, which take all of the steps."""

    def found(*rows, num_sms=132, counted_ns=1_000):
        view = seen.view(
            compute=1_000,
            roofline=rows,
            counted_ns=counted_ns,
            num_sms=num_sms,
            accelerator=h100,
        )
        return list(gemm_shapes(view))

    return found


def test_waves_explain_a_slow_product(seen, shaped):
    (found,) = shaped(seen.product(WAVES, reached=0.4))
    assert (found["severity"], found["lost_ratio"]) == ("warning", pytest.approx(120 / 264))
    assert found["evidence"] == (
        "aten::mm 1536x4096, 4096x1536 in bf16 reaches 40.0% of its roof; tiles and waves "
        "allow 54.5% (144 tiles of 128x128, 100.0% of them used, in 2 waves on 132 SMs, "
        "54.5% full)"
    )
    assert "just below a multiple of the SMs" in found["advice"]
    # no more is won than stands above the roof
    (found,) = shaped(seen.product(WAVES, reached=0.4, lost_ns=100))
    assert found["lost_ratio"] == pytest.approx(0.1)


def test_a_share_is_of_the_steps_not_of_the_products(seen, shaped):
    rows = seen.product(WAVES, reached=0.4), seen.product(FULL, reached=0.8)
    (found,) = shaped(*rows, counted_ns=500)
    assert found["lost_ratio"] == pytest.approx(120 / 264 / 2 * 0.5)


@pytest.mark.parametrize(
    ("shapes", "fields"),
    [
        pytest.param(FULL, {"reached": 0.4}, id="fills the device"),
        pytest.param(WAVES, {"reached": 0.71}, id="fast enough"),
        pytest.param(WAVES, {"reached": 0.6}, id="beyond what tiles of 128 allow"),
        pytest.param(WAVES, {"reached": 0.4, "bound": "latency"}, id="too small to matter"),
        pytest.param(WAVES, {"reached": 0.4, "op": "aten::convolution"}, id="no product"),
    ],
)
def test_what_shapes_do_not_explain(seen, shaped, shapes, fields):
    assert shaped(seen.product(shapes, **fields)) == []


def test_without_its_sms_nothing_is_known_of_waves(seen, shaped):
    assert shaped(seen.product(WAVES, reached=0.4), num_sms=None) == []


def test_an_odd_vocabulary_is_named(seen, shaped):
    (found,) = shaped(seen.product(ODD, reached=0.4), num_sms=None)
    assert found["lost_ratio"] == pytest.approx(0.6)
    assert found["evidence"].endswith("N = 50,257: no multiple of 16 bytes")
    assert "50,257 to 50,304" in found["advice"]


def test_a_thin_product_wins_nothing_and_is_told(seen, shaped):
    thin = seen.product("131072x64, 64x4096", reached=0.9, bound="memory")
    (found,) = shaped(thin)
    assert (found["severity"], found["lost_ratio"]) == ("info", None)
    # 989.4e12 / 3.35e12 * 2 bytes = 591 FLOP an element
    assert "with K = 64 at most 128 FLOP go with each element moved" in found["evidence"]
    assert "balance at 591" in found["evidence"]
    assert shaped(seen.product("131072x320, 320x4096", reached=0.9, bound="memory")) == []


def test_only_the_worst_are_named(seen, shaped):
    rows = [seen.product(WAVES, reached=0.4, op="aten::mm", lost_ns=100 + n) for n in range(5)]
    (found,) = shaped(*rows)
    assert found["evidence"].count("reaches") == 3
    assert found["evidence"].endswith("2 more shapes like it")
