"""Where 100 % of the peak goes, in a terminal: shares as bars, ranks, operators, cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceparse.report.choose import choose_devices
from traceparse.report.lines import as_text, natural_width, say
from traceparse.report.peak import (
    cost_lines,
    has_figures,
    headline,
    measured_devices,
    operators_of,
    operators_title,
    premises,
    ratio_of,
    terms_of,
    why_unknown,
)
from traceparse.report.safe import encodable, visible
from traceparse.report.words import Term
from traceparse.run import DeviceReport, Report
from traceparse.units import UNKNOWN, format_number_of, format_ratio, format_tflop

__all__ = ["print_shares", "render_findings", "render_peak"]

_TITLE = "Where 100% of the peak goes"
_MAX_ROWS = 8
_MAX_OPERATORS = 5
_LONGEST_BAR = 40
_LAYOUTS = ((2, "%"), (1, "%"), (1, ""))  # gaps between columns, and what follows shares
_NAME_LIMIT = 24
_NAMES = "operator and shapes"
_FEWEST_FOR_NAMES = 12  # columns that an operator's name and shapes need at least


def render_findings(report: Report, console: Console, *severities: str) -> None:
    """Print the findings of some severities, errors in red; the same advice only once."""
    found = [one for one in report.findings or () if one["severity"] in severities]
    for advice in dict.fromkeys(one["advice"] for one in found):
        for one in found:
            if one["advice"] == advice:
                style = "bold red" if one["severity"] == "error" else "yellow"
                text = f"{one['title']}: {one['evidence']}"
                say(console, text, style, lead=f"{one['severity']}:", lead_style=style)
        say(console, advice, lead="  so", lead_style="dim")


def render_peak(report: Report, console: Console) -> None:
    """Print how much of the peak was used, and what became of the rest."""
    if report.utilization is None:
        return
    console.print()
    if not has_figures(report):
        text = f"unknown: {why_unknown(report)}"
        say(console, text, "dim", lead=f"{_TITLE} ", lead_style="bold")
    else:
        say(console, headline(report), lead=f"{_TITLE} ", lead_style="bold")
        for line in premises(report):
            say(console, line, "dim")
        waterfall = report.utilization["waterfall"]
        if waterfall is None:
            say(console, f"no waterfall: {why_unknown(report)}", "dim")
        else:
            print_shares(waterfall, console)
        _print_ranks(report.devices, console)
    render_findings(report, console, "warning", "info")
    _print_operators(report.roofline or (), console)
    for number, line in enumerate(cost_lines(report.cost)):
        if not number:
            console.print()
        say(console, line, lead="" if number else "Cost ", lead_style="bold")


def print_shares(waterfall: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print each share of a whole in percent, and as a bar where there is room."""
    terms = [(term, ratio_of(waterfall, term) or 0.0) for term in terms_of(waterfall)]
    texts = [format_ratio(ratio) for _, ratio in terms]
    widths = max(len(term.name) for term, _ in terms), max(map(len, texts))
    room = min(console.width - sum(widths) - 6, _LONGEST_BAR)
    for (term, ratio), text in zip(terms, texts, strict=True):
        line = as_text(console, f"  {term.name.ljust(widths[0])}  {text.rjust(widths[1])}  ")
        line.append(_bar(console, term, ratio, room), term.style)
        line.rstrip()
        console.print(line, soft_wrap=not console.is_terminal)


def _bar(console: Console, term: Term, ratio: float, room: int) -> str:
    """Return a bar of a share; a share below zero has none, one above all is all."""
    length = round(min(max(ratio, 0.0), 1.0) * max(room, 0))
    return encodable(term.glyph, console.encoding) * length


def _print_ranks(devices: Sequence[DeviceReport], console: Console) -> None:
    known = measured_devices(devices)
    if len(known) < 2:
        return
    shown = choose_devices(known, _MAX_ROWS)
    several = len({device.rank for device in known}) < len(known)
    console.print()
    say(console, " each over its steps, in % of its peak", lead="Ranks", lead_style="bold")
    layouts = (
        _ranks_table(console, shown, gap=gap, sign=sign, several=several)
        for gap, sign in _LAYOUTS
    )
    tables = [(natural_width(table, console), table) for table in layouts]
    width, table = next((one for one in tables if one[0] <= console.width), tables[-1])
    table.width = width
    console.print(table, crop=False)
    if left := len(known) - len(shown):
        say(console, f"… {format_number_of(left, 'more row')} in report.json", "dim")


def _ranks_table(
    console: Console, devices: Sequence[DeviceReport], *, gap: int, sign: str, several: bool
) -> Table:
    terms = terms_of(*((device.utilization or {})["waterfall"] for device in devices))
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    titles = ["rank", *(["device"] if several else []), "TFLOP/s", "HFU"]
    for title in (*titles, *(term.short for term in terms)):
        table.add_column(title, justify="right", no_wrap=True, header_style="bold")
    for device in devices:
        use = device.utilization or {}
        labels = [device.rank, *([device.device] if several else [])]
        texts = [_label(label) for label in labels]
        ratios = [use["hfu"], *(ratio_of(use["waterfall"], term) for term in terms)]
        texts.append(format_tflop(use["achieved_flop_per_s"]))
        texts += [format_ratio(ratio).removesuffix("" if sign else "%") for ratio in ratios]
        table.add_row(*(as_text(console, text) for text in texts))
    return table


def _label(value: int | str | None) -> str:
    return UNKNOWN if value is None else visible(str(value), _NAME_LIMIT)


def _print_operators(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print numbers first, then name and shapes in what room is left, folded."""
    operators = operators_of(rows, _MAX_OPERATORS)
    if not operators:
        return
    console.print()
    of_what = " the whole file: ms, TFLOP/s, and % of the roof"
    say(console, of_what, lead=operators_title(operators), lead_style="bold")
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for title in ("lost", "time", "runs", "TFLOP/s", "roof"):
        table.add_column(title, justify="right", no_wrap=True, header_style="bold")
    for title in ("bound", "dtype"):
        table.add_column(title, no_wrap=True, header_style="bold")
    table.add_column(_NAMES, overflow="fold", header_style="bold")
    for one in operators:
        texts = (one.lost, one.time, one.count, one.rate, one.roof, one.bound, one.dtype)
        names = Text("\n").join([as_text(console, text) for text in (one.name, one.shapes)])
        table.add_row(*(as_text(console, text) for text in texts), names)
    longest = max(len(text) for one in operators for text in (one.name, one.shapes, _NAMES))
    least = natural_width(table, console) - longest
    table.width = min(
        natural_width(table, console), max(console.width, least + _FEWEST_FOR_NAMES)
    )
    console.print(table, crop=False)
    if left := len(rows) - len(operators):
        say(console, f"… {format_number_of(left, 'more row')} in report.json", "dim")
