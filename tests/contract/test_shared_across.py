"""One real job of eight ranks: its collectives and clocks are those of the reference."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.contract.places import SHARED
from traceparse.engine import analyze
from traceparse.ingest import read_traces
from traceparse.rank import NEVER, digest
from traceparse.run.across import across
from traceparse.run.replay import replay_of

JOB = SHARED / "param-dlrm"
REFERENCE = SHARED / "oracle" / "param-dlrm" / "multirank.json"

pytestmark = pytest.mark.skipif(
    not REFERENCE.exists(),
    reason=f"no traces at {SHARED}; say where they are in TRACEPARSE_SHARED_TRACES",
)


def test_instances_are_those_of_the_reference():
    """Names only, no groups: they are paired by order, with whole microseconds."""
    digests = [digest(read_traces(path)[0]) for path in sorted(JOB.glob("*.gz"))]
    devices = [device for one in digests for device in one.devices]
    ranks = [one.health.rank for one in digests]
    together = across(devices, ranks)
    assert together is not None
    instances = together.instances
    reference = json.loads(REFERENCE.read_text())["instances"]
    assert instances.is_split.all()
    found = []
    for number, transfer in enumerate(instances.transfer_ns.tolist()):
        parts = instances.part_instance == number
        own = [ranks[place] for place in instances.part_device[parts].tolist()]
        waits = instances.part_wait_ns[parts].tolist()
        last = ranks[int(instances.last_device()[number])]
        start = min(instances.part_start_ns[parts].tolist())
        found.append((start, transfer, dict(zip(own, waits, strict=True)), last))
    wanted = [
        (
            min(one["start_ns"].values()),
            one["transfer_ns"],
            {int(rank): wait for rank, wait in one["wait_ns"].items()},
            one["shortest_rank"],
        )
        for one in reference
    ]
    assert sorted(found) == sorted(wanted)


def test_its_clocks_are_those_of_one_host():
    report = analyze(JOB).to_dict()
    assert report["clock"]["aligned"]
    assert report["clock"]["residual_ns"] <= 10_000
    assert all(abs(offset) <= 10_000 for offset in report["clock"]["offsets_ns"].values())
    waiting = report["scaling_loss"]["exposed_wait_ratio"]
    assert waiting > report["scaling_loss"]["exposed_transfer_ratio"] > 0


def test_whom_the_job_waited_for_is_told_without_a_cause():
    """One step, whose first collective waits for who began last: no habit, and no cause."""
    found = analyze(JOB).to_dict()["findings"]
    (one,) = [one for one in found if one["code"] == "straggler"]
    assert (one["severity"], one["title"]) == ("info", "rank 7 is waited for: cause unclear")
    assert "5 of its 8 collectives; too few" in one["evidence"]
    assert one["lost_ratio"] == pytest.approx(0.3126, abs=1e-4)


TRACES = [JOB, *sorted((SHARED).glob("*.json.gz")), SHARED / "hta-sampled"]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_with_nothing_changed_everything_happens_when_it_did(path):
    files = sorted(path.glob("*.gz")) if path.is_dir() else [path]
    digests = [digest(read_traces(file)[0]) for file in files]
    devices = [device for one in digests for device in one.devices]
    ranks = [one.health.rank for one in digests for _ in one.devices]
    replay = replay_of(devices, [[device.window] for device in devices], across(devices, ranks))
    assert replay is not None
    assert replay.begins.size == len(devices)
    again = replay.graph.instants(replay.weights)
    known = replay.recorded_ns != NEVER
    assert np.array_equal(again[known], replay.recorded_ns[known])
    assert abs(replay.recorded_ns[replay.begins].min()) < 10_000


def test_what_a_faster_network_would_win():
    """Its hosts launch so slowly that nearly all communication waits for nothing else."""
    report = analyze(JOB).to_dict()
    found: dict[str, Any] = {one["change"]: one for one in report["what_if"]["changes"]}
    assert 0 < found["network_2x"]["won_ratio"] < found["network_free"]["won_ratio"] < 0.001
    assert report["scaling_loss"]["exposed_transfer_ratio"] > 0.01
    assert found["launch_gaps_gone"]["won_ratio"] > 0.85
    busy = max(device["window"]["compute_ns"] for device in report["devices"])
    assert found["launch_gaps_gone"]["step_ns"] > busy
