"""Products in a slow data type, and products that are repeated."""

from __future__ import annotations

import pytest

from traceparse.run.findings.products import fp32_matmuls, recompute_cost, tf32_matmuls


@pytest.fixture
def view(seen, h100):
    """A run whose products take all of the steps."""

    def made(*rows, accelerator=h100, **fields):
        return seen.view(
            compute=1_000, roofline=rows, counted_ns=1_000, accelerator=accelerator, **fields
        )

    return made


def slow(seen, dtype, **fields):
    known = {"reached": 0.5, "dtype": dtype, "flop": 33_500_000, "flop_per_s": 33.5e12}
    return seen.product("64x64, 64x64", **{**known, **fields})


def test_fp32_where_16_bits_are_faster(seen, view):
    (found,) = fp32_matmuls(view(slow(seen, "fp32")))
    # 33.5 MFLOP take 34 of 1,000 ns in bf16
    assert found["lost_ratio"] == pytest.approx(1 - 33.5e6 / 989.4e12 * 1e9 / 1_000)
    assert found["severity"] == "warning"
    assert found["evidence"].startswith(
        "the device does 67.0 TFLOP/s in fp32 and 989.4 TFLOP/s in bf16; most is aten::mm "
        "64x64, 64x64 at 33.5 TFLOP/s"
    )
    assert 'set_float32_matmul_precision("high")' in found["advice"]


def test_what_memory_bounds_wins_half_its_bytes(seen, view):
    row = slow(seen, "fp32", flop=1_000, flop_per_s=1e9, bytes=3_350_000)  # 1,000 ns of them
    (found,) = fp32_matmuls(view(row))
    assert found["lost_ratio"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("fields", "peaks"),
    [
        pytest.param({"flop_per_s": 350e12}, None, id="faster than fp32 can be"),
        pytest.param({"time_ns": 19, "lost_ns": 10}, None, id="little"),
        pytest.param({}, {"fp32": 67e12}, id="no other type"),
        pytest.param({}, {"fp32": 67e12, "bf16": 67e12}, id="no faster type"),
        pytest.param({}, {"bf16": 67e12}, id="no peak of its own"),
    ],
)
def test_no_finding_on_fp32(seen, view, h100, fields, peaks):
    accelerator = h100 if peaks is None else {**h100, "peak_flop_per_s": peaks}
    other = seen.product("64x64, 64x64", reached=0.9)
    rows = slow(seen, "fp32", **fields), *([other] if "time_ns" in fields else [])
    assert not list(fp32_matmuls(view(*rows, accelerator=accelerator)))
    assert not list(fp32_matmuls(view(*rows, accelerator=None)))


def test_advice_is_for_types_that_the_device_has(seen, view, h100):
    peaks = {"fp32": 15.7e12, "fp16": 125e12}
    row = slow(seen, "fp32", flop_per_s=10e12)
    (found,) = fp32_matmuls(view(row, accelerator={**h100, "peak_flop_per_s": peaks}))
    assert found["advice"] == (
        "run products under torch.autocast(device_type, dtype=torch.float16) with a GradScaler"
    )


def test_tf32_is_for_information(seen, view):
    (found,) = tf32_matmuls(view(slow(seen, "tf32")))
    assert (found["code"], found["severity"]) == ("tf32_matmuls", "info")
    assert "in bf16" in found["evidence"]
    assert not list(fp32_matmuls(view(slow(seen, "tf32"))))


def test_recompute_is_the_time_of_what_ran_again(seen, view):
    row = slow(seen, "bf16", recompute_count=3, recompute_time_ns=250)
    waterfall = [{"name": "recompute", "ratio": 0.08}]
    (found,) = recompute_cost(view(row, waterfall=waterfall))
    assert (found["lost_ratio"], found["severity"]) == (pytest.approx(0.25), "warning")
    assert found["evidence"].startswith("3 products ran again")
    assert "8.0% of the peak, between HFU and MFU" in found["evidence"]
    assert not list(recompute_cost(view(slow(seen, "bf16", recompute_time_ns=19))))
    little = slow(seen, "bf16", recompute_count=1, recompute_time_ns=19)
    assert not list(recompute_cost(view(little)))
