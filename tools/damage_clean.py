"""Clean traces: three steps of compute, a collective and a copy, to the nanosecond.

``CLEAN`` has everything that the profiler of today writes; ``LEGACY`` is the list of functions
of the profiler before Kineto.
"""

from __future__ import annotations

from typing import Any

from tools.damage_base import BASE_NS, Trace
from tools.layouts import Event, Num

__all__ = [
    "ALL_REDUCE",
    "CLEAN",
    "GEMM",
    "HOST_PID",
    "LEGACY",
    "RELU",
    "at",
    "clean",
    "device_event",
    "host_event",
    "launch",
    "micro",
    "rank_trace",
]

GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::relu<float>>(int)"
HTOD = "Memcpy HtoD (Pinned -> Device)"
HOST_PID = 4242
_OFFSET_NS = 5_101_149_000_000_000  # since the base of the clock, as after some months
_STEP_NS = 1_000_000
NUM_STEPS = 3


def micro(nanoseconds: int) -> Num:
    """Spell a duration as libkineto does: microseconds with three decimals."""
    sign, rest = "-" * (nanoseconds < 0), abs(nanoseconds)
    return Num(f"{sign}{rest // 1000}.{rest % 1000:03}")


def at(nanoseconds: int) -> Num:
    """Spell an instant, counted from the beginning of the first step."""
    return micro(_OFFSET_NS + nanoseconds)


def host_event(
    category: str, name: str, start: int, end: int, *, pid: int = HOST_PID, **args: object
) -> dict[str, Any]:
    """Draw an event of the host, times in ns; ``_`` in the name of an argument is a blank."""
    event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": pid}
    event |= {"ts": at(start), "dur": micro(end - start)}
    return event | {"args": {key.replace("_", " "): value for key, value in args.items()}}


def device_event(
    name: str, start: int, end: int, correlation: int | None, *, on: int = 0, stream: int = 7
) -> dict[str, Any]:
    """Draw a kernel or copy, by its name; ``correlation`` ties it to its launch."""
    copy = name.startswith(("Memcpy", "Memset"))
    category = {"Memc": "gpu_memcpy", "Mems": "gpu_memset"}[name[:4]] if copy else "kernel"
    event = host_event(category, name, start, end) | {"pid": on, "tid": stream}
    link = {} if correlation is None else {"correlation": correlation}
    args: dict[str, Any] = {
        "External id": (correlation or 0) + 5000,
        "device": on,
        "context": 1,
    }
    args |= {"stream": stream} | link
    args |= {"bytes": 4096} if copy else {"grid": [64, 1, 1], "block": [128, 1, 1]}
    return event | {"args": args}


def launch(
    start: int, correlation: int, name: str = "cudaLaunchKernel", *, pid: int = HOST_PID
) -> dict[str, Any]:
    """Draw the host's call that launched what has the same correlation; it takes 4.5 us."""
    event = host_event("cuda_runtime", name, start, start + 4_500, pid=pid)
    args = {"External id": correlation + 5000, "cbid": 211, "correlation": correlation}
    return event | {"args": args}


def _op(name: str, start: int, end: int, external: int, *, pid: int) -> dict[str, Any]:
    event = host_event("cpu_op", name, start, end, pid=pid)
    args = {"External id": external, "Record function id": 0, "Ev Idx": external}
    shapes = {"Input Dims": [[64, 128], [128, 32]], "Input type": ["c10::BFloat16", "float"]}
    return event | {"args": args | shapes}


def _collective() -> dict[str, Any]:
    return {
        "Collective name": "allreduce",
        "In msg nelems": 65536,
        "dtype": "BFloat16",
        "Group size": 1,
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": "[0]",
    }


