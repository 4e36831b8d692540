"""Operators under the roofs of their device: FLOP/s against FLOP a byte, both logarithmic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from traceparse.report.charts.chart import Chart
from traceparse.report.charts.layers import Drawn, Rows, finished, values
from traceparse.report.charts.palette import color_of, palette
from traceparse.report.charts.scatter import LogAxis, scatter
from traceparse.report.safe import visible
from traceparse.run import Report
from traceparse.units import (
    format_count,
    format_figure,
    format_flop_per_s,
    format_ns,
    format_number_of,
    format_ratio,
)

__all__ = ["roofline_chart"]

_MOST_POINTS = 300
_NAME_LIMIT = 60
_SHAPES_LIMIT = 90
_TERA = 1e12
_MARGIN = 1.6  # a factor beyond the outermost points
_NO_ROOF = "roof unknown"
_INTENSITY = "FLOP a byte, with the least bytes that any code moves"
_TOLD: Final = {
    "op": "operator",
    "shapes": "shapes",
    "dtype": "dtype",
    "count": "count",
    "time": "time",
    "rate": "reached",
    "intensity": "FLOP a byte",
    "roof": "of its roof",
    "bound": "bound by",
}
_BOUNDS: Final = (
    ("compute", "compute", "circle"),
    ("memory", "exposed_comm", "square"),
    ("latency", "exposed_copy", "triangle-up"),
    (_NO_ROOF, "other", "diamond"),
)


def roofline_chart(report: Report) -> Chart | None:
    """Draw the operators that take most, sized by their time, and the roofs that are known."""
    known = [row for row in report.roofline or () if row["flop_per_s"] and row["bytes"]]
    if not known:
        return None
    shown = sorted(known, key=lambda row: -row["time_ns"])[:_MOST_POINTS]
    points = [_point(row) for row in shown]
    roofs = _roofs(report, shown, points)
    layers = [*_roof_layers(roofs), _point_layer(points, roofs)]
    title = _title(shown, known)
    chart = alt.layer(*layers).resolve_scale(color="independent", shape="independent")
    return Chart("roofline", title, _spoken(points), finished(chart, title))


def _point(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "x": row["flop"] / row["bytes"],
        "y": row["flop_per_s"] / _TERA,
        "ms": row["time_ns"] / 1e6,
        "bound": row["bound"] or _NO_ROOF,
        "op": visible(row["op"], _NAME_LIMIT),
        "shapes": visible(row["shapes"], _SHAPES_LIMIT),
        "dtype": visible(row["dtype"], _NAME_LIMIT),
        "count": format_count(row["count"]),
        "time": format_ns(row["time_ns"]),
        "rate": format_flop_per_s(row["flop_per_s"]),
        "intensity": format_figure(row["flop"] / row["bytes"]),
        "roof": format_ratio(row["roof_ratio"]),
    }


def _title(shown: Sequence[object], known: Sequence[object]) -> str:
    title = "Operators under the roofs of their device"
    if len(shown) < len(known):
        return f"{title}: the {len(shown)} that take most, of {len(known):,}"
    return title


def _spoken(points: Rows) -> str:
    counts = [
        f"{num:,} {bound if bound == _NO_ROOF else f'bound by {bound}'}"
        for bound, _, _ in _BOUNDS
        if (num := sum(point["bound"] == bound for point in points))
    ]
    first = points[0]
    told = f"{format_number_of(len(points), 'operator')} ({', '.join(counts)})"
    return (
        f"{told}; the one that takes most, {first['op']}, reaches {first['rate']} at "
        f"{first['intensity']} FLOP a byte, {first['roof']} of its roof"
    )


def _roofs(
    report: Report, shown: Sequence[Mapping[str, Any]], points: Rows
) -> list[dict[str, Any]]:
    """Return the corners of the roof of each data type that ran; level without bandwidth."""
    accelerator = report.run.accelerator or {}
    peaks = accelerator.get("peak_flop_per_s") or {}
    bandwidth = accelerator.get("hbm_bytes_per_s")
    ran = dict.fromkeys(row["dtype"] for row in shown)
    corners = []
    for dtype in ran:
        if not (peak := peaks.get(dtype)):
            continue
        ridge = peak / bandwidth if bandwidth else 0.0
        reached = [point["x"] for point in points] + ([ridge] if ridge else [])
        low, high = min(reached) / _MARGIN, max(reached) * _MARGIN
        name = f"{visible(dtype, _NAME_LIMIT)} {format_flop_per_s(peak)}"
        for place, x in enumerate((low, ridge or low, high)):
            y = min(peak, x * bandwidth) if bandwidth else peak
            corners.append({"roof": name, "x": x, "y": y / _TERA, "is_last": place == 2})
    return corners


def _roof_layers(corners: Rows) -> list[Drawn]:
    if not corners:
        return []
    line = palette()["outline"]
    lines = (
        alt.Chart(values(corners))
        .mark_line(color=line, strokeWidth=1.5, clip=True)
        .encode(x="x:Q", y="y:Q", detail="roof:N", order="x:Q")
    )
    names = (
        alt.Chart(values([row for row in corners if row["is_last"]]))
        .mark_text(align="right", baseline="bottom", dy=-4, color=palette()["muted"])
        .encode(x="x:Q", y="y:Q", text="roof:N")
    )
    return [lines, names]


def _point_layer(points: Rows, roofs: Rows) -> Drawn:
    used = [bound for bound in _BOUNDS if any(point["bound"] == bound[0] for point in points)]
    names = [name for name, _, _ in used]
    around = [*points, *roofs]
    beside = 1.0 if roofs else _MARGIN  # roofs have room beside them already
    colors = alt.Scale(domain=names, range=[color_of(key) for _, key, _ in used])
    shapes = alt.Scale(domain=names, range=[shape for _, _, shape in used])
    return scatter(
        points,
        LogAxis(_INTENSITY, ",~g", [point["x"] for point in around], beside),
        LogAxis("TFLOP/s", ",~g", [point["y"] for point in around], _MARGIN),
        size="time (ms)",
        color=alt.Color("bound:N", title="bound by", scale=colors),
        shape=alt.Shape("bound:N", title="bound by", scale=shapes),
        told=_TOLD,
    )
