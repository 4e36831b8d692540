"""Digests made by hand: what a rank's trace tells of its work, without a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from traceparse.ingest import FileHealth, Header
from traceparse.rank import (
    DeviceDigest,
    DtypeWork,
    KernelCounts,
    OperatorWork,
    RankDigest,
    StepTimes,
    StepWork,
    Times,
)
from traceparse.run import assemble
from traceparse.run.asked import Asked, ask

GIB = 1 << 30
H100 = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "computeMajor": 9,
    "computeMinor": 0,
    "warpSize": 32,
    "numSms": 132,
    "totalGlobalMem": 79 * GIB,
}
V100 = {**H100, "name": "Tesla V100-SXM2-16GB", "computeMajor": 7, "numSms": 80}
V100["totalGlobalMem"] = 16 * GIB
A100 = {**H100, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "numSms": 108}


class Maker:
    """Builds digests; what is not given is small, whole and silent."""

    def times(self, *, compute=0, comm=0, copy=0, idle=0, start=0) -> Times:
        """A partition in which nothing overlaps."""
        busy = compute + comm + copy
        span = busy + idle
        return Times(start, start + span, span, busy, compute, comm, copy, 0, comm, copy, idle)

    def work(self, dtype="bf16", flop=0, recompute=0, bounds=None, maybe_tf32=0) -> DtypeWork:
        lowest, highest = bounds or (flop, flop)
        return DtypeWork(dtype, flop, recompute, lowest, highest, maybe_tf32)

    def step(
        self, number, times, *works: DtypeWork, counted=0, told=True, open_ended=False
    ) -> StepTimes:
        """A step with its work; ``told=False`` for a trace without shapes."""
        name = None if number is None else f"ProfilerStep#{number}"
        work = StepWork(counted, works) if told else None
        return StepTimes(number, name, open_ended, times, work)

    def operator(self, op="aten::mm", dtype="bf16", **fields: Any) -> OperatorWork:
        known: dict[str, Any] = {
            "shapes": "[[1, 2], [2, 3]]",
            "is_recompute": False,
            "count": 1,
            "time_ns": 1_000,
            "flop": 0,
            "recompute_flop": 0,
            "least_bytes": 0,
        }
        return OperatorWork(op=op, dtype=dtype, **{**known, **fields})

    def device(self, *steps: StepTimes, device=0, unattributed=0) -> DeviceDigest:
        window = self.times(compute=1)
        kernels = KernelCounts(10, 1_000, 0, 0, int(unattributed > 0), unattributed)
        return DeviceDigest(device, window, steps, kernels)

    def digest(
        self,
        rank: int | None,
        *devices: DeviceDigest,
        world_size: int | None = 1,
        told: tuple[dict[str, Any], ...] = (H100,),
        facts: dict[str, Any] | None = None,
        **fields: Any,
    ) -> RankDigest:
        """A trace: ``told`` is what its header says of devices."""
        header = Header(rank, world_size, "nccl", 0, (), devices=told, facts=facts or {})
        health = FileHealth(f"rank{rank}.json", rank, "distributedInfo", "K-new", 100, 10)
        return RankDigest(header, health, devices, (), **fields)

    def report(self, *digests: RankDigest, steps=None, **asked: Any):
        """Assemble a report as a user would who gives these options."""
        return assemble(digests, steps=steps, asked=ask(**asked) if asked else Asked())


@pytest.fixture
def make() -> Maker:
    """The maker."""
    return Maker()


@pytest.fixture
def three_kernels(make: Maker) -> RankDigest:
    """A step of 1,000 ns on an H100, worked out by hand.

    A product in bf16 runs for 400 ns, one that repeats it for 200 ns, something uncounted for
    100 ns; 100 ns of exposed comm, 50 ns of exposed copy, 150 ns idle. At 989.4 TFLOP/s an
    H100 does 989,400 FLOP a nanosecond: 300 ns at the peak for the first, 100 for the second.
    """
    first, again = 300 * 989_400, 100 * 989_400
    step = make.step(
        1,
        make.times(compute=700, comm=100, copy=50, idle=150),
        make.work("bf16", first + again, again),
        counted=600,
    )
    shape = {"shapes": "[[8, 8], [8, 8]]", "count": 1}
    return make.digest(
        0,
        make.device(step),
        operators=(
            make.operator(**shape, time_ns=400, flop=first, least_bytes=3_350 * 100),
            make.operator(
                **shape,
                time_ns=200,
                flop=again,
                recompute_flop=again,
                is_recompute=True,
                least_bytes=3_350 * 100,
            ),
        ),
        conventions=("causal=half",),
        shortest_kernel_ns=50,
    )


def renamed(digest: RankDigest, rank: int | None) -> RankDigest:
    """The same trace, as another rank's."""
    return replace(
        digest,
        header=replace(digest.header, rank=rank),
        health=replace(digest.health, rank=rank, path=f"rank{rank}.json"),
    )
