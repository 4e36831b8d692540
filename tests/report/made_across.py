"""What ranks did together, made by hand: two ranks, of which rank 1 is slow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from traceparse.run import Report

MS = 1_000_000


def collective(name: str | None = "allreduce", **fields: Any) -> dict[str, Any]:
    """A row of collectives."""
    known: dict[str, Any] = {
        "process_group": "0",
        "ranks": [0, 1],
        "dtype": "BFloat16",
        "message_bytes": 16_777_216,
        "group_size": 2,
        "count": 4,
        "matched_ranks": 2,
        "transfer_ns": 40_500_000,
        "wait_ns": 7_303_974,
        "exposed_ns": 36_583_883,
        "algbw_bytes_per_s": 152.3e9,
        "busbw_bytes_per_s": 266.5e9,
        "last_rank_counts": {"1": 4},
    }
    return {"collective": name, **known, **fields}


def unsplit(name: str | None = "allreduce", **fields: Any) -> dict[str, Any]:
    """A row of which only the exposed time is known."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("transfer_ns", "wait_ns", "algbw_bytes_per_s", "busbw_bytes_per_s")
    )
    return collective(name, **{**nothing, "matched_ranks": 1, "last_rank_counts": {}, **fields})


def clock(**fields: Any) -> dict[str, Any]:
    known = {
        "aligned": True,
        "residual_ns": 500,
        "offsets_ns": {"0": 0, "1": -1_300_000},
        "drift_ppm": {"0": 0.0, "1": 0.0},
    }
    return {**known, **fields}


def loss(**fields: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "step_ns": 900 * MS,
        "exposed_transfer_ratio": 0.116,
        "exposed_wait_ratio": 0.125,
        "pipeline_wait_ratio": 0.0,
        "exposed_unsplit_ratio": 0.0,
        "contention_ratio": None,
        "comm_ratio": None,
        "load_balance": 0.75,
        "serialization": 0.9,
        "transfer": 0.884,
        "parallel_efficiency": 0.597,
    }
    return {**known, **fields}


def split(use: dict[str, Any], *, pipeline: float = 0.0, rest: float = 0.0) -> dict[str, Any]:
    """The same utilization, its exposed communication told apart."""
    waterfall = []
    for share in use["waterfall"]:
        if share["name"] == "exposed_comm":
            names = ("exposed_wait", "pipeline_wait", "exposed_transfer", "exposed_comm")
            wait = share["ratio"] - pipeline - rest - 0.02
            ratios = (wait, pipeline, 0.02, rest)
            parts = zip(names, ratios, strict=True)
            waterfall += [{"name": name, "ratio": ratio} for name, ratio in parts]
        else:
            waterfall.append(share)
    return {**use, "waterfall": waterfall}


def together(report: Report, *, pipeline_ns: int = 0, **fields: Any) -> Report:
    """The report, and in it what its ranks did together."""
    parts = {
        "exposed_transfer": 50 * MS,
        "exposed_wait": 150 * MS - pipeline_ns,
        "pipeline_wait": pipeline_ns,
        "exposed_unsplit": 0,
    }
    devices = tuple(
        replace(
            device,
            steps=tuple(
                replace(step, communication_ns=parts if step.times else None)
                for step in device.steps
            ),
        )
        for device in report.devices
    )
    known: dict[str, Any] = {
        "devices": devices,
        "collectives": [
            collective(),
            collective(
                "all_gather", dtype="Half", message_bytes=192, last_rank_counts={"0": 1}
            ),
            unsplit("broadcast", dtype=None, message_bytes=None, process_group=None),
        ],
        "clock": clock(),
        "scaling_loss": loss(),
    }
    return replace(report, **{**known, **fields})
