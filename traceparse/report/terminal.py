"""The whole report in a terminal: ranks, steps, peak, ranks together, what if, notes."""

from __future__ import annotations

from rich.console import Console

from traceparse.report.choose import largest_span
from traceparse.report.lines import say
from traceparse.report.notes import health_text, note_lines
from traceparse.report.recorded import overhead_text, recorded_text
from traceparse.report.screen import print_hta
from traceparse.report.terminal_across import render_across
from traceparse.report.terminal_peak import render_findings, render_peak
from traceparse.report.terminal_spans import print_devices, print_steps
from traceparse.report.terminal_what_if import render_what_if
from traceparse.run import Report
from traceparse.units import format_number_of, ms_decimals

__all__ = ["render", "render_notes"]

_MAX_FILES = 8


def render(report: Report, console: Console) -> None:
    """Print what cannot be, where the time went, what became of the peak, and who waited.

    One line, what capture recorded, then one row a rank, then one row a step.
    """
    render_findings(report, console, "error")
    say(console, report.summary.verdict, "bold")
    _print_recorded(report, console)
    if not report.devices:
        return
    decimals = ms_decimals(largest_span(report.devices))
    print_devices(report.devices, console, decimals)
    print_steps(report.devices, console, decimals)
    render_peak(report, console)
    render_across(report, console)
    render_what_if(report, console)
    print_hta(report, console)


def _print_recorded(report: Report, console: Console) -> None:
    if cost := overhead_text(report):
        say(console, cost, "dim", lead="Cost of capture:", lead_style="dim")
    if recorded := recorded_text(report):
        say(console, recorded, "dim", lead="Recorded by capture:", lead_style="dim")


def render_notes(report: Report, console: Console, *, whole: bool = True) -> None:
    """Print what was repaired, skipped, assumed or unknown: a line each, if anything.

    On a terminal that is narrower, lines are cut unless ``whole``.
    """
    for line in note_lines(report.notes):
        lead = f"{line.code}:"
        say(console, line.text, lead=lead, lead_style="yellow", is_cut=not whole)
    _print_health(report, console, is_cut=not whole)


def _print_health(report: Report, console: Console, *, is_cut: bool) -> None:
    said: dict[str | None, set[str]] = {}
    for note in report.notes:
        said.setdefault(note.file, set()).add(note.code)
    texts = [(file.path, health_text(file, said.get(file.path, ()))) for file in report.files]
    troubled = [f"{path}: {text}" for path, text in texts if text]
    for line in troubled[:_MAX_FILES]:
        say(console, line, lead="file_health:", lead_style="yellow", is_cut=is_cut)
    if left := len(troubled[_MAX_FILES:]):
        say(console, f"… {format_number_of(left, 'more such file')} in report.json", "dim")
