"""The calculator's answer in a terminal: a line a figure, or a table of runs."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from traceparse.report.lines import as_text, natural_width, say
from traceparse.units import UNKNOWN, format_figure, format_ratio
from traceparse.work.calculator import Calculated
from traceparse.work.conventions import CONVENTIONS, counts_of
from traceparse.work.job import Answer
from traceparse.work.per_token import size_field

__all__ = ["render", "render_notes"]

_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))
_LETTERS = (
    "N parameters, L layers, h hidden, H heads, Q head size, s sequence, V vocabulary; "
    "FLOP of forward and backward"
)


def render(answer: Answer, console: Console) -> None:
    """Print what a job comes to; figures that cannot be are said to be errors, above all."""
    job = answer.job
    many = f"{answer.gpus[0]:,}" if len(answer.gpus) == 1 else "/".join(map(str, answer.gpus))
    say(console, f"{job.model_name} on {many} x {job.device}", "bold")
    for note in answer.errors:
        say(console, f"error: {note.message}", "bold red")
    console.print()
    if answer.scaled:
        say(console, f"{job.mode} scaling, from {answer.gpus[0]:,} GPUs on", "dim")
        table = _table(answer, console)
        table.width = natural_width(table, console)
        console.print(table, crop=False)
        console.print()
    lines = [] if answer.scaled else list(_figures(answer, answer.runs[0]))
    lines += _basis(answer, answer.runs[0])
    width = max(len(title) for title, _ in lines)
    for title, text in lines:
        say(console, text, lead=f"{title:{width}} ", lead_style="dim")
    say(console, _LETTERS, "dim")


def render_notes(answer: Answer, console: Console) -> None:
    """Print what is worth knowing besides, a line each."""
    for note in answer.notes:
        say(console, f"note: {note.message}", "yellow")


def _figures(answer: Answer, run: Calculated) -> Iterator[tuple[str, str]]:
    """Yield the figures of one run, each with its unit."""
    job = answer.job
    doubt = ", which cannot be" if answer.errors else ""
    yield "MFU", f"{format_ratio(run.mfu)} of the peak{doubt}"
    again = "nothing is recomputed"
    if job.recompute != "none":
        again = f"with {job.recompute} recomputation"
    yield "HFU", f"{format_ratio(run.hfu)}, {again}"
    yield "achieved", f"{_rate(run.achieved_flop_per_s_per_gpu)} per GPU"
    each = f"{format_figure(run.tokens_per_s_per_gpu)} tokens/s per GPU"
    yield "throughput", f"{format_figure(run.tokens_per_s)} tokens/s, {each}"
    if run.model_flop_per_step is not None and run.hardware_flop_per_step is not None:
        text = f"{_flop(run.model_flop_per_step)} of the model"
        if job.recompute != "none":
            text += f", {_flop(run.hardware_flop_per_step)} with recomputation"
        yield "step", text
    yield "cost", _cost(run)


def _basis(answer: Answer, run: Calculated) -> Iterator[tuple[str, str]]:
    """Yield what the figures rest on: peak, convention and model."""
    job = answer.job
    found = CONVENTIONS[run.convention]
    yield "peak", f"{_rate(run.peak_flop_per_s)} per GPU, dense {job.dtype}"
    context = f" at {job.seq:,} a sequence" if job.seq else ""
    text = f"{_flop(run.flop_per_token)}{context}, by convention {found.name}: {found.formula}"
    yield "a token", text
    yield "counted", counts_of(job.model, job.convention)
    size = size_field(job.model)
    if not job.model.missing(size):
        what = "active parameters" if size == "active_params" else "parameters"
        yield "N", f"{job.model.numbers(size)[0]:,} {what}"
    for text in job.model.derived:
        yield "derived", text


def _table(answer: Answer, console: Console) -> Table:
    job = answer.job
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    titles = ["GPUs", "batch", "step s", "tokens/s/GPU", "TFLOP/s/GPU", "MFU"]
    titles += ["HFU"] if job.recompute != "none" else []
    titles += ["speedup", "efficiency", "GPU-h/Gtoken"]
    titles += ["USD/Mtoken", "lost USD/Mtoken"] if job.usd_per_gpu_hour is not None else []
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True, header_style="bold")
    for gpus, batch, run, scaled in zip(
        answer.gpus, answer.batches, answer.runs, answer.scaled, strict=True
    ):
        cells = [f"{gpus:,}", f"{batch:,}" if batch else UNKNOWN, f"{scaled.step_s:g}"]
        cells += [format_figure(run.tokens_per_s_per_gpu)]
        cells += [f"{run.achieved_flop_per_s_per_gpu / 1e12:,.1f}", format_ratio(run.mfu)]
        cells += [format_ratio(run.hfu)] if job.recompute != "none" else []
        cells += [f"{scaled.speedup:.2f}", format_ratio(scaled.efficiency)]
        cells += [format_figure(run.gpu_hours_per_billion_tokens)]
        if run.usd_per_million_tokens is not None:
            lost = run.usd_per_million_tokens * (1 - scaled.efficiency)
            cells += [format_figure(run.usd_per_million_tokens), format_figure(lost)]
        table.add_row(*(as_text(console, cell) for cell in cells))
    return table


def _cost(run: Calculated) -> str:
    text = f"{format_figure(run.gpu_hours_per_billion_tokens)} GPU-hours per billion tokens"
    if run.usd_per_million_tokens is None:
        return text
    return f"{text}, {format_figure(run.usd_per_million_tokens)} USD per million tokens"


def _rate(flop_per_s: float) -> str:
    return f"{format_figure(flop_per_s / 1e12)} TFLOP/s"


def _flop(count: int) -> str:
    """Write a count of FLOP with four digits and a prefix."""
    for size, prefix in _PREFIXES:
        if count >= size:
            return f"{format_figure(count / size)} {prefix}FLOP"
    return f"{count:,} FLOP"
