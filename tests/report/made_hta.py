"""What HTA found, made by hand: two ranks of which one has two streams."""

from __future__ import annotations

from typing import Any

BY: dict[str, Any] = {"distribution": "traceinsight", "version": "0.6.1"}
NOTHING: dict[str, Any] = {**BY, "critical_path": None, "queue_length": None}


def path(rank: int, **fields: Any) -> dict[str, Any]:
    """A critical path of 2 ms."""
    known: dict[str, Any] = {
        "step": 12,
        "num_edges": 40,
        "duration_ns": 2_000_000,
        "bound_by_ns": {"gpu_compute_bound": 500_000, "cpu_bound": 1_500_000},
    }
    return {"rank": rank, **known, **fields}


def queue(rank: int, stream: int, **fields: Any) -> dict[str, Any]:
    """The queue of a stream on which at most one launch waits."""
    known: dict[str, Any] = {"num_changes": 9, "mean": 0.5, "median": 0.5, "max": 1}
    return {"rank": rank, "stream": stream, **known, **fields}


def found(**fields: Any) -> dict[str, Any]:
    """Both analyses of ranks 0 and 1; rank 1 waits for others."""
    waits = {"cpu_bound": 1_000_000, "gpu_communication_bound": 7_000_000, "none": 0}
    known: dict[str, Any] = {
        "critical_path": [path(0), path(1, duration_ns=8_000_000, bound_by_ns=waits)],
        "queue_length": [
            queue(0, 7, num_changes=450, mean=2.393333, median=1.0, max=25),
            queue(0, 20),
            queue(1, 7, num_changes=5_346, mean=1_064.95, median=1_229.0, max=1_840),
        ],
    }
    return {**BY, **known, **fields}
