"""Simulated jobs: devices, clocks, collectives and what scaling costs are the truth."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any, TypeAlias

import pytest

import traceparse
from tests.simulated import device_differences, made
from tools.simulate import SCENARIOS

JOBS = [
    (scenario, ranks, seed)
    for scenario in sorted(SCENARIOS)
    for ranks in (4, 8)
    for seed in (0, 1, 2)
]
Key: TypeAlias = tuple[object, ...]
SPLIT = ("exposed_transfer", "exposed_wait", "pipeline_wait", "exposed_unsplit")
# without numbers of calls, layers that repeat can be laid over one another in several ways
WITHOUT_NUMBERS = {"graphs", "gloo_cpu", "missing_metadata", "window_lag"}


@pytest.fixture(scope="module")
def report_of(tmp_path_factory):
    @cache
    def analyzed(scenario, ranks, seed):
        folder = tmp_path_factory.mktemp("job")
        made(scenario, ranks, seed).place(folder)
        (folder / "truth.json").unlink()
        return traceparse.analyze(folder, accelerator="h100-sxm").to_dict()

    return analyzed


@pytest.mark.parametrize("job", JOBS, ids=lambda job: "-".join(map(str, job)))
def test_devices(job, report_of):
    """To the nanosecond and the FLOP."""
    truth, report = made(*job).truth, report_of(*job)
    assert device_differences(truth, report) == []
    run = report["run"]
    assert (run["world_size"], run["ranks"]) == (job[1], truth["ranks"])
    assert run["missing_ranks"] == truth["missing_ranks"]
    for file in report["files"]:
        assert (file["repaired"], file["truncated"]) == ({}, False)
        lost = set(file["skipped"]) - {"flow", "gpu_annotation", "instant", "metadata"}
        assert lost == set()
        assert file["launches_without_gpu_event"] == 0


@pytest.mark.parametrize("job", JOBS, ids=lambda job: "-".join(map(str, job)))
def test_clocks(job, report_of):
    truth, clock = made(*job).truth["clock"], report_of(*job)["clock"]
    found = clock["offsets_ns"]
    reached = {rank: offset for rank, offset in truth["offsets_ns"].items() if rank in found}
    assert found.keys() == reached.keys()
    if job[0] != "missing_member":  # whose group is one rank without the other
        assert clock["aligned"]
        assert reached == truth["offsets_ns"]
    nearly = 0 if truth["exact"] else max(clock["residual_ns"], 2)  # readings are whole ns
    for rank, offset in reached.items():
        assert abs(found[rank] - offset) <= nearly
        assert clock["drift_ppm"][rank] == pytest.approx(truth["drift_ppm"][rank], abs=0.01)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: "-".join(map(str, job)))
def test_exposure_of_every_step(job, report_of):
    truth = {(one["rank"], one["device"]): one for one in made(*job).truth["devices"]}
    for device in report_of(*job)["devices"]:
        steps = truth[device["rank"], device["device"]]["steps"]
        for step, true in zip(device["steps"], steps, strict=True):
            found = step["communication_ns"]
            assert {term: true[f"{term}_ns"] for term in SPLIT} == found
            assert sum(found.values()) == step["exposed_comm_ns"]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: "-".join(map(str, job)))
def test_scaling_loss(job, report_of):
    truth, found = made(*job).truth["scaling_loss"], report_of(*job)["scaling_loss"]
    assert found.keys() == truth.keys()
    assert found["step_ns"] == round(truth["step_ns"])
    for name in truth.keys() - {"step_ns"}:
        assert found[name] == pytest.approx(truth[name], rel=1e-12, abs=1e-15), name
    product = found["load_balance"] * found["serialization"] * found["transfer"]
    assert product == pytest.approx(found["parallel_efficiency"], rel=1e-12)


def rows_of(instances):
    """Add up true instances as the contract's rows do, by what the files tell of them."""
    rows: dict[Key, dict[str, Any]] = defaultdict(
        lambda: {
            "count": 0,
            "transfer_ns": 0,
            "wait_ns": 0,
            "exposed_ns": 0,
            "last_rank_counts": defaultdict(int),
        }
    )
    for one in instances:
        seen = one["seen"]
        if seen is None:
            continue
        key: Key = ("send/recv",)
        if one["collective"] != "send/recv":
            key = (
                one["group_name"],
                tuple(one["group_ranks"]),
                one["collective"],
                one["dtype"],
                one["message_bytes"],
            )
        row = rows[key]
        row["count"] += 1
        row["exposed_ns"] += sum(m["exposed_ns"] for m in one["members"] if m["recorded"])
        if seen["split"]:
            row["transfer_ns"] += seen["transfer_ns"]
            row["wait_ns"] += sum(seen["wait_ns"].values())
            row["last_rank_counts"][str(seen["last_rank"])] += 1
    return rows


