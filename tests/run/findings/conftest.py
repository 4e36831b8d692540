"""Views made by hand: steps of 1,000 ns in all, of which one is a tenth of a percent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.run.conftest import Maker
from traceparse.run.findings import View

H100 = {
    "id": "h100-sxm",
    "peak_flop_per_s": {"fp32": 67e12, "tf32": 494.7e12, "bf16": 989.4e12, "fp16": 989.4e12},
    "hbm_bytes_per_s": 3.35e12,
}


class Seen:
    """Builds views and rows; what is not given is as it should be."""

    def view(self, *, compute=900, comm=0, copy=0, overlap=0, idle=0, **fields: Any) -> View:
        """A run of 1,000 ns unless its parts say otherwise; ``comm`` is the exposed part."""
        times = Maker().times(compute=compute, comm=comm, copy=copy, idle=idle)
        values = {name: getattr(times, name) for name in times.__slots__}
        values |= {"overlap_ns": overlap, "comm_ns": comm + overlap}
        return View(times=type(times)(**values), **fields)

    def product(
        self, shapes: str, *, reached: float, op="aten::mm", dtype="bf16", **fields: Any
    ) -> dict[str, Any]:
        """A row of the roofline that takes 1,000 ns and should take ``reached`` of them."""
        return {
            "op": op,
            "shapes": shapes,
            "dtype": dtype,
            "count": 1,
            "time_ns": 1_000,
            "flop": 0,
            "bytes": 0,
            "flop_per_s": 0.0,
            "bytes_per_s": 0.0,
            "bound": "compute",
            "roof_ratio": reached,
            "lost_ns": round(1_000 * (1 - reached)),
            "recompute_count": 0,
            "recompute_time_ns": 0,
            **fields,
        }

    def collective(self, name="allreduce", **fields: Any) -> dict[str, Any]:
        """A row of ``collectives``."""
        return {
            "process_group": "0",
            "ranks": [0, 1, 2, 3],
            "collective": name,
            "dtype": "BFloat16",
            "message_bytes": 1 << 24,
            "group_size": 4,
            "count": 3,
            "transfer_ns": 300,
            "wait_ns": 0,
            "exposed_ns": 300,
            **fields,
        }

    def kernel(self, op: str | None, time_ns: int, **fields: Any) -> dict[str, Any]:
        """A row of ``top_kernels``: a kernel that computes for an operator without FLOP."""
        return {
            "name": f"{op}_kernel",
            "op": op,
            "shapes": "8",
            "kind": "compute",
            "is_counted": False,
            "count": 2,
            "time_ns": time_ns,
            "least_bytes": None,
            **fields,
        }


@pytest.fixture
def seen() -> Seen:
    """The builder."""
    return Seen()


@pytest.fixture
def h100() -> dict[str, Any]:
    """Field ``run.accelerator``, as far as rules look at it."""
    return H100
