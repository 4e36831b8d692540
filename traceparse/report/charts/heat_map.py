"""All ranks and steps in cells: how much more time each needs than the median rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from traceparse.report.charts.chart import MOST_ROWS, WIDTH
from traceparse.report.charts.layers import Drawn, Rows, heading, values
from traceparse.report.charts.palette import palette
from traceparse.report.charts.spans import LEAST_OUTLIER, Device, outliers
from traceparse.units import format_number_of, format_ratio

__all__ = ["heat_map"]

_MOST_STEPS = 48
_MOST_CELLS = MOST_ROWS - 400  # what is left is for the bars below
_HIGHEST, _CELL, _LOWEST_CELL = 300, 18, 6  # of the map and of a row, in pixels
_LEAST_FULL = 0.05  # more than the median: less is not blown up to the strongest color
_HEADING: Final = (
    "time that a rank needs without waiting for others: more than the median rank of the step"
)


def heat_map(devices: Sequence[Device]) -> tuple[Drawn, str]:
    """Draw the map, and say what of it was merged: neighbors, of whom the slowest is shown."""
    numbers = _numbers(devices)
    step_width = -(-len(numbers) // _MOST_STEPS)
    num_rows = -(-len(numbers) // step_width)
    most = max(device.place for device in devices) + 1
    rank_width = -(-most * num_rows // _MOST_CELLS)
    cells = _cells(devices, numbers, step_width, rank_width)
    merged = [
        format_number_of(width, what)
        for width, what in ((rank_width, "rank"), (step_width, "step"))
        if width > 1
    ]
    said = f" (a cell is the slowest of {' and '.join(merged)})" if merged else ""
    map_ = alt.layer(_drawn(cells, _axis_title(devices)), *_pointers(devices))
    return map_.properties(title=heading(_HEADING)), said


def _cells(
    devices: Sequence[Device], numbers: Sequence[int | None], step_width: int, rank_width: int
) -> list[dict[str, Any]]:
    place_of = {number: place for place, number in enumerate(numbers)}
    slowest: dict[tuple[int, int], tuple[float, Device, int | None]] = {}
    for device in devices:
        for step, own in zip(device.steps, device.own, strict=True):
            key = (place_of[step.step] // step_width, device.place // rank_width)
            if key not in slowest or own > slowest[key][0]:
                slowest[key] = (own, device, step.step)
    return [
        {
            "row": _row_text(numbers[row * step_width : (row + 1) * step_width]),
            # so that a tick is in the middle of its rank
            "from": column * rank_width - 0.5,
            "to": (column + 1) * rank_width - 0.5,
            "more": own - 1,
            "text": format_ratio(own - 1),
            "rank": device.label,
            "step": "window" if step is None else f"step {step}",
        }
        for (row, column), (own, device, step) in sorted(
            slowest.items(), key=lambda item: item[0]
        )
    ]


def _numbers(devices: Sequence[Device]) -> list[int | None]:
    found = {step.step for device in devices for step in device.steps}
    return sorted(found, key=lambda number: (number is None, number or 0))


def _row_text(numbers: Sequence[int | None]) -> str:
    first, last = numbers[0], numbers[-1]
    if first is None:
        return "window"
    return f"step {first}" if first == last else f"steps {first}-{last}"


def _drawn(cells: Rows, what: str) -> Drawn:
    rows = list(dict.fromkeys(cell["row"] for cell in cells))
    full = max(_LEAST_FULL, *(cell["more"] for cell in cells))
    cell = max(_LOWEST_CELL, min(_CELL, _HIGHEST // len(rows)))
    colors = palette()
    return (
        alt.Chart(values(cells), width=WIDTH, height=alt.Step(cell))
        .mark_rect(stroke=None)
        .encode(
            x=alt.X(
                "from:Q",
                title=what,
                scale=alt.Scale(domain=_domain(cells), nice=False),
                axis=alt.Axis(format="d", grid=False, tickMinStep=1),
            ),
            x2="to:Q",
            y=alt.Y(
                "row:N",
                sort=rows,
                title=None,
                scale=alt.Scale(paddingInner=0.08),
                axis=alt.Axis(domain=False, ticks=False, labelOverlap=True),
            ),
            color=alt.Color(
                "more:Q",
                title=None,
                scale=alt.Scale(
                    domain=[0, full],
                    range=[colors["grid"], colors["exposed-comm"], colors["exposed-copy"]],
                    clamp=True,
                    interpolate="rgb",
                ),
                legend=alt.Legend(
                    orient="top", direction="horizontal", format="+.0%", gradientLength=220
                ),
            ),
            tooltip=[
                alt.Tooltip("rank:N", title="rank"),
                alt.Tooltip("step:N", title="step"),
                alt.Tooltip("text:N", title="more than the median"),
            ],
        )
    )


def _axis_title(devices: Sequence[Device]) -> str:
    are_ranks = all(device.place == device.rank for device in devices)
    return "rank" if are_ranks else "device, in the order of the ranks"


def _pointers(devices: Sequence[Device]) -> list[Drawn]:
    """Point at the outliers, or where half are slow at the slowest, and name that one."""
    slow = outliers(devices) or [max(devices, key=lambda device: device.mean_own)]
    if slow[0].mean_own < LEAST_OUTLIER:
        return []
    rows = [
        {"x": device.place, "text": device.label if number == 0 else ""}
        for number, device in enumerate(slow)
    ]
    at = alt.Chart(values(rows)).encode(x="x:Q", y=alt.value(-5))
    strongest = palette()["exposed-copy"]
    return [
        at.mark_point(shape="triangle-down", filled=True, color=strongest, size=60, opacity=1),
        at.mark_text(dy=-11, color=palette()["text"]).encode(text="text:N"),
    ]


def _domain(cells: Rows) -> list[float]:
    return [min(cell["from"] for cell in cells), max(cell["to"] for cell in cells)]