@pytest.mark.parametrize(
    "job",
    [job for job in JOBS if job[0] not in WITHOUT_NUMBERS],
    ids=lambda job: "-".join(map(str, job)),
)
def test_collectives(job, report_of):
    truth = rows_of(made(*job).truth["instances"])
    found: dict[Key, dict[str, Any]] = {}
    for row in report_of(*job)["collectives"]:
        key: Key = ("send/recv",)
        if row["collective"] != "send/recv":
            names = ("process_group", "ranks", "collective", "dtype", "message_bytes")
            key = tuple(tuple(v) if isinstance(v, list) else v for v in map(row.get, names))
        found[key] = {
            name: row[name] or 0 for name in ("count", "transfer_ns", "wait_ns", "exposed_ns")
        } | {"last_rank_counts": row["last_rank_counts"]}
        if row["transfer_ns"] and row["algbw_bytes_per_s"]:
            split = sum(row["last_rank_counts"].values())
            rate = row["message_bytes"] * split / row["transfer_ns"] * 1e9
            assert row["algbw_bytes_per_s"] == pytest.approx(rate, rel=1e-12)
    assert found == {
        key: {**row, "last_rank_counts": dict(row["last_rank_counts"])}
        for key, row in truth.items()
    }


@pytest.mark.parametrize("job", JOBS, ids=lambda job: "-".join(map(str, job)))
def test_stragglers(job, report_of):
    """The one that there is, with its cause, and none where there is none."""
    true = made(*job).truth["straggler"]
    warned = [one for one in report_of(*job)["findings"] if one["code"] == "straggler"]
    titles = [one["title"] for one in warned]
    assert titles == (
        [] if true is None else [f"rank {true['rank']} is waited for: {true['cause']}"]
    )
    assert all(one["severity"] == "warning" for one in warned)
    loss = report_of(*job)["scaling_loss"]
    for one in warned:
        most = loss["exposed_wait_ratio"] + loss["exposed_transfer_ratio"]
        assert 0.01 < one["lost_ratio"] <= most


@pytest.mark.parametrize("job", JOBS, ids=lambda job: "-".join(map(str, job)))
def test_what_if(job, report_of):
    """Steps under other conditions are those of the simulator, run again under them."""
    truth, found = made(*job).truth["what_if"], report_of(*job)["what_if"]
    assert found["step_ns"] == pytest.approx(truth["as_run"], rel=1e-3)
    changes = {one["change"]: one for one in found["changes"]}
    for change, step_ns in truth.items():
        if step_ns is None or change == "as_run":
            assert change not in changes
            continue
        told = changes[change]
        if job[0] == "missing_member":
            assert (told["step_ns"], told["won_ratio"]) == (None, None)
            codes = {note["code"] for note in report_of(*job)["notes"]}
            assert "what_if_unknown" in codes
            continue
        assert told["step_ns"] == pytest.approx(step_ns, rel=0.02)
        assert told["won_ratio"] == pytest.approx(
            1 - told["step_ns"] / found["step_ns"], abs=1e-5
        )
        straggler = made(*job).truth["straggler"]
        assert told["ranks"] == ([straggler["rank"]] if change == "straggler_median" else None)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_if_is_not_subtraction(seed, report_of):
    """Whoever waits for a slow rank overlaps less: without it more is won than the waiting."""
    job = ("straggler_compute", 8, seed)
    (row,) = (
        one
        for one in report_of(*job)["what_if"]["changes"]
        if one["change"] == "straggler_median"
    )
    true_ns = made(*job).truth["what_if"]["straggler_median"]
    assert abs(row["subtracted_step_ns"] / true_ns - 1) > 0.05
    assert abs(row["step_ns"] / true_ns - 1) < 0.005
