"""Points between two logarithmic axes, sized by their time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from traceparse.report.charts.chart import WIDTH
from traceparse.report.charts.layers import Drawn, Rows, values
from traceparse.report.charts.palette import palette

__all__ = ["LogAxis", "scatter"]

_FEW_POWERS = 4
_HEIGHT = 320
_SIZES = (30, 800)


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis: its title, positive numbers that it has, room beyond them."""

    title: str
    format: str
    numbers: Sequence[float]
    margin: float

    def encoded(self) -> tuple[alt.Scale, alt.Axis]:
        """Return its scale, and ticks: powers of ten, of few also 2 and 5 times each."""
        low, high = min(self.numbers) / self.margin, max(self.numbers) * self.margin
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = (1, 2, 5) if len(powers) <= _FEW_POWERS else (1,)
        ticks = [float(f"{step}e{power}") for power in powers for step in steps]
        shown = [tick for tick in ticks if low <= tick <= high]
        scale = alt.Scale(type="log", domain=[low, high], nice=False)
        return scale, alt.Axis(format=self.format, values=shown)


def scatter(
    points: Rows,
    across: LogAxis,
    upwards: LogAxis,
    *,
    size: str,
    color: alt.Color,
    shape: alt.Shape,
    told: Mapping[str, str],
) -> Drawn:
    """Draw rows at their ``x`` and ``y``, as large as their ``ms``; ``size`` names these.

    ``told`` has what is said of a point on hover: fields, and their titles.
    """
    x_scale, x_axis = across.encoded()
    y_scale, y_axis = upwards.encoded()
    return (
        alt.Chart(values(points), width=WIDTH, height=_HEIGHT)
        .mark_point(filled=True, opacity=0.8, stroke=palette()["page"], strokeWidth=1)
        .encode(
            x=alt.X("x:Q", title=across.title, scale=x_scale, axis=x_axis),
            y=alt.Y("y:Q", title=upwards.title, scale=y_scale, axis=y_axis),
            size=alt.Size(
                "ms:Q",
                title=size,
                scale=alt.Scale(range=list(_SIZES), domainMin=0),
                legend=alt.Legend(symbolFillColor=palette()["outline"], tickCount=4),
            ),
            color=color,
            shape=shape,
            tooltip=[alt.Tooltip(f"{name}:N", title=title) for name, title in told.items()],
        )
    )
