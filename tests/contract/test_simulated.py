"""Simulated jobs, whose truth is known: the report has it, to the nanosecond and the FLOP."""

from __future__ import annotations

from copy import deepcopy

import pytest

import traceparse
from tests.simulated import device_differences, made
from tools.simulate import SCENARIOS


def test_differences_are_named():
    truth = made("recompute", 4, 0).truth
    report = deepcopy({"devices": truth["devices"]})
    assert device_differences(truth, report) == []
    step = report["devices"][2]["steps"][1]
    step["idle_ns"] += 1
    step["recompute_flop"] = None
    (first, second) = device_differences(truth, report)
    assert first.startswith(f"rank 2 step {step['step']}: idle_ns is {step['idle_ns']} instead")
    assert "recompute_flop is None instead of" in second
    del report["devices"][0]
    assert "instead of" in device_differences(truth, report)[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("ranks", [4, 8])
@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_devices(tmp_path, scenario, ranks, seed):
    job = made(scenario, ranks, seed)
    job.place(tmp_path)
    (tmp_path / "truth.json").unlink()
    report = traceparse.analyze(tmp_path, accelerator="h100-sxm").to_dict()
    assert device_differences(job.truth, report) == []
    run = report["run"]
    assert (run["world_size"], run["ranks"]) == (ranks, job.truth["ranks"])
    assert run["missing_ranks"] == job.truth["missing_ranks"]
    for file in report["files"]:
        assert (file["repaired"], file["truncated"]) == ({}, False)
        lost = set(file["skipped"]) - {"flow", "gpu_annotation", "instant", "metadata"}
        assert lost == set()
        assert file["launches_without_gpu_event"] == 0
