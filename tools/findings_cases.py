"""Of each finding a job that has it, and one that nearly does and must not.

``tools/findings_table.py`` prints them as a table, ``tests/run/findings/test_table.py`` checks
them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from tools import findings_figures as figures
from tools.findings_figures import Report
from tools.simulate_events import Conditions
from tools.simulate_findings import Training, files_of
from tools.simulate_job import Job
from tools.simulate_pipeline import Place, pipelined
from tools.simulate_program import Group
from tools.simulate_repeated import checkpointed
from tools.simulate_scenarios import Setting, build

__all__ = ["CASES", "Case", "Scene"]

Change: TypeAlias = Callable[[dict[str, bytes]], None]


def _as_it_is(_: dict[str, bytes]) -> None:
    """Leave the files of a job as they are."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A job in words and as one, and the options that it is analyzed with."""

    words: str
    job: Job | Training
    change: Change = _as_it_is
    options: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write its traces."""
        job = self.job.job() if isinstance(self.job, Training) else self.job
        files = dict(files_of(job))
        self.change(files)
        for name, data in files.items():
            (folder / name).write_bytes(data)


@dataclass(frozen=True, slots=True)
class Case:
    """A finding with its two jobs; ``figures`` are what it is judged by, of either.

    ``title`` is a part of the finding's, where a code stands for several.
    """

    code: str
    triggered: Scene
    nearly: Scene
    figures: Callable[[Report], str]
    title: str = ""

    @property
    def key(self) -> str:
        """What tells the case apart."""
        return f"{self.code}: {self.title}" if self.title else self.code


# -- changes of files


def _without_shapes(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        trace = json.loads(data)
        for event in trace["traceEvents"]:
            for column in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs"):
                event.get("args", {}).pop(column, None)
        files[name] = json.dumps(trace).encode()


def _slowed(ratio: float) -> Change:
    def change(files: dict[str, bytes]) -> None:
        for name in list(files):
            rank = int(re.sub(r"\D", "", name))
            facts = {"rank": rank, "capture_overhead_ratio": ratio}
            files[f"rank{rank}_facts.json"] = json.dumps(facts).encode()

    return change


# -- jobs


def _scenario(name: str, *, ranks: int = 4, conditions: Conditions | None = None) -> Job:
    job = build(name, ranks=ranks, seed=1)
    return job if conditions is None else replace(job, conditions=conditions)


def _pipeline(*layers: int) -> Job:
    """Return a pipeline whose stages have so many layers."""
    setting = Setting(Random(1), len(layers))  # noqa: S311 - not a secret
    shape = setting.shape(layers=1, steps=5)
    stages = Group("1", "mesh_pp", tuple(range(len(layers))))
    hosts = setting.hosts()
    for host, own in zip(hosts, layers, strict=True):
        pipelined(host, replace(shape, layers=own), Place(None, stages, None), micro_batches=4)
    return Job(hosts, [setting.world, stages])


def _checkpoints(*, num_kept: int) -> Job:
    setting = Setting(Random(1), 4)  # noqa: S311 - not a secret
    shape, hosts = setting.shape(layers=8), setting.hosts()
    for host in hosts:
        checkpointed(host, shape, setting.world, num_kept=num_kept)
    return Job(hosts, [setting.world])


_SLOW = {2: Fraction(4, 3)}
_WELL = Training()
_LATE = Training(is_overlapped=False)
_THIN = Training(rows=1536, inner=4096, columns=1536, tflop_per_s=500.0, num_products=24)
_FP32 = Training(dtype="float", kernel="sm90_xmma_gemm_f32f32_f32f32_f32_nn", tflop_per_s=50.0)
_TF32 = replace(_FP32, kernel="sm90_xmma_gemm_f32f32_tf32f32_f32_nn", tflop_per_s=350.0)
_FAST = Training(num_pointwise=0, num_products=24, reduced=1 << 16)

CASES: tuple[Case, ...] = (
    Case(
        "communication_bound",
        Scene("48 MB of gradients reduced after backward", replace(_LATE, reduced=24 << 20)),
        Scene("30 MB of them", replace(_LATE, reduced=15 << 20)),
        figures.exposed,
    ),
    Case(
        "low_overlap",
        Scene("16 MB of gradients reduced after backward", replace(_LATE, reduced=8 << 20)),
        Scene("14 MB of them", replace(_LATE, reduced=7 << 20)),
        figures.exposed,
    ),
    Case(
        "tiny_collectives",
        Scene("40 gradients reduced one by one", replace(_LATE, num_reduces=40, reduced=1_000)),
        Scene("the same in 8 buckets", replace(_LATE, num_reduces=8, reduced=5_000)),
        figures.small,
    ),
    Case(
        "straggler",
        Scene(
            "kernels of rank 2 a third slower",
            _scenario("ddp", conditions=Conditions(compute=_SLOW)),
        ),
        Scene(
            "4 % slower, as chips of one kind are",
            _scenario("ddp", conditions=Conditions(compute={2: Fraction(104, 100)})),
        ),
        figures.waiting,
        title="slow compute",
    ),
    Case(
        "straggler",
        Scene("the host of one rank 12 times slower", _scenario("straggler_host")),
        Scene("twice", _scenario("ddp", conditions=Conditions(host={2: Fraction(2)}))),
        figures.waiting,
        title="late host",
    ),
    Case(
        "straggler",
        Scene(
            "the link of one rank five times slower, groups across",
            _scenario("straggler_link", ranks=8),
        ),
        Scene(
            "the same where all ranks are in one group, and any may be it",
            _scenario("ddp", conditions=Conditions(link={2: Fraction(5)})),
        ),
        figures.waiting,
        title="slow link",
    ),
    Case(
        "pipeline_imbalance",
        Scene("four stages of 3, 3, 3 and 5 layers", _pipeline(3, 3, 3, 5)),
        Scene("of 3 layers each, and the loss in the last", _pipeline(3, 3, 3, 3)),
        figures.stages,
    ),
    Case(
        "launch_gaps",
        Scene("1,500 kernels that do next to nothing", replace(_WELL, num_small=1_500)),
        Scene("920 of them", replace(_WELL, num_small=920)),
        figures.host("launch"),
    ),
    Case(
        "data_loader",
        Scene("0.5 ms for each batch", replace(_WELL, load_ns=500_000, num_syncs=1)),
        Scene("0.05 ms", replace(_WELL, load_ns=50_000, num_syncs=1)),
        figures.host("data_loader"),
    ),
    Case(
        "synchronizing_calls",
        Scene(
            "the host waits after each of 64 small products",
            replace(_WELL, num_syncs=1, num_products=64, rows=512),
        ),
        Scene("after each of 8 large ones", replace(_WELL, num_syncs=1)),
        figures.host("sync"),
    ),
    Case(
        "memory_bound_kernels",
        Scene("four pointwise kernels after each product", replace(_WELL, num_pointwise=4)),
        Scene("one", _WELL),
        figures.term("other_kernels"),
    ),
    Case(
        "pageable_copies",
        Scene(
            "a batch of 4 MB from pageable memory",
            replace(_WELL, batch_memory="Pageable", batch_bytes=4 << 20),
        ),
        Scene("the same from pinned memory", replace(_WELL, batch_bytes=4 << 20)),
        figures.copies,
    ),
    Case(
        "gemm_shapes",
        Scene("144 tiles on 132 SMs", _THIN),
        Scene(
            "as slow, but of a shape that fills the device", replace(_WELL, tflop_per_s=500.0)
        ),
        figures.roof,
    ),
    Case(
        "slow_kernels",
        Scene(
            "products that fill the device at 500 TFLOP/s", replace(_WELL, tflop_per_s=500.0)
        ),
        Scene("at 690", replace(_WELL, tflop_per_s=690.0)),
        figures.roof,
    ),
    Case(
        "fp32_matmuls",
        Scene("products in fp32", _FP32),
        Scene("so fast that they ran as tf32", replace(_FP32, tflop_per_s=350.0)),
        figures.dtypes,
    ),
    Case(
        "tf32_matmuls",
        Scene("products in tf32", _TF32),
        Scene(
            "on a device that is no faster in 16 bits",
            _TF32,
            options={"peak": {"bf16": 494.7e12, "fp16": 494.7e12}},
        ),
        figures.dtypes,
    ),
    Case(
        "recompute_cost",
        Scene("checkpoints around all of eight blocks", _checkpoints(num_kept=0)),
        Scene("around one of them", _checkpoints(num_kept=7)),
        figures.term("recompute"),
    ),
    Case(
        "missing_shapes",
        Scene("recorded without shapes", _WELL, _without_shapes),
        Scene("with them", _WELL),
        figures.rows,
    ),
    Case(
        "missing_steps",
        Scene("three steps, the last of which nothing ends", replace(_WELL, steps=3)),
        Scene("four", replace(_WELL, steps=4)),
        figures.steps_judged,
    ),
    Case(
        "capture_overhead",
        Scene("profiled steps 14 % longer", _WELL, _slowed(0.14)),
        Scene("4 %", _WELL, _slowed(0.04)),
        figures.overhead,
    ),
    Case(
        "faster_than_peak",
        Scene("products at 1,040 TFLOP/s", replace(_WELL, tflop_per_s=1_040.0)),
        Scene("at 980", replace(_WELL, tflop_per_s=980.0, num_pointwise=2)),
        figures.speed,
    ),
    Case(
        "mfu_above_measured_maximum",
        Scene("nothing but products at 880 TFLOP/s", replace(_FAST, tflop_per_s=880.0)),
        Scene("at 780", replace(_FAST, tflop_per_s=780.0)),
        figures.speed,
    ),
    Case(
        "model_flop_exceed_executed",
        Scene(
            "a model declared to need 5 % more than ran",
            _WELL,
            options={"model_flop_per_step": 1.05 * _WELL.flop_per_step},
        ),
        Scene(
            "5 % less",
            _WELL,
            options={"model_flop_per_step": 0.95 * _WELL.flop_per_step},
        ),
        figures.model_and_executed,
    ),
)
