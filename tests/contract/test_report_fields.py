"""``report.json`` has exactly these fields: the contract's, and what was added to it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.run.conftest import Maker, three_kernels
from traceparse.rank import CopyWork, IdleTimes, KernelWork
from traceparse.report import json_text

TIMES = {
    *("start_ns", "end_ns", "span_ns", "busy_ns", "compute_ns", "comm_ns", "copy_ns"),
    *("overlap_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns"),
}
FIGURES = {
    *("executed_flop", "model_flop", "recompute_flop", "achieved_flop_per_s", "hfu", "mfu"),
}
UTILIZATION = FIGURES | {"mfu_source", "waterfall", "by_dtype", "efficiency", "bounds"}
WATERFALL = [
    *("idle", "exposed_copy", "exposed_comm", "other_kernels"),
    *("matmul_inefficiency", "recompute", "mfu"),
]

__all__ = ["make", "three_kernels"]


@pytest.fixture
def make() -> Maker:
    return Maker()


@pytest.fixture
def report(make, three_kernels):
    made = make.report(three_kernels, price=2.0, model_flop_per_step=10**12)
    return json.loads(json_text.render(made))


def test_run(report):
    assert set(report["run"]) == {
        *("world_size", "ranks", "missing_ranks", "backend", "accelerator"),
        *("reference_dtype", "conventions", "facts"),
    }
    assert set(report["run"]["accelerator"]) == {
        *("id", "name", "source", "peak_flop_per_s", "hbm_bytes_per_s"),
    }


def test_summary(report):
    summary = report["summary"]
    assert set(summary) == {
        *("verdict", "detail", "bound", "basis", "num_device_steps", "times"),
        *("compute_ratio", "exposed_comm_ratio", "exposed_copy_ratio", "idle_ratio"),
        "communication_ns",
    }
    assert set(summary["bound"]) == {"by", "ratio"}


def test_bands(report):
    """Of a declared model that no H100 can do, and no communication to judge."""
    (band,) = report["bands"].values()
    assert set(band) == {"value", "band", "limits", "source"}
    assert report["bands"]["mfu"]["value"] == report["utilization"]["mfu"]


def test_facts(make, three_kernels, report):
    """Null where nothing was recorded; else every fact is there, null where it was not."""
    assert report["run"]["facts"] is None
    header = replace(three_kernels.header, facts={"torch_version": "2.13.0", "steps": [1, 2]})
    made = make.report(replace(three_kernels, header=header))
    facts = json.loads(json_text.render(made))["run"]["facts"]
    assert (facts.pop("torch_version"), facts.pop("steps")) == ("2.13.0", [1, 2])
    assert facts == dict.fromkeys(
        (
            *("traceparse_version", "python_version", "cuda_version", "hip_version"),
            *("nccl_version", "driver_version", "device_name", "num_sms"),
            *("device_memory_bytes", "sm_clock_hz", "memory_clock_hz", "power_limit_w"),
            *("num_threads", "world_size", "backend", "meshes", "step_on", "num_params"),
            *("num_trainable_params", "num_embedding_params", "param_dtypes"),
            *("autocast_dtype", "checkpointing", "compiled", "params", "tokens_per_step"),
            *("samples_per_step", "model_flop_per_step", "num_unprofiled_steps"),
            *("tokens_per_rank_step", "samples_per_rank_step"),
            "capture_overhead_ratio",
        )
    )


def test_devices_and_steps(report):
    (device,) = report["devices"]
    assert set(device) == {
        *("rank", "device", "window", "steps", "kernels", "utilization", "host"),
        "num_steps",
    }
    (step,) = device["steps"]
    assert set(step) == {
        *("step", "name", "open_ended", "communication_ns", "waterfall", "contention_ns"),
        *TIMES,
        *FIGURES,
    }
    assert set(device["utilization"]) == UTILIZATION


def test_utilization(report):
    use = report["utilization"]
    assert set(use) == UTILIZATION
    assert [share["name"] for share in use["waterfall"]] == WATERFALL
    assert {key for share in use["waterfall"] for key in share} == {"name", "ratio"}
    assert {key for row in use["by_dtype"] for key in row} == {
        *("dtype", "executed_flop", "peak_flop_per_s", "utilization_ratio"),
    }
    assert set(use["efficiency"]) == {
        *("model_over_executed", "kernel_efficiency", "parallel_efficiency"),
    }
    assert set(use["bounds"]) == {"executed_flop", "hfu"}
    for name in ("executed_flop", "model_flop", "recompute_flop"):
        assert type(use[name]) is int


def test_roofline(report):
    assert [set(row) for row in report["roofline"]] == [
        {
            *("op", "shapes", "dtype", "count", "time_ns", "flop", "bytes", "flop_per_s"),
            *("bytes_per_s", "bound", "roof_ratio", "lost_ns", "recompute_count"),
            "recompute_time_ns",
        }
    ]


def test_top_kernels(make, three_kernels):
    kernels = (
        KernelWork("gemm", "aten::mm", "2x2", "compute", is_counted=True, count=1, time_ns=5),
    )
    made = make.report(replace(three_kernels, kernels=kernels))
    (row,) = json.loads(json_text.render(made))["top_kernels"]
    assert set(row) == {
        *("name", "op", "shapes", "kind", "is_counted", "count", "time_ns", "ratio"),
        "least_bytes",
    }


def test_host(make):
    step = replace(make.step(1, make.times(compute=1, idle=10)), idle=IdleTimes(1, 2, 3, 4))
    made = json.loads(json_text.render(make.report(make.digest(0, make.device(step)))))
    for host in (made["host"], made["devices"][0]["host"]):
        assert set(host) == {
            *("idle_ns", "data_loader_ns", "sync_ns", "launch_ns", "unknown_ns"),
        }
        assert sum(host.values()) == 2 * host["idle_ns"] == 20


def test_copies(make, three_kernels):
    work = CopyWork("HtoD", "pageable", count=1, time_ns=5, num_bytes=64, exposed_ns=5)
    made = make.report(replace(three_kernels, copies=(work,)))
    assert json.loads(json_text.render(made))["copies"] == [
        {
            "direction": "HtoD",
            "memory": "pageable",
            "count": 1,
            "time_ns": 5,
            "bytes": 64,
            "exposed_ns": 5,
        }
    ]


def test_findings(report):
    assert report["findings"]
    for finding in report["findings"]:
        assert set(finding) == {
            *("code", "severity", "title", "evidence", "advice", "lost_ratio", "lost_usd"),
        }
        assert finding["severity"] in {"error", "warning", "info"}
        lost, usd = finding["lost_ratio"], report["cost"]["usd_per_step"]
        assert finding["lost_usd"] == (None if lost is None else lost * usd)


def test_cost(report):
    assert set(report["cost"]) == {
        *("usd_per_gpu_hour", "gpu_hours_per_step", "usd_per_step"),
        *("usd_per_million_tokens", "lost_usd_per_step"),
    }
    assert list(report["cost"]["lost_usd_per_step"]) == WATERFALL[:-1]


def test_what_if(report):
    """Digests that tell nothing of what a device did cannot be replayed."""
    assert report["what_if"] is None
