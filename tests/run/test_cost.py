"""What a step costs."""

from __future__ import annotations

import pytest

HOUR_NS = 3_600 * 10**9


def test_a_step_of_an_hour_on_four_devices(make):
    times = make.times(compute=HOUR_NS // 2, comm=HOUR_NS // 4, idle=HOUR_NS // 4)
    step = make.step(1, times, make.work(flop=0), counted=HOUR_NS // 4)
    report = make.report(
        *(make.digest(rank, make.device(step), world_size=4) for rank in range(2)),
        price=2.5,
        tokens_per_step=2e6,
    )
    assert report.cost == {
        "usd_per_gpu_hour": 2.5,
        "gpu_hours_per_step": 4.0,  # two ranks have no trace and cost as much
        "usd_per_step": 10.0,
        "usd_per_million_tokens": 5.0,
        "lost_usd_per_step": {
            "idle": 2.5,
            "exposed_copy": 0.0,
            "exposed_comm": 2.5,
            "other_kernels": 2.5,
            "matmul_inefficiency": 2.5,
            "recompute": 0.0,
        },
    }
    assert report.to_dict()["cost"] == report.cost


def test_without_a_waterfall_times_tell_what_is_lost(make):
    step = make.step(1, make.times(compute=HOUR_NS // 2, idle=HOUR_NS // 2), told=False)
    cost = make.report(make.digest(0, make.device(step)), price=1).cost
    assert cost["usd_per_million_tokens"] is None
    assert cost["lost_usd_per_step"] == {
        "idle": 0.5,
        "exposed_copy": 0.0,
        "exposed_comm": 0.0,
    }


def test_recorded_tokens_are_as_good(make):
    step = make.step(1, make.times(compute=HOUR_NS), told=False)
    digest = make.digest(0, make.device(step), facts={"tokens_per_step": 500_000})
    assert make.report(digest, price=3).cost["usd_per_million_tokens"] == pytest.approx(6)


def test_no_price_no_cost(make, three_kernels):
    assert make.report(three_kernels).cost is None
    step = make.step(1, None, told=False)
    assert make.report(make.digest(0, make.device(step)), price=3).cost is None
