"""A job as people describe it, and all that the calculator says of it."""

from __future__ import annotations

from dataclasses import dataclass

from traceparse.errors import Note, UsageError
from traceparse.units import format_ratio
from traceparse.work.accelerators import Dtype
from traceparse.work.calculator import Calculated, calculate, impossible
from traceparse.work.conventions import Recompute, doubts
from traceparse.work.model import Model
from traceparse.work.scaling import Mode, Scaled, scale, scaled_batch

__all__ = ["Answer", "Job", "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is trained on what, and how fast: one run, or one for each number of GPUs.

    ``batch`` is global, and under weak scaling that of the fewest GPUs. ``mamf_flop_per_s`` is
    the fastest matrix product that was measured on such a device.
    """

    model_name: str
    model: Model
    convention: str
    gpus: tuple[int, ...]
    device: str
    dtype: Dtype
    peak_flop_per_s: float
    mamf_flop_per_s: float | None = None
    step_s: tuple[float, ...] = ()
    tokens_per_s: float | None = None
    per_gpu: bool = False
    batch: int | None = None
    seq: int | None = None
    recompute: Recompute = "none"
    usd_per_gpu_hour: float | None = None
    mode: Mode = "strong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The figures of each run, from the fewest GPUs up; ``scaled`` if there are several.

    ``errors`` are what cannot be, a line each; ``notes`` what is worth knowing besides.
    """

    job: Job
    gpus: tuple[int, ...]
    batches: tuple[int | None, ...]
    runs: tuple[Calculated, ...]
    scaled: tuple[Scaled, ...]
    errors: tuple[Note, ...]
    notes: tuple[Note, ...]


def answer(job: Job) -> Answer:
    """Calculate all of a job's runs, and how they compare.

    Raises
    ------
    UsageError
        The job's numbers contradict each other, or its model and convention do.
    """
    pairs = _pairs(job)
    several = [(gpus, step_s) for gpus, step_s in pairs if step_s is not None]
    scaled = scale(several, job.mode) if len(pairs) > 1 else ()
    base = pairs[0][0]
    batches = tuple(
        None if job.batch is None else scaled_batch(job.batch, gpus, base, job.mode)
        for gpus, _ in pairs
    )
    runs = tuple(
        calculate(
            job.model,
            convention=job.convention,
            batch=batch,
            seq=job.seq,
            gpus=gpus,
            step_s=step_s,
            tokens_per_s=job.tokens_per_s,
            per_gpu=job.per_gpu,
            peak_flop_per_s=job.peak_flop_per_s,
            recompute=job.recompute,
            usd_per_gpu_hour=job.usd_per_gpu_hour,
        )
        for (gpus, step_s), batch in zip(pairs, batches, strict=True)
    )
    counts = tuple(gpus for gpus, _ in pairs)
    return Answer(
        job=job,
        gpus=counts,
        batches=batches,
        runs=runs,
        scaled=scaled,
        errors=_errors(job, counts, runs),
        notes=tuple(
            Note("convention_differs", text) for text in doubts(job.model, job.convention)
        ),
    )


def _pairs(job: Job) -> list[tuple[int, float | None]]:
    """Return GPUs and seconds of a step of each run, those on the fewest GPUs first."""
    if not job.gpus:
        raise UsageError("the number of GPUs is missing; give --gpus")
    if job.tokens_per_s is None:
        if len(job.gpus) != len(job.step_s):
            raise UsageError(
                f"{len(job.gpus)} of --gpus and {len(job.step_s)} of --step-s; give as many of "
                "the one as of the other, in the same order, or one of --tokens-per-s"
            )
        return [*sorted(zip(job.gpus, job.step_s, strict=True))]
    if job.step_s or len(job.gpus) > 1:
        raise UsageError(
            "--tokens-per-s goes with one of --gpus and without --step-s; "
            "to compare several numbers of GPUs give a --step-s for each"
        )
    return [(job.gpus[0], None)]


def _errors(
    job: Job, counts: tuple[int, ...], runs: tuple[Calculated, ...]
) -> tuple[Note, ...]:
    lines = []
    for gpus, run in zip(counts, runs, strict=True):
        if text := impossible(run, job.mamf_flop_per_s):
            figure = f"MFU {format_ratio(run.mfu)}"
            if run.hfu != run.mfu:
                figure += f" (HFU {format_ratio(run.hfu)})"
            where = f" on {gpus:,} GPUs" if len(runs) > 1 else ""
            lines.append(Note("impossible_mfu", f"{figure}{where} {text}"))
    return tuple(lines)
