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
    assert [cut["step"] for cut in alone[0]["steps"]] == [10, 11, 12, 13]


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


def test_what_capture_recorded_is_told_and_used():
    """The FLOP that each rank counted in another step are those that its trace has."""
    report = analyze(GLOO, jobs=1, peak={"fp32": 2e11}).to_dict()
    facts, use = report["run"]["facts"], report["utilization"]
    assert (facts["torch_version"], facts["step_on"]) == ("2.13.0+cpu", "optimizer")
    assert (facts["num_params"], facts["num_embedding_params"]) == (1_647_488, 524_288)
    assert (facts["tokens_per_rank_step"], facts["steps"]) == (512, [10, 13])
    assert (facts["checkpointing"], facts["compiled"]) == (False, False)
    assert use["mfu_source"] == "counted"
    assert use["model_flop"] == use["executed_flop"] - use["recompute_flop"]
    assert use["model_flop"] == 6 * 3_573_547_008  # three whole steps on two ranks
    (one,) = [one for one in report["findings"] if one["code"] == "capture_overhead"]
    assert one["title"] == "profiling slowed the steps by 14.3%"
    assert facts["capture_overhead_ratio"] == pytest.approx(0.143, abs=5e-4)


def test_two_processes_say_what_one_says():
    assert analyze(GLOO, jobs=2).to_dict() == analyze(GLOO, jobs=1).to_dict()
