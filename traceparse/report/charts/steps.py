"""Ranks and steps: what each was spent on, and who is slower than the others.

Few device-steps are bars, one each. Of many there is a map of all, in cells, and bars of the
mean steps of devices that stand for the others, and of those that do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from traceparse.report.charts.chart import WIDTH, Chart
from traceparse.report.charts.heat_map import heat_map
from traceparse.report.charts.layers import (
    BAR,
    THIN_BAR,
    Drawn,
    Rows,
    finished,
    heading,
    parts_scale,
    stacked,
    values,
)
from traceparse.report.charts.spans import (
    PART_NAMES,
    Device,
    chosen,
    devices_of,
    mean_parts,
    parts_of,
    parts_seen,
)
from traceparse.run import Report, StepReport
from traceparse.units import (
    format_ms,
    format_number_of,
    format_percent,
    format_ratio,
    ms_decimals,
    rank_ranges,
)

__all__ = ["steps_chart"]

_MOST_DEVICES = 16
_MOST_BARS = 48
_FEW_BARS = 24  # more of them are thinner


def steps_chart(report: Report) -> Chart | None:
    """Draw the steps of all devices, or their windows; nothing where there is no time."""
    devices = devices_of(report)
    if not devices:
        return None
    parts = parts_seen(devices)
    num_bars = sum(len(device.steps) for device in devices)
    if len(devices) <= _MOST_DEVICES and num_bars <= _MOST_BARS:
        title = f"What each rank spent {_steps_text(devices)} on"
        rows = [row for device in devices for row in _bars_of(device, parts)]
        drawn = _by_step(rows, parts)
    else:
        title, drawn = _summarized(devices, parts)
    return Chart("steps", title, _spoken(devices), finished(drawn, title))


def _summarized(devices: Sequence[Device], parts: Sequence[str]) -> tuple[str, Drawn]:
    upper, merged = heat_map(devices)
    shown = chosen(devices, _MOST_DEVICES)
    rows = [row for device in shown for row in _mean_bar(device, parts)]
    lower = _bars(rows, parts).properties(title=heading(_mean_text(shown, devices)))
    title = f"How long each rank needs in {_steps_text(devices)}, and what for{merged}"
    return title, stacked(upper, lower)


def _mean_text(shown: Sequence[Device], devices: Sequence[Device]) -> str:
    if len(shown) == len(devices):
        return "mean step of each rank"
    return (
        f"mean step of {len(shown)} of {len(devices):,} ranks: quantiles of the time that they "
        "need without waiting for others, and outliers"
    )


def _steps_text(devices: Sequence[Device]) -> str:
    numbers = sorted({s.step for one in devices for s in one.steps if s.step is not None})
    if not numbers:
        return "its window"
    word = "step" if len(numbers) == 1 else "steps"
    return f"{word} {rank_ranges(numbers)}"


def _bars_of(device: Device, parts: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for step in device.steps:
        assert step.times is not None
        label = "window" if step.step is None else f"step {step.step}"
        own = dict(parts_of(step))
        rows += _bar(device.label, label, {key: own.get(key, 0) for key in parts})
    return rows


def _mean_bar(device: Device, parts: Sequence[str]) -> list[dict[str, Any]]:
    label = f"{device.label} ({device.why})" if device.why else device.label
    return _bar(label, "", mean_parts(device, parts))


def _bar(rank: str, step: str, parts: dict[str, int]) -> list[dict[str, Any]]:
    span_ns = sum(parts.values())
    decimals = ms_decimals(span_ns)
    rows: list[dict[str, Any]] = []
    end = 0
    for key, ns in parts.items():
        start, end = end, end + ns
        if not ns:
            continue
        rows.append(
            {
                "rank": rank,
                "step": step,
                "part": PART_NAMES[key],
                "start": start / 1e6,
                "end": end / 1e6,
                "time": f"{format_ms(ns, decimals)} ms",
                "share": format_percent(ns, span_ns),
                "span": f"{format_ms(span_ns, decimals)} ms",
            }
        )
    return rows


def _by_step(rows: Rows, parts: Sequence[str]) -> Drawn:
    steps = list(dict.fromkeys(row["step"] for row in rows))
    if len(steps) == 1:
        return _bars(rows, parts)
    return _bars(rows, parts).facet(
        row=alt.Row(
            "step:N",
            sort=steps,
            title=None,
            header=alt.Header(labelAngle=0, labelAlign="left", labelAnchor="middle"),
        ),
        spacing=10,
    )


def _bars(rows: Rows, parts: Sequence[str]) -> Drawn:
    ranks = list(dict.fromkeys(row["rank"] for row in rows))
    fill, line = parts_scale([(key, PART_NAMES[key]) for key in parts])
    longest = max(row["end"] for row in rows)
    y = alt.Y("rank:N", sort=ranks, title=None, axis=alt.Axis(domain=False, ticks=False))
    legend = alt.Legend(orient="top", direction="horizontal", symbolType="square")
    height = BAR if len(rows) <= _FEW_BARS * len(parts) else THIN_BAR
    bars = alt.Chart(width=WIDTH, height=alt.Step(height)).mark_bar(strokeWidth=0.75)
    bars = bars.encode(
        y=y,
        x=alt.X(
            "start:Q",
            title="ms",
            scale=alt.Scale(domain=[0, longest * 1.11], nice=False),
            axis=alt.Axis(tickCount=8),
        ),
        x2="end:Q",
        color=alt.Color(
            "part:N",
            title=None,
            scale=fill,
            legend=legend,
        ),
        stroke=alt.Stroke("part:N", title=None, scale=line, legend=legend),
        tooltip=[
            alt.Tooltip(f"{name}:N", title=name)
            for name in ("rank", "step", "part", "time", "share", "span")
        ],
    )
    texts = (
        alt.Chart()
        .mark_text(align="left", dx=5)
        .encode(y=y, x=alt.X("max(end):Q"), text=alt.Text("span:N"))
    )
    return alt.layer(bars, texts, data=values(rows))


def _spoken(devices: Sequence[Device]) -> str:
    steps = [step for device in devices for step in device.steps]
    sums: dict[str, int] = {}
    for step in steps:
        for key, ns in parts_of(step):
            sums[key] = sums.get(key, 0) + ns
    whole = sum(sums.values())
    told = ", ".join(
        f"{PART_NAMES[key]} {format_percent(ns, whole)}" for key, ns in sums.items() if ns
    )
    text = (
        f"{format_number_of(len(devices), 'device')}, {_mean(steps)} a step on average: {told}"
    )
    slowest = max(devices, key=lambda device: device.mean_own)
    if len(devices) == 1:
        return text
    more = format_ratio(slowest.mean_own - 1)
    return (
        f"{text}; without waiting for others, {slowest.label} needs most, {more} more than the "
        "median"
    )


def _mean(steps: Sequence[StepReport]) -> str:
    mean = sum(step.times.span_ns for step in steps if step.times) // len(steps)
    return f"{format_ms(mean, ms_decimals(mean))} ms"
