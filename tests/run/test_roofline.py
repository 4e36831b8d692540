"""Operators against the roof of their devices, worked out by hand."""

from __future__ import annotations

import pytest

from tests.run.conftest import A100, H100, renamed

BF16 = 989_400  # FLOP a nanosecond
HBM = 3_350  # bytes a nanosecond


def rows(make, *operators, told=(H100,), **fields):
    step = make.step(1, make.times(compute=1), counted=1)
    digest = make.digest(0, make.device(step), told=told, operators=operators, **fields)
    return make.report(digest).roofline


def test_three_rows_worked_out_by_hand(make):
    found = rows(
        make,
        # at the peak 60 ns, at the bandwidth 20 ns: 40 of its 100 ns are lost
        make.operator(op="compute", time_ns=100, flop=60 * BF16, least_bytes=20 * HBM),
        # 10 ns and 90 ns: 110 of its 200 ns are lost
        make.operator(op="memory", count=2, time_ns=200, flop=10 * BF16, least_bytes=90 * HBM),
        # four runs of 1 ns, where no kernel takes less than 5
        make.operator(op="latency", count=4, time_ns=40, flop=4 * BF16, least_bytes=HBM),
        shortest_kernel_ns=5,
    )
    assert found == [
        {
            "op": "memory",
            "shapes": "[[1, 2], [2, 3]]",
            "dtype": "bf16",
            "count": 2,
            "time_ns": 200,
            "flop": 10 * BF16,
            "bytes": 90 * HBM,
            "flop_per_s": 10 * BF16 / 200e-9,
            "bytes_per_s": 90 * HBM / 200e-9,
            "bound": "memory",
            "roof_ratio": 0.45,
            "lost_ns": 110,
            "recompute_count": 0,
            "recompute_time_ns": 0,
        },
        {
            "op": "compute",
            "shapes": "[[1, 2], [2, 3]]",
            "dtype": "bf16",
            "count": 1,
            "time_ns": 100,
            "flop": 60 * BF16,
            "bytes": 20 * HBM,
            "flop_per_s": 60 * BF16 / 100e-9,
            "bytes_per_s": pytest.approx(20 * HBM / 100e-9),
            "bound": "compute",
            "roof_ratio": 0.6,
            "lost_ns": 40,
            "recompute_count": 0,
            "recompute_time_ns": 0,
        },
        {
            "op": "latency",
            "shapes": "[[1, 2], [2, 3]]",
            "dtype": "bf16",
            "count": 4,
            "time_ns": 40,
            "flop": 4 * BF16,
            "bytes": HBM,
            "flop_per_s": 4 * BF16 / 40e-9,
            "bytes_per_s": HBM / 40e-9,
            "bound": "latency",
            "roof_ratio": 0.1,
            "lost_ns": 36,
            "recompute_count": 0,
            "recompute_time_ns": 0,
        },
    ]


def test_recomputed_runs_are_counted_in_the_same_row(make, three_kernels):
    (row,) = make.report(three_kernels).roofline
    # 300 of 400 ns, and 100 of 200 ns
    assert (row["count"], row["recompute_count"], row["time_ns"]) == (2, 1, 600)
    assert row["recompute_time_ns"] == 200
    assert (row["roof_ratio"], row["lost_ns"], row["bound"]) == (400 / 600, 200, "compute")


def test_files_are_merged_each_at_its_own_roof(make):
    def rank(number, told):
        step = make.step(1, make.times(compute=1), counted=1)
        work = make.operator(time_ns=1_000, flop=312_000 * 100, least_bytes=2_039)
        return make.digest(
            number, make.device(step), world_size=2, told=(told,), operators=(work,),
            shortest_kernel_ns=1,
        )  # fmt: skip

    (row,) = make.report(rank(0, H100), rank(1, A100)).roofline
    assert (row["count"], row["time_ns"]) == (2, 2_000)
    at_roof = 312_000 * 100 / BF16 + 100
    assert row["roof_ratio"] == pytest.approx(at_roof / 2_000)
    assert row["lost_ns"] == round(2_000 - at_roof)
    (row,) = make.report(rank(0, H100), rank(1, {"name": "new"})).roofline
    assert (row["roof_ratio"], row["lost_ns"], row["bound"]) == (None, None, None)


def test_without_bandwidth_the_roof_is_flat_and_the_bound_unknown(make):
    step = make.step(1, make.times(compute=1), counted=1)
    work = make.operator(dtype="fp32", time_ns=100, flop=1_000, least_bytes=10**9)
    digest = make.digest(0, make.device(step, device="cpu"), operators=(work,))
    (row,) = make.report(digest, peak={"fp32": 20e9}).roofline
    assert (row["roof_ratio"], row["lost_ns"], row["bound"]) == (0.5, 50, None)


def test_what_has_no_roof_comes_last_by_time(make):
    found = rows(
        make,
        make.operator(op="a", dtype="fp4", time_ns=5),
        make.operator(op="b", dtype="fp4", time_ns=500),
        make.operator(op="c", time_ns=10, flop=BF16, least_bytes=1),
    )
    assert [row["op"] for row in found] == ["c", "b", "a"]
    assert (found[1]["roof_ratio"], found[1]["lost_ns"]) == (None, None)


def test_an_operator_of_devices_that_differ_has_no_roof(make):
    steps = [make.step(1, make.times(compute=1), counted=1)]
    told = ({**H100, "id": 0}, {**A100, "id": 1})
    digest = make.digest(
        0, make.device(*steps), make.device(*steps, device=1), told=told,
        operators=(make.operator(flop=1),),
    )  # fmt: skip
    (row,) = make.report(digest).roofline
    assert row["roof_ratio"] is None


def test_kernels_of_no_time_have_no_rate(make):
    (row,) = rows(make, make.operator(time_ns=0, flop=1, least_bytes=1))
    assert (row["flop_per_s"], row["bytes_per_s"], row["roof_ratio"]) == (None, None, None)


def test_the_order_of_files_changes_nothing(make, three_kernels):
    other = renamed(three_kernels, 1)
    assert (
        make.report(three_kernels, other).roofline == make.report(other, three_kernels).roofline
    )
