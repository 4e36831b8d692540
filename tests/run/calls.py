"""Collective calls of hand-made jobs, as digests have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from traceparse.rank import DeviceDigest, KernelCounts, Times
from traceparse.rank.times import CALLS, EXPOSED

NO_KERNELS = KernelCounts(0, 0, 0, 0, 0, 0)


def call(start: int, end: int, **told: Any) -> dict[str, Any]:
    usual = {
        "collective": "allreduce",
        "dtype": "Float",
        "message_bytes": 4096,
        "group": "0",
        "group_ranks": "0-1",
        "group_size": 2,
        "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "told_by": "kernel",
        "is_partial": False,
    }
    return {**usual, **told, "start_ns": start, "end_ns": end}


def device(
    calls: Iterable[Mapping[str, Any]], exposed: Iterable[tuple[int, int]] = ()
) -> DeviceDigest:
    rows = sorted(calls, key=lambda row: (row["start_ns"], row["end_ns"]))
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=CALLS)
    spans = pa.Table.from_pylist(
        [{"start_ns": start, "end_ns": end} for start, end in exposed], schema=EXPOSED
    )
    window = Times(*(0,) * 11)
    return DeviceDigest(0, window, (), NO_KERNELS, calls=table, exposed=spans)
