"""The report on one screen: verdict, where the time goes, what to do about it, the ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from rich.console import Console

from traceparse.report.choose import largest_span
from traceparse.report.hta_text import MOST_ON_SCREEN, hta_lines
from traceparse.report.lines import say
from traceparse.report.peak import cost_lines, has_figures, headline, priced_by, why_unknown
from traceparse.report.recorded import overhead_text
from traceparse.report.terminal_peak import print_shares, render_findings
from traceparse.report.terminal_spans import print_devices
from traceparse.report.words import PARTS
from traceparse.run import Report
from traceparse.units import UNKNOWN, PerSteps, format_number_of, format_ratio, ms_decimals

__all__ = ["print_hta", "render"]

_MAX_ROWS = 8
_MAX_FINDINGS = 4
_EVIDENCE_LIMIT = 240  # characters: what is beyond is in the whole report
_INDENT = 9
_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def render(report: Report, console: Console) -> None:
    """Print what fits a screen, and how to see the rest."""
    render_findings(report, console, "error")
    say(console, report.summary.verdict, "bold")
    if cost := overhead_text(report):
        say(console, cost, "dim", lead="Cost of capture:", lead_style="dim")
    if not report.devices:
        return
    _print_shares(report, console)
    _print_findings(report, console)
    decimals = ms_decimals(largest_span(report.devices))
    print_devices(report.devices, console, decimals, most=_MAX_ROWS)
    for number, line in enumerate(cost_lines(report.cost)):
        if not number:
            console.print()
        say(console, line, lead="" if number else "Cost ", lead_style="bold")
    print_hta(report, console, most=MOST_ON_SCREEN)
    console.print()
    say(console, _more(report), "dim")


def print_hta(report: Report, console: Console, *, most: int | None = None) -> None:
    """Print what HTA found, where it was asked."""
    for number, line in enumerate(islice(hta_lines(report.hta), most)):
        if not number:
            console.print()
        say(console, line, lead="" if number else "HTA ", lead_style="bold")


def _print_shares(report: Report, console: Console) -> None:
    """Print the waterfall, or what there is of it: the four parts of the time."""
    console.print()
    waterfall = (report.utilization or {}).get("waterfall")
    if waterfall:
        say(console, headline(report), lead="Where 100% of the peak goes ", lead_style="bold")
        print_shares(waterfall, console)
        return
    known = f"{headline(report)}; " if has_figures(report) else ""
    say(
        console,
        f"{known}of the peak unknown: {why_unknown(report)}",
        "dim",
        lead="Where the time goes ",
        lead_style="bold",
    )
    times = report.summary.times
    print_shares(
        [
            {"name": part.key, "ratio": part.of(times) / times.span_ns}
            for part in PARTS
            if times.span_ns
        ],
        console,
    )


def _print_findings(report: Report, console: Console) -> None:
    found = [one for one in report.findings or () if one["severity"] != "error"]
    if not found:
        return
    console.print()
    of_what = " with the share of the steps that each would win back at most; warnings first"
    say(console, of_what, lead="What to do", lead_style="bold")
    for one in found[:_MAX_FINDINGS]:
        _print_finding(one, priced_by(report.cost), console)
    if left := len(found[_MAX_FINDINGS:]):
        say(console, f"… {format_number_of(left, 'more finding')}: --full", "dim")


def _print_finding(one: Mapping[str, Any], priced: PerSteps, console: Console) -> None:
    share = UNKNOWN if one["lost_ratio"] is None else format_ratio(one["lost_ratio"])
    style = _STYLES[one["severity"]]
    usd = "" if one["lost_usd"] is None else f" ({priced.text(one['lost_usd'])})"
    lead = f"{share:>{_INDENT - 2}} "
    say(console, f"{one['title']}{usd}", style, lead=lead, lead_style="bold")
    for text in (_shortened(one["evidence"]), f"so {one['advice']}"):
        say(console, text, "dim", indent=_INDENT)


def _shortened(evidence: str) -> str:
    """Keep the first statements of an evidence, as many as there is room for."""
    kept, *others = evidence.split("; ")
    for statement in others:
        if len(kept) + len(statement) > _EVIDENCE_LIMIT:
            return f"{kept}; …"
        kept = f"{kept}; {statement}"
    return kept


def _more(report: Report) -> str:
    return (
        f"--full prints {_listed(list(_left_out(report)))}; "
        f"--out DIR writes them as a page, Markdown and tables"
    )


def _left_out(report: Report) -> Iterator[str]:
    yield "steps"
    if report.roofline:
        yield "operators"
    if report.collectives:
        yield "collectives"
    if report.what_if:
        yield "what-if"
    yield "conventions"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
