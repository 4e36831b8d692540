"""The report as Markdown for a pull request, with its charts as pictures beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from traceparse.report.across import clock_line, is_split, loss_lines, rows_of, waited_for
from traceparse.report.charts import charts_of, to_png, why_no_charts
from traceparse.report.charts.spans import (
    PART_NAMES,
    Device,
    chosen,
    devices_of,
    mean_parts,
    parts_seen,
)
from traceparse.report.hta_text import (
    MOST_DECIMALS,
    bound_name,
    bound_parts,
    computed_by,
    longest_of_ranks,
)
from traceparse.report.markdown_text import code, prose, table
from traceparse.report.notes import note_lines
from traceparse.report.peak import (
    cost_lines,
    has_figures,
    headline,
    operators_of,
    operators_title,
    premises,
    priced_by,
    ratio_of,
    terms_of,
    why_unknown,
)
from traceparse.report.recorded import overhead_text, recorded_text
from traceparse.report.what_if import changes_of
from traceparse.report.words import BASIS, term_of
from traceparse.run import Report
from traceparse.units import (
    UNKNOWN,
    PerSteps,
    format_count,
    format_figure,
    format_ms,
    format_number_of,
    format_percent,
    format_ratio,
    ms_decimals,
)

__all__ = ["render"]

_MOST_FINDINGS = 12
_MOST_DEVICES = 8
_MOST_COLLECTIVES = 8
_MOST_OPERATORS = 8
_MOST_KERNELS = 8
_MOST_NOTES = 12


def render(report: Report) -> dict[str, str | bytes]:
    """Return ``report.md``, and the pictures that it links to, by their names."""
    pictures: dict[str, bytes] = {}
    links: dict[str, str] = {}
    for chart in charts_of(report) if why_no_charts() is None else ():
        name = f"report-{chart.key}.png"
        pictures[name] = to_png(chart)
        links[chart.key] = f"![{prose(chart.spoken)}]({name})"
    return {"report.md": _text(report, links), **pictures}


def _text(report: Report, links: Mapping[str, str]) -> str:
    blocks = [
        *_opening(report),
        *_findings(report),
        *_peak(report, links),
        *_ranks(report, links),
        *_across(report, links),
        *_operators(report, links),
        *_kernels(report),
        *_changes(report),
        *_hta(report),
        *_notes(report),
        *_closing(report),
    ]
    return "\n\n".join(blocks) + "\n"


def _opening(report: Report) -> Iterator[str]:
    yield f"# {prose(report.summary.verdict)}"
    summary = report.summary
    counts = format_number_of(summary.num_device_steps, "device-step")
    lines = [f"{counts}: {BASIS.get(summary.basis, summary.basis)}"]
    lines += [line for line in (recorded_text(report), overhead_text(report)) if line]
    lines += _judged(report)
    yield "\n".join(f"* {prose(line)}" for line in lines)


def _judged(report: Report) -> Iterator[str]:
    told = [
        f"{term_of(name).name} {format_ratio(found['value'])} is {found['band']}"
        for name, found in (report.bands or {}).items()
    ]
    if told:
        yield f"{', '.join(told)}, by bands that report.json has the sources of"


def _findings(report: Report) -> Iterator[str]:
    found = report.findings or ()
    if not found:
        return
    yield "## What to do"
    priced = priced_by(report.cost)
    rows = [_finding(one, priced) for one in found[:_MOST_FINDINGS]]
    yield "\n".join(rows)
    if len(found) > _MOST_FINDINGS:
        yield _more(len(found) - _MOST_FINDINGS, "finding")


def _finding(found: Mapping[str, Any], priced: PerSteps) -> str:
    lost = [
        f"{format_ratio(found['lost_ratio'])} of the device-steps"
        if found["lost_ratio"] is not None
        else "",
        priced.text(found["lost_usd"]) if found["lost_usd"] is not None else "",
    ]
    would = ", ".join(filter(None, lost))
    costs = f" (would win back {would})" if would else ""
    return (
        f"* **{prose(found['severity'])}: {prose(found['title'])}**{prose(costs)}: "
        f"{prose(found['evidence'])}. {prose(_sentence(found['advice']))}"
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _peak(report: Report, links: Mapping[str, str]) -> Iterator[str]:
    use = report.utilization
    if use is None:
        return
    yield "## Where the peak went"
    if has_figures(report):
        yield f"{prose(headline(report))}."
    if not use.get("waterfall"):
        yield f"No account of the peak: {prose(why_unknown(report))}."
        return
    yield from _picture(links, "waterfall")
    shares = use["waterfall"]
    rows = [
        [prose(term.name), format_ratio(ratio_of(shares, term))] for term in terms_of(shares)
    ]
    yield table(("share of the peak", "percent"), rows)
    told = [*premises(report), *cost_lines(report.cost)]
    yield "\n".join(f"* {prose(line)}" for line in told)


def _hta(report: Report) -> Iterator[str]:
    hta = report.hta
    if hta is None:
        return
    yield "## HTA"
    yield f"{prose(computed_by(hta))}."
    for title, rows in (("critical_path", _hta_paths), ("queue_length", _hta_queues)):
        if hta[title]:
            yield from rows(hta, report.run.ranks)
        else:
            yield f"{prose(title.replace('_', ' ').capitalize())}: unknown, the notes say why."


def _hta_paths(hta: Mapping[str, Any], ranks: Collection[int]) -> Iterator[str]:
    paths = hta["critical_path"]
    longest = max(path["duration_ns"] for path in paths)
    decimals = min(ms_decimals(longest), MOST_DECIMALS)
    rows = [
        [
            _hta_rank(path["rank"], ranks),
            prose(_bounds(path)),
            UNKNOWN if path["step"] is None else str(path["step"]),
            format_ms(path["duration_ns"], decimals),
        ]
        for path in paths
    ]
    yield table(("rank", "critical path is bound by", "step", "length (ms)"), rows, num_words=2)


def _bounds(path: Mapping[str, Any]) -> str:
    parts = [
        f"{bound_name(name)} {format_percent(ns, path['duration_ns'])}"
        for name, ns in bound_parts(path)
    ]
    return ", ".join(parts) or UNKNOWN


def _hta_queues(hta: Mapping[str, Any], ranks: Collection[int]) -> Iterator[str]:
    shown = longest_of_ranks(hta)
    rows = [
        [
            _hta_rank(queue["rank"], ranks),
            str(queue["stream"]),
            format_count(queue["num_changes"]),
            format_figure(queue["mean"]),
            format_figure(queue["median"]),
            format_count(queue["max"]),
        ]
        for queue in shown
    ]
    yield table(("rank", "longest queue: stream", "changes", "mean", "median", "max"), rows)
    if left := len(hta["queue_length"]) - len(shown):
        yield _more(left, "queue")


def _hta_rank(rank: int, ranks: Collection[int]) -> str:
    """Name a rank; a trace that does not say its own is rank 0 to HTA."""
    return str(rank) if rank in ranks else prose(f"unknown ({rank} to HTA)")


def _ranks(report: Report, links: Mapping[str, str]) -> Iterator[str]:
    devices = devices_of(report)
    if not devices:
        return
    yield "## Ranks"
    yield from _picture(links, "steps")
    shown, parts = chosen(devices, _MOST_DEVICES), parts_seen(devices)
    spent = [mean_parts(device, parts) for device in shown]
    decimals = ms_decimals(max(sum(own.values()) for own in spent))
    heads = ("rank", "mean step (ms)", *(PART_NAMES[key] for key in parts), "MFU")
    yield table(
        heads, [_rank(one, own, decimals) for one, own in zip(shown, spent, strict=True)]
    )
    if left := len(devices) - len(shown):
        yield (
            "By the time that they need without waiting for others: quantiles and outliers; "
            f"{_more(left, 'rank')}"
        )


def _rank(device: Device, parts: Mapping[str, int], decimals: int) -> list[str]:
    span_ns = sum(parts.values())
    return [
        prose(f"{device.label} ({device.why})" if device.why else device.label),
        format_ms(span_ns, decimals),
        *(format_percent(ns, span_ns) for ns in parts.values()),
        format_ratio(device.mfu),
    ]


def _across(report: Report, links: Mapping[str, str]) -> Iterator[str]:
    found = report.collectives
    if not found:
        return
    yield "## Communication"
    if is_split(report):
        who = waited_for(report)
        lines = [clock_line(report), *loss_lines(report)]
        lines += [f"Waited for: {who}"] if who else []
        yield "\n".join(f"* {prose(line)}" for line in lines)
    yield from _picture(links, "scaling_loss")
    yield from _picture(links, "collectives")
    shown = rows_of(found, _MOST_COLLECTIVES)
    heads = ("collective", "group", "ranks", "size", "count", "transfer (ms)", "wait (ms)")
    rows = [
        [
            *(code(row.collective), code(row.group), prose(row.ranks), prose(row.size)),
            *(row.count, row.transfer, row.wait, row.exposed, prose(row.busbw)),
        ]
        for row in shown
    ]
    yield table((*heads, "exposed (ms)", "busbw (GB/s), or latency"), rows, num_words=2)
    if left := len(found) - len(shown):
        yield _more(left, "kind")


def _operators(report: Report, links: Mapping[str, str]) -> Iterator[str]:
    rows = report.roofline
    if not rows:
        return
    shown = operators_of(rows, _MOST_OPERATORS)
    yield f"## {operators_title(shown)}"
    yield from _picture(links, "roofline")
    heads = ("operator", "shapes", "dtype", "count", "time (ms)", "TFLOP/s", "of its roof")
    cells = [
        [
            *(code(row.name), code(row.shapes), prose(row.dtype), row.count, row.time),
            *(row.rate, row.roof, row.lost, row.bound),
        ]
        for row in shown
    ]
    yield table((*heads, "above its roof (ms)", "bound"), cells, num_words=3)
    if left := len(rows) - len(shown):
        yield _more(left, "operator")


def _kernels(report: Report) -> Iterator[str]:
    rows = [row for row in report.top_kernels or () if row["name"] is not None]
    if not rows:
        return
    shown = rows[:_MOST_KERNELS]
    yield "## Kernels that take most"
    decimals = ms_decimals(max(row["time_ns"] for row in shown))
    cells = [
        [
            *(code(row["name"]), code(row["op"] or UNKNOWN), code(row["shapes"] or UNKNOWN)),
            *(row["kind"], format_count(row["count"])),
            *(format_ms(row["time_ns"], decimals), format_ratio(row["ratio"])),
        ]
        for row in shown
    ]
    heads = ("kernel", "operator", "shapes", "kind", "count", "time (ms)", "of all")
    yield table(heads, cells, num_words=4)


def _changes(report: Report) -> Iterator[str]:
    changes = changes_of(report)
    if not changes:
        return
    yield "## What if"
    rows = [[prose(one.name), one.step, one.won or UNKNOWN] for one in changes]
    yield table(("a mean step, replayed with one thing changed", "ms", "wins"), rows)


def _notes(report: Report) -> Iterator[str]:
    lines = note_lines(report.notes)
    if not lines:
        return
    yield "## Notes"
    yield "\n".join(f"* {prose(line.text)}" for line in lines[:_MOST_NOTES])
    if len(lines) > _MOST_NOTES:
        yield _more(len(lines) - _MOST_NOTES, "note")


def _closing(report: Report) -> Iterator[str]:
    made = f"Made by {prose(' '.join(report.generator.values()))}"
    files = format_count(len(report.files))
    yield f"{made} from {files} {'file' if files == '1' else 'files'}."
    if reason := why_no_charts():
        yield f"Without pictures: {prose(reason)}."


def _picture(links: Mapping[str, str], key: str) -> Iterator[str]:
    if key in links:
        yield links[key]


def _more(count: int, what: str) -> str:
    return f"{format_number_of(count, f'more {what}')} in report.json."
