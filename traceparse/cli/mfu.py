"""``traceparse mfu``: the calculator, which needs no trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from traceparse.cli.words import one_accelerator, one_of
from traceparse.errors import UsageError

if TYPE_CHECKING:
    from traceparse.work import Dtype
    from traceparse.work.job import Answer
    from traceparse.work.model import Model

__all__ = ["mfu"]


def mfu(
    *,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="CONFIG",
            help="A Hugging Face config.json, or a TOML or JSON of layers, hidden, heads, ...",
        ),
    ] = None,
    params: Annotated[
        float | None, typer.Option(metavar="N", help="Parameters, instead of --model: 8.03e9.")
    ] = None,
    step_s: Annotated[
        list[float] | None,
        typer.Option(metavar="S", help="Seconds of a step; one for each --gpus."),
    ] = None,
    tokens_per_s: Annotated[
        float | None, typer.Option(metavar="X", help="Throughput, instead of --step-s.")
    ] = None,
    per_gpu: Annotated[
        bool, typer.Option("--per-gpu", help="The throughput is that of one GPU.")
    ] = False,
    batch: Annotated[
        int | None,
        typer.Option(metavar="B", help="Sequences in a step of the whole job."),
    ] = None,
    seq: Annotated[int | None, typer.Option(metavar="T", help="Tokens in a sequence.")] = None,
    gpus: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="GPUs of the job; several, each with its --step-s."),
    ] = None,
    accelerator: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Whose peak: see `traceparse accelerators`."),
    ] = None,
    peak_tflops: Annotated[
        float | None, typer.Option(metavar="P", help="The peak itself, in TFLOP/s a GPU.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="What the matrix products are in.")] = "bf16",
    convention: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="6nd, palm, torchtitan, nanogpt, megatron, megatron-causal, megatron-core or "
            "llm-foundry. By default palm, or 6nd if the model says too little for it.",
        ),
    ] = None,
    recompute: Annotated[
        str, typer.Option(help="What backward computes again: none, selective or full.")
    ] = "none",
    price: Annotated[float | None, typer.Option(metavar="USD", help="Of a GPU-hour.")] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="Of several --gpus: strong, the same batch for all (the default), or weak, a "
            "batch that grows with them from that of the fewest."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print JSON, and nothing else; of several runs, the fewest GPUs'."
        ),
    ] = False,
    debug: Annotated[  # noqa: ARG001 - main() looks for it
        bool, typer.Option("--debug", help="Show a traceback when something fails.")
    ] = False,
) -> None:
    """Say what MFU a job has, what it costs and how it scales, from its step time alone."""
    from traceparse.work.conventions import RECOMPUTE, default_convention
    from traceparse.work.job import Job, answer
    from traceparse.work.scaling import MODES

    name, sizes = _model(model, params)
    device = _device(accelerator, peak_tflops, dtype)
    if mode is not None and len(gpus or ()) < 2:
        raise UsageError(
            f"--mode {mode} compares runs; give several --gpus, each with --step-s"
        )
    if per_gpu and tokens_per_s is None:
        raise UsageError("--per-gpu says of --tokens-per-s that it is one GPU's; give that")
    job = Job(
        model_name=name,
        model=sizes,
        convention=convention or default_convention(sizes),
        gpus=tuple(gpus or ()),
        device=device.name,
        dtype=device.dtype,
        peak_flop_per_s=device.peak_flop_per_s,
        mamf_flop_per_s=device.mamf_flop_per_s,
        step_s=tuple(step_s or ()),
        tokens_per_s=tokens_per_s,
        per_gpu=per_gpu,
        batch=batch,
        seq=sizes.seq if seq is None else seq,
        recompute=one_of("--recompute", recompute, RECOMPUTE),
        usd_per_gpu_hour=price,
        mode=one_of("--mode", mode or "strong", MODES),
    )
    _show(answer(job), as_json=as_json)


class _Device(NamedTuple):
    name: str
    dtype: Dtype
    peak_flop_per_s: float
    mamf_flop_per_s: float | None


def _model(path: Path | None, params: float | None) -> tuple[str, Model]:
    """Return what the model is called, and its sizes."""
    from traceparse.work.model import Model
    from traceparse.work.model_file import load_model

    if (path is None) == (params is None):
        raise UsageError("give --model CONFIG or --params N, and not both")
    if path is not None:
        return str(path), load_model(path)
    if params is None or not 1 <= params <= 1e16 or not params.is_integer():
        raise UsageError(
            f"--params {params}: give a whole number of parameters, such as 8.03e9"
        )
    return f"a model of {int(params):,} parameters", Model(params=int(params))


def _device(accelerator: str | None, peak_tflops: float | None, dtype: str) -> _Device:
    """Return the peak to compare with, and what was measured where the table knows it."""
    from traceparse.work import DTYPES

    wanted = one_of("--dtype", dtype, DTYPES)
    if (accelerator is None) == (peak_tflops is None):
        raise UsageError("give --accelerator NAME or --peak-tflops P, and not both")
    if accelerator is None:
        return _Device("GPU", wanted, (peak_tflops or 0) * 1e12, None)
    entry = one_accelerator(accelerator)
    peak = entry.peak_flop_per_s.get(wanted)
    if peak is None:
        has = ", ".join(entry.peak_flop_per_s)
        known = f", but of {has}; give another --dtype, or" if has else "; give"
        raise UsageError(
            f"--accelerator {accelerator!r}: {entry.id} has no known peak of {wanted}{known} "
            "--peak-tflops"
        )
    return _Device(entry.id, wanted, peak, entry.mamf_flop_per_s.get(wanted))


def _show(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        from traceparse.report import mfu_json

        sys.stdout.write(mfu_json.render(answer))
        return
    from rich.console import Console

    from traceparse.report import mfu_text

    mfu_text.render(answer, Console())
    mfu_text.render_notes(answer, Console(stderr=True))
