"""Traces with a few collective calls, and what is found of these."""

from __future__ import annotations

from tests.traces import job, kernel, launch, op, write
from traceparse.ingest import read_trace
from traceparse.rank import digest, times

ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GENERIC = "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
SIZES = {"dtype": "BFloat16", "In msg nelems": 100, "Out msg nelems": 800, "Group size": 8}
OLD = {"dtype": "Float", "In msg size": 100, "Out msg size": 100, "Group size": 4}
GATHER = {"Collective name": "_allgather_base", **SIZES}
GROUPS = [{"pg_name": "0", "ranks": list(range(64))}, {"pg_name": "tp", "ranks": [8, 0]}]


def digest_of(tmp_path, events, *, rank=3, groups=GROUPS):
    info = {"distributedInfo": {**job(rank, 64), "pg_config": groups}}
    return digest(read_trace(write(tmp_path / "rank3.json", events, **info)))


def calls_of(tmp_path, events, **options):
    (device,) = digest_of(tmp_path, events, **options).devices
    assert device.calls.schema.equals(times.CALLS)
    return device.calls.to_pylist()


def call_of(tmp_path, *events, **options):
    """Return what is known of a single call, less times and stream."""
    (row,) = calls_of(tmp_path, list(events), **options)
    skipped = ("start_ns", "end_ns", "stream", "launched_ns", "step", "name")
    return {k: v for k, v in row.items() if v is not None and k not in skipped}


def comm(ts, dur, name=ALLREDUCE, **args):
    return kernel(ts, dur, name, **args)


def under(*around, name=GENERIC, correlation=1, **args):
    """Return a kernel that was launched inside of something."""
    at = 20 + correlation
    return [
        *around,
        launch(at, correlation=correlation),
        comm(100 * correlation, 5, name, correlation=correlation, **args),
    ]


def record(ts=10, dur=80, **args):
    return op(ts, dur, "record_param_comms", **args)
