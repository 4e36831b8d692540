"""Stragglers of several kinds in jobs of several kinds: never a wrong cause, said for sure."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import traceparse
from tools.simulate_events import Conditions
from tools.simulate_gloo import run_job
from tools.simulate_record import record
from tools.simulate_scenarios import build
from tools.simulate_write import trace_bytes

SLOW = {2: Fraction(4, 3)}
LATE = {2: Fraction(12)}
NEVER = "cause unclear"


@pytest.fixture
def told(tmp_path):
    """Run a job under other conditions than its own, and return what is said of it."""

    def run(scenario, ranks, **conditions):
        job = build(scenario, ranks=ranks, seed=1)
        job = replace(job, conditions=Conditions(**conditions))
        for recording in record(job, run_job(job)):
            path = tmp_path / f"rank{recording.rank}_trace.json"
            path.write_bytes(trace_bytes(job, recording))
        found = traceparse.analyze(tmp_path, accelerator="h100-sxm").to_dict()["findings"]
        return {(one["severity"], one["title"]) for one in found if one["code"] == "straggler"}

    return run


@pytest.mark.parametrize("ranks", [4, 8])
@pytest.mark.parametrize("scenario", ["ddp", "fsdp", "straggler_link", "tp_pp", "recompute"])
@pytest.mark.parametrize(
    ("conditions", "cause"),
    [
        pytest.param({"compute": SLOW}, "slow compute", id="slow"),
        pytest.param({"host": LATE}, "late host", id="late"),
        pytest.param({"compute": SLOW, "host": LATE}, NEVER, id="both"),
    ],
)
def test_in_every_kind_of_job(scenario, ranks, conditions, cause, told):
    assert told(scenario, ranks, **conditions) == {
        ("warning", f"rank 2 is waited for: {cause}")
    }


@pytest.mark.parametrize("scenario", ["ddp", "fsdp", "straggler_link", "tp_pp", "pipeline"])
def test_five_percent_is_what_chips_differ_by(scenario, told):
    assert told(scenario, 4, compute={2: Fraction(104, 100)}) == set()


@pytest.mark.parametrize("ranks", [4, 8])
def test_where_all_hosts_are_slow_waiting_for_a_late_one_costs_nothing(ranks, told):
    """Unless it is so late that the others' hosts have to wait as well."""
    every = {"every_host": Fraction(12)}
    assert told("host_bound", ranks, **every) == set()
    assert told("host_bound", ranks, **every, host={2: Fraction(3, 2)}) == {
        ("warning", "rank 2 is waited for: late host")
    }


@pytest.mark.parametrize("scenario", ["ddp", "fsdp", "recompute"])
def test_in_one_group_a_slow_link_cannot_be_told_from_a_slow_network(scenario, told):
    assert told(scenario, 4, link={2: Fraction(5)}) == set()


def test_of_two_who_are_always_together_none_is_blamed(told):
    (one,) = told("tp_pp", 4, link={2: Fraction(5)})
    assert one == ("info", "a rank among 2-3 has a slow link: which one is unclear")


def test_groups_across_tell_whose_link_it_is(told):
    (one,) = told("tp_pp", 8, link={2: Fraction(5)})
    assert one == ("warning", "rank 2 is waited for: slow link")


def test_inside_of_graphs_kernels_have_no_operator_to_compare_them_by(told):
    (one,) = told("graphs", 4, compute=SLOW)
    assert one == ("warning", "rank 2 is waited for: cause unclear")


@pytest.mark.parametrize("conditions", [{"host": LATE}, {"compute": SLOW}])
@pytest.mark.parametrize("ranks", [4, 8])
def test_in_a_pipeline_waits_pass_through_all_stages(ranks, conditions, told):
    """Nobody stands out, or the cause is unclear; a bubble is never called a place."""
    assert told("pipeline", ranks, **conditions) <= {
        ("warning", "rank 2 is waited for: cause unclear")
    }
