"""Pieces that several charts are put together from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt

from traceparse.report.charts.chart import WIDTH
from traceparse.report.charts.palette import color_of, config_of, palette

__all__ = [
    "BAR",
    "THIN_BAR",
    "Drawn",
    "Rows",
    "bars_of_shares",
    "finished",
    "heading",
    "parts_scale",
    "stacked",
    "values",
]

Rows: TypeAlias = Sequence[Mapping[str, Any]]
# layering and faceting change the class of a chart, which their annotations leave open
Drawn: TypeAlias = Any
BAR, THIN_BAR = 22, 17  # height of a bar with the gap below it, in pixels
_OUTLINED = frozenset({"idle", "pipeline_wait"})


def values(rows: Rows) -> alt.InlineData:
    """Return rows as data that stands in the chart itself."""
    return alt.InlineData(values=list(rows))


def finished(chart: Drawn, title: str) -> alt.TopLevelMixin:
    """Give a chart its title and what all charts have in common."""
    done: alt.TopLevelMixin = chart.properties(
        title=alt.TitleParams(title), config=config_of(), padding=8
    )
    return done


def heading(text: str) -> alt.TitleParams:
    """Return the title of one of several pictures in a chart."""
    return alt.TitleParams(text, fontSize=12, fontWeight="normal", offset=8, frame="group")


def stacked(*charts: Drawn) -> Drawn:
    """Put pictures under one another, each with scales of its own."""
    return alt.vconcat(*charts, spacing=24).resolve_scale(
        color="independent", stroke="independent"
    )


def parts_scale(parts: Sequence[tuple[str, str]]) -> tuple[alt.Scale, alt.Scale]:
    """Return the scales of fill and of outline for parts, by key and name.

    What is pale has an outline, as on the page; the others are outlined in their own color.
    """
    names = [name for _, name in parts]
    fills = [color_of(key) for key, _ in parts]
    lines = [
        palette()["outline"] if key in _OUTLINED else fill
        for (key, _), fill in zip(parts, fills, strict=True)
    ]
    return alt.Scale(domain=names, range=fills), alt.Scale(domain=names, range=lines)


def bars_of_shares(rows: Rows, *, most: float, least: float = 0.0) -> Drawn:
    """Draw horizontal bars from ``start`` to ``end``, each with its ``name`` and ``share``.

    ``key`` has its color; all but the shares themselves stand in the rows in order.
    """
    names = [row["name"] for row in rows]
    fill, line = parts_scale([(row["key"], row["name"]) for row in rows])
    base = alt.Chart(values(rows), width=WIDTH, height=alt.Step(BAR)).encode(
        y=alt.Y("name:N", sort=names, title=None, axis=alt.Axis(domain=False, ticks=False))
    )
    seen = base.transform_filter(alt.datum.end != alt.datum.start)
    bars = seen.mark_bar(strokeWidth=1).encode(
        x=alt.X(
            "start:Q",
            title=None,
            scale=alt.Scale(domain=[least, most], nice=False),
            axis=alt.Axis(format="~%", tickCount=6),
        ),
        x2="end:Q",
        color=alt.Color("name:N", scale=fill, legend=None),
        stroke=alt.Stroke("name:N", scale=line, legend=None),
        tooltip=[alt.Tooltip("name:N", title="part"), alt.Tooltip("share:N", title="share")],
    )
    texts = base.mark_text(align="left", dx=5).encode(
        x=alt.X("right:Q"), text=alt.Text("share:N")
    )
    return alt.layer(bars, texts)
