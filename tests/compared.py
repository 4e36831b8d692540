"""Simulated jobs of one shape that differ in what a test wants, and in chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from tools.simulate_costs import Costs, Ledger
from tools.simulate_events import AS_RUN, Conditions
from tools.simulate_gloo import run_job
from tools.simulate_job import Job
from tools.simulate_parts import Writer
from tools.simulate_program import Group, Work
from tools.simulate_record import record
from tools.simulate_training import Shape, data_parallel
from tools.simulate_write import trace_bytes

__all__ = ["GEMM", "GEMM_SHAPES", "OTHER_KERNEL", "SHAPE", "OtherGemm", "placed"]

SHAPE = Shape(tokens=4096, hidden=2048, layers=4, steps=9, first=5)
GEMM = "aten::mm"
GEMM_SHAPES = "2048x4096, 4096x2048"  # the gradient of a weight
OTHER_KERNEL = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_32x6_nt"
_OF_WEIGHTS = (SHAPE.activations[::-1], SHAPE.activations)


class OtherGemm(Writer):
    """Computes gradients of weights by another kernel, which takes half as long again."""

    def product(
        self,
        name: str,
        *dims: Sequence[int],
        sequence: int | None = None,
        is_recompute: bool = False,
    ) -> None:
        """Multiply matrices, the gradients of weights otherwise."""
        self.is_other = dims == _OF_WEIGHTS
        super().product(name, *dims, sequence=sequence, is_recompute=is_recompute)

    def product_work(self, flop: int) -> Work:
        """Return the kernel of a matrix product."""
        work = super().product_work(flop)
        if not self.is_other:
            return work
        return replace(work, name=OTHER_KERNEL, ns=work.ns * 3 // 2)


@cache
def _files(
    seed: int, ranks: int, writer: Callable[..., Writer], slow: tuple[int, ...], steps: int
) -> dict[str, bytes]:
    ledger = Ledger(Costs(Random(seed), jitter=0.01))
    world = Group("0", "default_pg", tuple(range(ranks)))
    hosts = [writer(rank, ledger) for rank in range(ranks)]
    for host in hosts:
        data_parallel(host, replace(SHAPE, steps=steps), world)
    compute = dict.fromkeys(slow, AS_RUN.contention * 4 / 3)
    job = Job(hosts, [world], conditions=Conditions(compute=compute))
    return {
        f"rank{recording.rank}_trace.json": trace_bytes(job, recording)
        for recording in record(job, run_job(job))
    }


def placed(
    folder: Path,
    *,
    seed: int = 1,
    ranks: int = 4,
    writer: Callable[..., Writer] = Writer,
    slow: tuple[int, ...] = (),
    steps: int = SHAPE.steps,
) -> Path:
    """Write the traces of a job into a folder: of other chance, or with something changed."""
    folder.mkdir(parents=True)
    for name, content in _files(seed, ranks, writer, slow, steps).items():
        (folder / name).write_bytes(content)
    return folder
