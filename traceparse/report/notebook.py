"""A report, a run and its tables as notebooks show them: a piece of HTML, without script.

It stands in somebody else's page, light or dark: colors are those of text and of the bar,
and nothing is laid out by a style sheet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from traceparse.report.charts.palette import color_of
from traceparse.report.notes import note_lines
from traceparse.report.peak import has_figures, headline, ratio_of, terms_of
from traceparse.report.safe import visible
from traceparse.report.words import PARTS
from traceparse.run import Report, Run
from traceparse.tables import TABLES, ArrowTable
from traceparse.units import format_count, format_number_of, format_ratio

__all__ = ["report_html", "run_html", "tables_html"]

_MOST_FINDINGS = 5
_BAR = "display:flex;height:1.5em;max-width:48em;border:1px solid #7d8792"


def report_html(report: Report) -> str:
    """Return verdict, findings, key figures and the bar of where the peak, or time, went."""
    return "\n".join(
        [
            '<div class="traceparse">',
            f"<p><strong>{_shown(report.summary.verdict)}</strong></p>",
            *_figures(report),
            *_bar(report),
            *_findings(report),
            *_notes(report),
            "</div>",
        ]
    )


def run_html(run: Run) -> str:
    """Return the report of a run, and below it its tables."""
    return report_html(run.report) + tables_html(run.tables)


def tables_html(tables: Mapping[str, ArrowTable]) -> str:
    """Return the names of tables, their sizes, what a row of each is, and their columns."""
    rows = [
        f"<tr><th>{_shown(name)}</th><td>{format_count(table.num_rows)}</td>"
        f"<td>{_shown(TABLES[name].meaning if name in TABLES else '')}</td>"
        f"<td>{_shown(', '.join(table.column_names))}</td></tr>"
        for name, table in tables.items()
    ]
    heads = "".join(f"<th>{head}</th>" for head in ("table", "rows", "a row is", "columns"))
    body = "".join(rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _figures(report: Report) -> Iterator[str]:
    if has_figures(report):
        yield f"<p>{_shown(headline(report))}</p>"


def _bar(report: Report) -> Iterator[str]:
    """Draw the waterfall as one bar; of an unknown peak, what the time went to."""
    shares = (report.utilization or {}).get("waterfall")
    times = report.summary.times
    if shares:
        parts = [(term.key, term.name, ratio_of(shares, term)) for term in terms_of(shares)]
    elif times.span_ns:
        parts = [(part.key, part.name, part.of(times) / times.span_ns) for part in PARTS]
    else:
        return
    told = [(key, f"{name} {format_ratio(ratio)}", ratio or 0.0) for key, name, ratio in parts]
    pieces = "".join(
        f'<span title="{_shown(text)}" '
        f'style="flex:{ratio:.6f};background:{color_of(key)}"></span>'
        for key, text, ratio in told
        if ratio > 0
    )
    spoken = ", ".join(text for _, text, _ in told)
    yield f'<div role="img" aria-label="{_shown(spoken)}" style="{_BAR}">{pieces}</div>'
    yield f"<p>{_shown(spoken)}</p>"


def _findings(report: Report) -> Iterator[str]:
    found = report.findings or ()
    if not found:
        return
    yield "<ul>"
    for one in found[:_MOST_FINDINGS]:
        lead = f"<strong>{_shown(one['severity'])}: {_shown(one['title'])}</strong>"
        yield f"<li>{lead}: {_shown(one['evidence'])}; {_shown(one['advice'])}</li>"
    yield "</ul>"
    if len(found) > _MOST_FINDINGS:
        yield f"<p>{format_number_of(len(found) - _MOST_FINDINGS, 'more finding')}</p>"


def _notes(report: Report) -> Iterator[str]:
    lines = note_lines(report.notes)
    if not lines:
        return
    count = format_number_of(len(lines), "note")
    items = "".join(f"<li>{_shown(line.text)}</li>" for line in lines)
    yield f"<details><summary>{count}</summary><ul>{items}</ul></details>"


def _shown(text: str) -> str:
    return escape(visible(text))
