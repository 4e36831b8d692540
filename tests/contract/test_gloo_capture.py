"""The stored capture of two gloo ranks: the report of both is what the oracle says of each."""

from __future__ import annotations

import math

import pytest

from tests import oracle
from tests.contract.places import GLOO
from tests.contract.seen import as_oracle, device, partition_errors, seen
from traceparse.engine import analyze

TRACES = sorted(GLOO.glob("rank*_trace.json.gz"))


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name)
def test_analyzer_agrees_with_oracle(trace):
    found = seen(trace)
    assert found == oracle.analyze(*oracle.load(trace.read_bytes()))
    assert partition_errors(found) == []


def test_both_ranks_are_one_job():
    report = analyze(GLOO, jobs=1).to_dict()
    assert report["run"]["ranks"] == [0, 1]
    assert report["run"]["world_size"] == 2
    assert report["run"]["missing_ranks"] == []
    assert report["run"]["backend"] == "gloo"
    alone = [as_oracle(analyze(trace, jobs=1).to_dict())["devices"][0] for trace in TRACES]
    assert [device(found) for found in report["devices"]] == alone
    assert all(found["window"]["exposed_comm_ns"] > 0 for found in alone)
    assert [cut["step"] for cut in alone[0]["steps"]] == [3, 4, 5, 6]


def test_all_of_the_peak_is_accounted_for():
    report = analyze(GLOO, jobs=1, peak={"fp32": 2e11}, price=1).to_dict()
    parts = [report, *report["devices"]]
    for use in (part["utilization"] for part in parts):
        assert math.fsum(share["ratio"] for share in use["waterfall"]) == pytest.approx(
            1, abs=1e-12
        )
        assert all(share["ratio"] >= 0 for share in use["waterfall"])
        assert use["mfu"] == pytest.approx(math.prod(use["efficiency"].values()), rel=1e-12)
        assert 0 < use["mfu"] < use["hfu"] < 1
    steps = [step for part in report["devices"] for step in part["steps"]]
    for step in steps:
        total = math.fsum(share["ratio"] for share in step["waterfall"])
        assert total == pytest.approx(1, abs=1e-12)
    # all that the files have is in a step
    executed = sum(step["executed_flop"] for step in steps)
    assert executed == sum(row["flop"] for row in report["roofline"])


def test_the_rank_that_was_slower_on_its_cores_is_waited_for():
    """Of 20 collectives it was last in 15: of two ranks, chance alone may do as much."""
    report = analyze(GLOO, jobs=1).to_dict()
    (one,) = report["findings"]
    assert (one["severity"], one["title"]) == ("info", "rank 1 is waited for: slow compute")
    assert "15 of its 20 collectives; too few" in one["evidence"]
    assert (
        "aten::addmm 4096, 512x128, 128x4096: 19.5 ms a run against 5.3 ms" in (one["evidence"])
    )
    assert "OMP_NUM_THREADS" in one["advice"]
    assert 0 < one["lost_ratio"] <= report["scaling_loss"]["exposed_wait_ratio"]


def test_two_processes_say_what_one_says():
    assert analyze(GLOO, jobs=2).to_dict() == analyze(GLOO, jobs=1).to_dict()