def _step(number: int, start: int, pid: int, device: int) -> dict[str, Event]:
    """Draw one step: a product, a collective beside it, a copy, an activation."""
    first = 100 * number
    reduce = device_event(
        ALL_REDUCE, start + 350_500, start + 600_750, first + 2, on=device, stream=20
    )
    flow = {"cat": "ac2g", "name": "ac2g", "id": first + 1}
    mark = f"ProfilerStep#{number + 6}"
    found: dict[str, Event] = {
        "step": host_event("user_annotation", mark, start, start + _STEP_NS, pid=pid),
        "forward": host_event(
            "user_annotation", "forward", start + 5_000, start + 45_000, pid=pid, External_id=7
        ),
        "op": _op("aten::mm", start + 10_000, start + 40_000, first + 5001, pid=pid),
        "record": _op(
            "record_param_comms", start + 50_000, start + 62_125, first + 5002, pid=pid
        ),
        "python": host_event(
            "python_function", "model.py(12): forward", start, start + 90_000, pid=pid
        ),
        "call": launch(start + 20_125, first + 1, pid=pid),
        "call_reduce": launch(start + 55_000, first + 2, "cudaLaunchKernelExC", pid=pid),
        "call_copy": launch(start + 70_000, first + 3, "cudaMemcpyAsync", pid=pid),
        "call_relu": launch(start + 80_000, first + 4, pid=pid),
        "flow_from": {"ph": "s", "pid": pid, "tid": pid, "ts": at(start + 20_125)} | flow,
        "flow_to": {"ph": "f", "pid": device, "tid": 7, "ts": at(start + 100_125), "bp": "e"}
        | flow,
        "gemm": device_event(GEMM, start + 100_125, start + 400_250, first + 1, on=device),
        "reduce": reduce | {"args": reduce["args"] | _collective()},
        "copy": device_event(
            HTOD, start + 550_000, start + 700_500, first + 3, on=device, stream=21
        ),
        "relu": device_event(RELU, start + 720_001, start + 800_002, first + 4, on=device),
        "drawn": host_event("gpu_user_annotation", mark, start + 100_124, start + 800_003)
        | {"pid": device, "tid": 7},
        "memory": {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]"}
        | {"pid": pid, "tid": pid, "ts": at(start + 12_000), "args": {"Bytes": 8192}},
    }
    return {f"{handle}{number}": event for handle, event in found.items()}


def _rows(pid: int, device: int) -> dict[str, Event]:
    def name(key: str, row: int, thread: int, value: str) -> Event:
        args = {"name": value}
        return {"name": key, "ph": "M", "ts": at(0), "pid": row, "tid": thread, "args": args}

    return {
        "row_host": name("process_name", pid, 0, "python"),
        "row_device": name("process_name", device, 0, "python"),
        "row_thread": name("thread_name", pid, pid, f"thread {pid} (python)"),
        "row_stream": name("thread_name", device, 7, "stream 7"),
    }


def _end(last: int) -> dict[str, Event]:
    mark = {"ph": "i", "s": "g"}
    span = host_event("Trace", "PyTorch Profiler (0)", 0, last, Op_count=3)
    return {
        "span": span | {"pid": "Spans", "tid": "PyTorch Profiler"},
        "begin": {"name": "Iteration Start: PyTorch Profiler", "pid": "Traces"}
        | mark
        | {"tid": "Trace PyTorch Profiler", "ts": at(0)},
        "end": {"name": "Record Window End", "pid": "", "tid": "", "ts": at(last)} | mark,
    }


def _header(rank: int, world_size: int) -> dict[str, Any]:
    group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl"}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
        "record_shapes": 1,
        "trace_id": f"{0xA11CE000 + rank:032x}",
        "distributedInfo": {
            "backend": "nccl",
            "rank": rank,
            "world_size": world_size,
            "pg_count": 1,
            "pg_config": [group | {"pg_size": world_size, "ranks": list(range(world_size))}],
            "nccl_version": "2.27.5",
        },
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
        "traceName": f"/job/rank{rank}.json",
    }


def rank_trace(rank: int, world_size: int, *, start: int = 0, device: int = 0) -> Trace:
    """Draw the trace of one rank of a job; every rank has its own process."""
    pid = HOST_PID + 1000 * rank
    events: dict[str, Event] = {}
    for number in range(1, NUM_STEPS + 1):
        events |= _step(number, start + (number - 1) * _STEP_NS, pid, device)
    events |= _rows(pid, device)
    events |= _end(start + NUM_STEPS * _STEP_NS)
    return Trace(events, _header(rank, world_size))


def _legacy() -> Trace:
    """Draw functions on CPU and GPU as torch before Kineto did, times from the start."""
    events: dict[str, Event] = {}
    for number in range(1, 5):
        begin = 100_000 * number
        row = {"tid": 1, "pid": "CPU functions", "args": {}}
        op = {"name": "aten::mul", "ph": "X", "ts": micro(begin + 125), "dur": micro(42_750)}
        flow = {"id": number, "cat": "cpu_to_cuda", "args": {}}
        kernel = {"ts": micro(begin + 30_001), "dur": micro(51_500), "tid": 0, "args": {}}
        on = {"tid": 0, "pid": "CUDA functions"}
        events |= {
            f"op{number}": op | row,
            f"from{number}": {"name": "aten::mul", "ph": "s", "ts": op["ts"]} | row | flow,
            f"to{number}": {"name": "mul_kernel", "ph": "f", "ts": kernel["ts"]} | on | flow,
            f"kernel{number}": {"name": "mul_kernel", "ph": "X"} | kernel | on,
        }
    return Trace(events)


CLEAN = rank_trace(0, 1)
LEGACY = _legacy()


def clean(layout: str) -> Trace:
    """Return the clean trace of a layout: what it can express of it."""
    if layout == "leg":
        return LEGACY
    return Trace(CLEAN.events) if layout == "list" else CLEAN
