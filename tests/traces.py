"""Small traces for tests, an event a line: times in whole microseconds unless given as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BASE_NS = 1_700_000_000_000_000_000
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def span(cat: str, name: str, ts: Any, dur: Any, **args: Any) -> dict[str, Any]:
    pid = args.pop("pid", 1)
    tid = args.pop("tid", 1)
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def kernel(ts: Any, dur: Any, name: Any = "gemm", *, correlation: Any = 0, **args: Any):
    filled = {"device": 0, "stream": 7, "correlation": correlation, **args}
    return span("kernel", name, ts, dur, **filled)


def all_reduce(ts: Any, dur: Any, *, correlation: int = 0):
    """Return a collective of ranks 0 and 1 over 256 floats, as NCCL's kernels tell of it."""
    told = {
        "Collective name": "allreduce",
        "dtype": "Float",
        "In msg nelems": 256,
        "Out msg nelems": 256,
        "Group size": 2,
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1]",
    }
    return kernel(ts, dur, ALL_REDUCE, correlation=correlation, **told)


def copy(ts: Any, dur: Any, *, correlation: int = 0):
    return span(
        "gpu_memcpy", "Memcpy HtoD", ts, dur, device=0, stream=7, correlation=correlation
    )


def launch(ts: Any, *, correlation: int, name: str = "cudaLaunchKernel"):
    return span("cuda_runtime", name, ts, 1, correlation=correlation)


def op(ts: Any, dur: Any, name: str = "aten::mm", **args: Any):
    return span("cpu_op", name, ts, dur, **args)


def annotation(ts: Any, dur: Any, name: str, **args: Any):
    return span("user_annotation", name, ts, dur, **args)


def step(number: int, ts: Any, dur: Any):
    return annotation(ts, dur, f"ProfilerStep#{number}")


def overhead(ts: Any, dur: Any, name: str = "Activity Buffer Request"):
    return span("overhead", name, ts, dur, pid=-1, tid=0)


def window(ts: Any, dur: Any, name: str = "PyTorch Profiler (0)"):
    return span("Trace", name, ts, dur, pid="Spans", tid="PyTorch Profiler")


def document(events: list[dict[str, Any]], **header: Any) -> dict[str, Any]:
    base = {"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS}
    return {**base, **header, "traceEvents": events}


def job(rank: int, world_size: int = 1, backend: str = "nccl") -> dict[str, Any]:
    return {"rank": rank, "world_size": world_size, "backend": backend}


def write(path: Path, events: list[dict[str, Any]], **header: Any) -> Path:
    path.write_text(json.dumps(document(events, **header)))
    return path


def simple(start: int = 100, *, rank: int = 0, world_size: int = 1, **more: Any):
    """Return events and header of a rank: 6 us of compute, 4 of which 2 alone of comm."""
    events = [
        kernel(start, 6),
        kernel(start + 4, 4, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    ]
    return events, {"distributedInfo": job(rank, world_size), **more}


def write_rank(folder: Path, rank: int, world_size: int, *, start: int = 100) -> Path:
    events, header = simple(start, rank=rank, world_size=world_size)
    return write(folder / f"rank{rank}.json", events, **header)
