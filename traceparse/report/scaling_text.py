"""How a job scales, in a terminal: a verdict, a row a run, and its loss term by term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from traceparse.report.lines import as_text, numbers, print_whole, say
from traceparse.report.safe import visible
from traceparse.run import ScaledRun, Scaling
from traceparse.units import format_ms, format_number_of, format_ratio, ms_decimals

__all__ = ["render", "render_notes"]

_TITLES: Final = {
    "compute": "compute",
    "contention": "contention",
    "exposed_transfer": "transfer",
    "exposed_wait": "wait",
    "pipeline_wait": "pipeline",
    "exposed_unsplit": "unsplit",
    "exposed_copy": "copy",
    "idle": "idle",
}
_WORDS: Final = {
    "compute": "compute",
    "contention": "contention of compute with communication",
    "exposed_transfer": "exposed transfer",
    "exposed_wait": "waiting in collectives",
    "pipeline_wait": "waiting in send and recv",
    "exposed_unsplit": "exposed communication",
    "exposed_copy": "exposed copies",
    "idle": "idle time",
}
_KEPT: Final = {
    "strong": "the same work of all devices together",
    "weak": "the same work of each device",
}
_SOURCES: Final = {
    "given": "as given",
    "counted": "as the FLOP that were counted tell",
    "assumed": "which is assumed, as FLOP do not tell",
}
_PATH_LIMIT = 40


def render(curve: Scaling, console: Console) -> None:
    """Print what the largest run makes of its devices, then all runs, then their terms."""
    base, runs = curve.runs[0], curve.runs
    say(console, _verdict(runs[-1], base), "bold")
    say(console, _largest_loss(runs[-1]))
    say(console, f"{curve.mode} scaling: {_KEPT[curve.mode]}, {_SOURCES[curve.mode_source]}")
    say(
        console,
        f"base point: {base.path} on {format_number_of(base.num_devices, 'device')}, which is "
        f"100% by definition",
    )
    console.print()
    print_whole(console, _runs(runs, console))
    say(
        console,
        f"work: FLOP that a device-step executes, of those that {curve.mode} scaling asks for",
        "dim",
    )
    console.print()
    say(
        console,
        " % points of efficiency, against the base point scaled ideally",
        lead="Lost",
        lead_style="bold",
    )
    print_whole(console, _terms(runs, console))
    say(
        console,
        "transfer, wait, pipeline (send and recv) and unsplit are exposed communication",
        "dim",
    )


def render_notes(curve: Scaling, console: Console) -> None:
    """Print what makes the figures less sure, a line each."""
    for note in curve.notes:
        say(console, note.message, lead=f"{note.code}:", lead_style="yellow")


def _verdict(run: ScaledRun, base: ScaledRun) -> str:
    return (
        f"From {base.num_devices:,} to {format_number_of(run.num_devices, 'device')}: "
        f"efficiency {format_ratio(run.efficiency)}, speedup {run.speedup:,.2f}"
    )


def _largest_loss(run: ScaledRun) -> str:
    name, most = max(run.terms.items(), key=lambda term: term[1])
    if most <= 0:
        return "largest loss: none, as nothing takes longer than if it scaled ideally"
    return (
        f"largest loss: {_WORDS[name]}, {_points(most)} of {_points(1 - run.efficiency)} "
        f"% points"
    )


def _runs(runs: Sequence[ScaledRun], console: Console) -> Table:
    table = numbers(["devices", "step ms", "speedup", "efficiency", "work"])
    table.add_column("run", no_wrap=True, header_style="bold")
    decimals = ms_decimals(max(run.step_ns for run in runs))
    for run in runs:
        cells = [f"{run.num_devices:,}", format_ms(run.step_ns, decimals)]
        cells += [f"{run.speedup:,.2f}", format_ratio(run.efficiency)]
        cells += [format_ratio(run.work_ratio), visible(run.path, _PATH_LIMIT)]
        table.add_row(*(as_text(console, cell) for cell in cells))
    return table


def _terms(runs: Sequence[ScaledRun], console: Console) -> Table:
    names = list(runs[0].terms)
    table = numbers(["devices", "lost", *(_TITLES[name] for name in names)])
    for run in runs[1:]:
        cells = [f"{run.num_devices:,}", _points(1 - run.efficiency)]
        cells += [_points(run.terms[name]) for name in names]
        table.add_row(*(as_text(console, cell) for cell in cells))
    return table


def _points(ratio: float) -> str:
    """Write a share as percentage points: exactly nothing is 0, and nothing is -0.0."""
    return f"{100 * ratio:z,.1f}" if ratio else "0"
