"""Small jobs that have one thing the matter with them, or nearly: for findings.

A job trains as :class:`Training` says. What is not said is as it should be: products that fill
an H100, a gradient that is reduced while they run, a batch from pinned memory. So whatever is
found in a job is found because of what was said of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from random import Random

from tools.simulate_costs import Costs, Ledger
from tools.simulate_events import AS_RUN, Conditions
from tools.simulate_gloo import run_job
from tools.simulate_job import Job
from tools.simulate_parts import Writer, product_args
from tools.simulate_program import COMPUTE_STREAM, Group, Sync, Work
from tools.simulate_record import record
from tools.simulate_write import trace_bytes

__all__ = ["Training", "files_of"]

_COMM_STREAM = 20
_LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


@dataclass(frozen=True, slots=True)
class Training:
    """What each rank does in a step, in this order.

    The loader takes ``load_ns``; ``batch_bytes`` are copied from ``batch_memory``;
    ``num_products`` of ``rows`` x ``inner`` and ``inner`` x ``columns``, each followed by
    ``num_pointwise`` kernels and ``num_syncs`` waits of the host; ``num_small`` kernels that do
    next to nothing. Before the last products, or after them if not ``is_overlapped``, come
    ``num_reduces`` all-reduces of ``reduced`` elements.
    """

    ranks: int = 4
    steps: int = 5
    num_products: int = 8
    rows: int = 4096
    inner: int = 4096
    columns: int = 4096
    dtype: str = "c10::BFloat16"
    kernel: str = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN"
    tflop_per_s: float = 720.0
    num_pointwise: int = 1
    num_small: int = 0
    num_syncs: int = 0
    num_reduces: int = 1
    reduced: int = 8 << 20
    is_overlapped: bool = True
    batch_bytes: int = 1 << 20
    batch_memory: str = "Pinned"
    load_ns: int = 0
    conditions: Conditions = field(default=AS_RUN)

    def job(self) -> Job:
        """Return the job, the same always."""
        chance = Random(str(self))  # noqa: S311 - not a secret
        ledger = Ledger(Costs(chance), "BFloat16")
        world = Group("0", "default_pg", tuple(range(self.ranks)))
        hosts = [Writer(rank, ledger) for rank in range(self.ranks)]
        for host in hosts:
            host.pause(20_000)
            for number in range(self.steps):
                name = f"ProfilerStep#{number + 2}"
                with host.span(name, "user_annotation", step=number + 2):
                    self._step(host, world)
                host.pause(2_000)
        return Job(hosts, [world], conditions=self.conditions)

    def _step(self, host: Writer, world: Group) -> None:
        with host.span(_LOADER, "user_annotation"):
            host.pause(1_000 + self.load_ns)
        host.copy(f"Memcpy HtoD ({self.batch_memory} -> Device)", self.batch_bytes)
        for number in range(self.num_products):
            if self.is_overlapped and number == self.num_products // 2:
                self._reduce(host, world)
            self._product(host)
            for _ in range(self.num_pointwise):
                host.pointwise("aten::gelu", "Gelu", (self.rows, self.columns))
            for _ in range(self.num_syncs):
                with host.span("aten::item", args={"Input Dims": [[]]}):
                    host.add(Sync(COMPUTE_STREAM, host.costs.host(1_500)))
        for _ in range(self.num_small):
            host.pointwise("aten::add_", "Add", (16, 16))
        if not self.is_overlapped:
            self._reduce(host, world)
        host.wait(COMPUTE_STREAM, _COMM_STREAM)

    def _product(self, host: Writer) -> None:
        dims = (self.rows, self.inner), (self.inner, self.columns)
        flop, args = product_args(*dims, dtype=self.dtype)
        duration_ns = round(flop / self.tflop_per_s / 1_000)
        work = Work("compute", self.kernel, COMPUTE_STREAM, duration_ns)
        with host.span("aten::mm", args=args, flop=flop):
            host.launch(work)

    def _reduce(self, host: Writer, world: Group) -> None:
        for _ in range(self.num_reduces):
            host.collective(world, "allreduce", self.reduced, _COMM_STREAM)

    @property
    def flop_per_step(self) -> int:
        """What all ranks together work in a step."""
        dims = self.rows, self.inner, self.columns
        return 2 * prod(dims) * self.num_products * self.ranks


def files_of(job: Job) -> Mapping[str, bytes]:
    """Run a job, and return its traces by the names of their files."""
    return {
        f"rank{recording.rank}_trace.json": trace_bytes(job, recording)
        for recording in record(job, run_job(job))
    }
