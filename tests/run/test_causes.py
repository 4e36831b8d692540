"""What explains a wait, and what is too mixed to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.run.conftest import Maker
from traceparse.run.causes import Evidence, cause_of
from traceparse.run.slower import Slower, kernel_table

NOTHING = Evidence(
    wait_ns=1_000,
    whole_wait_ns=2_000,
    more_compute_ns=0,
    more_idle_ns=0,
    idle_ns=0,
    usual_idle_ns=0,
    slower=Slower(0, 10_000, "aten::mm", "", 1, 1),
    late_launch_ns=None,
    queued_ns=None,
    is_peers=False,
    is_host=False,
)


def slower(excess_ns: float, usual_ns: float = 10_000) -> Slower:
    return Slower(excess_ns, usual_ns, "aten::mm", "", 2, 1)


@pytest.mark.parametrize(
    ("told", "cause"),
    [
        ({}, "cause unclear"),
        ({"slower": slower(1_000)}, "slow compute"),
        ({"slower": slower(999)}, "cause unclear"),
        # most of what it computes has no operator to compare, and is slower alike
        ({"slower": slower(600, 1_000), "more_compute_ns": 500}, "slow compute"),
        ({"slower": slower(400, 1_000), "more_compute_ns": 900}, "cause unclear"),
        # 5 % slower is what chips differ by, however much it explains
        ({"slower": slower(1_000, 20_000)}, "cause unclear"),
        ({"slower": None, "more_compute_ns": 1_000}, "cause unclear"),
        ({"slower": slower(1_000), "more_idle_ns": 250}, "cause unclear"),
        ({"more_idle_ns": 500}, "late host"),
        ({"more_idle_ns": 499}, "cause unclear"),
        ({"more_idle_ns": 500, "slower": None}, "late host"),
        ({"more_idle_ns": 500, "more_compute_ns": 250}, "cause unclear"),
        ({"more_idle_ns": 500, "slower": slower(499)}, "late host"),
        ({"more_idle_ns": 500, "slower": slower(500)}, "cause unclear"),
        # it explains little, but is beyond doubt slower
        ({"more_idle_ns": 500, "slower": slower(101, 1_000)}, "cause unclear"),
        ({"more_idle_ns": 1_000, "is_host": True}, "cause unclear"),
    ],
)
def test_causes(told, cause):
    assert cause_of(replace(NOTHING, **told)) == cause


@pytest.mark.parametrize(
    ("told", "cause"),
    [
        ({}, None),
        ({"more_compute_ns": 250}, "place in the pipeline"),
        ({"more_compute_ns": 250, "more_idle_ns": 250}, "cause unclear"),
        ({"more_compute_ns": 250, "slower": slower(600)}, "cause unclear"),
        ({"slower": slower(1_000)}, "slow compute"),
        ({"more_idle_ns": 600}, "late host"),
    ],
)
def test_in_send_and_recv_what_is_not_odd_is_a_place_in_the_pipeline_or_its_bubble(told, cause):
    assert cause_of(replace(NOTHING, is_peers=True, **told)) == cause


def test_nobody_waits_so_nothing_is_explained():
    none = replace(NOTHING, wait_ns=0, whole_wait_ns=0, more_idle_ns=5, slower=slower(1_000))
    assert (none.kernels_ratio, none.compute_ratio, none.idle_ratio) == (0, 0, 0)
    assert cause_of(none) == "cause unclear"


def test_kernels_are_compared_run_by_run_with_the_median_of_the_others(make: Maker):
    def ran(mean_ns: int, count: int = 10):
        return make.operator(count=count, time_ns=count * mean_ns)

    rare = make.operator("aten::bmm", count=1, time_ns=77)
    table = kernel_table([(ran(100),), (ran(130, 20), rare), (ran(104),), (ran(90, 5),)])
    assert table.slower(1) == Slower(600, 2_000, "aten::mm", "[[1, 2], [2, 3]]", 130, 100)
    one = table.slower(0)
    assert one is not None
    assert (one.median_ns, one.excess_ns) == (104, -40)
    found = table.slower(3)
    assert found is not None
    assert found.factor == 90 / 104


def test_kernels_that_nobody_else_runs_are_not_compared(make: Maker):
    table = kernel_table([(make.operator("aten::mm"),), (make.operator("aten::bmm"),)])
    assert table.slower(0) is None
    assert kernel_table([(), ()]).slower(0) is None
    instant = make.operator(time_ns=0)
    assert kernel_table([(instant,), (instant,)]).slower(0) is None
