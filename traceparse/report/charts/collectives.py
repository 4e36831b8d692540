"""How fast messages of each size went, beside what the link can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from traceparse.report.across import link_of
from traceparse.report.charts.chart import WIDTH, Chart
from traceparse.report.charts.layers import Drawn, Rows, finished, values
from traceparse.report.charts.palette import KINDS, palette
from traceparse.report.charts.scatter import LogAxis, scatter
from traceparse.report.safe import visible
from traceparse.run import Report
from traceparse.units import (
    UNKNOWN,
    format_bytes,
    format_count,
    format_ns,
    format_number_of,
    rank_ranges,
)

__all__ = ["collectives_chart"]

_MOST_POINTS = 400
_NAME_LIMIT = 60
_GIGA = 1e9
_MARGIN = 2.0  # a factor beyond the outermost points
_SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_OTHERS = "others"
_TOLD: Final = {
    "collective": "collective",
    "process_group": "process group",
    "ranks": "ranks",
    "dtype": "dtype",
    "size": "message",
    "count": "count",
    "transfer": "transfer",
    "wait": "wait",
}
_BUSBW = "busbw_bytes_per_s"
_NAMES: Final = {_BUSBW: "Bus bandwidth", "algbw_bytes_per_s": "Algorithm bandwidth"}


def collectives_chart(report: Report) -> Chart | None:
    """Draw the kinds of collectives whose bandwidth is known; both axes are logarithmic."""
    measure, known = _measured(report)
    if not known:
        return None
    shown = known[:_MOST_POINTS]
    points = _points(shown, measure)
    link = link_of(report) if measure == _BUSBW else None
    layers = [_point_layer(points, measure, link)]
    if link is not None:
        layers += _link_layers(*link)
    title = f"{_NAMES[measure]} of collectives against the size of their messages"
    if len(shown) < len(known):
        title += f": the {len(shown)} kinds that cost most, of {len(known):,}"
    drawn = alt.layer(*layers)
    return Chart("collectives", title, _spoken(shown, measure, link), finished(drawn, title))


def _measured(report: Report) -> tuple[str, list[Mapping[str, Any]]]:
    """Return what is drawn, and of which rows: algbw where no group's size is known."""
    sized = [row for row in report.collectives or () if row["message_bytes"]]
    for measure in _NAMES:
        if known := [row for row in sized if row[measure]]:
            return measure, known
    return _BUSBW, []


def _points(shown: Sequence[Mapping[str, Any]], measure: str) -> list[dict[str, Any]]:
    kinds = _first([visible(row["collective"] or UNKNOWN, _NAME_LIMIT) for row in shown], KINDS)
    sizes = _first([_group(row) for row in shown], _SHAPES)
    return [
        {
            "x": row["message_bytes"],
            "y": row[measure] / _GIGA,
            "collective": kind,
            "group": size,
            "ms": (row["transfer_ns"] or 0) / 1e6,
            "process_group": visible(row["process_group"] or UNKNOWN, _NAME_LIMIT),
            "ranks": rank_ranges(list(row["ranks"])),
            "dtype": visible(row["dtype"] or UNKNOWN, _NAME_LIMIT),
            "size": format_bytes(row["message_bytes"]),
            "count": format_count(row["count"]),
            "transfer": format_ns(row["transfer_ns"]),
            "wait": format_ns(row["wait_ns"]),
            "rate": f"{row[measure] / _GIGA:,.3g} GB/s",
        }
        for row, kind, size in zip(shown, kinds, sizes, strict=True)
    ]


def _group(row: Mapping[str, Any]) -> str:
    size = row["group_size"]
    return "ranks unknown" if size is None else format_number_of(size, "rank")


def _first(names: Sequence[str], places: Sequence[str]) -> list[str]:
    """Keep as many different names as there are places, and merge what comes after."""
    kept = list(dict.fromkeys(names))
    if len(kept) > len(places):
        del kept[len(places) - 1 :]
    return [name if name in kept else _OTHERS for name in names]


def _point_layer(points: Rows, measure: str, link: tuple[str, float] | None) -> Drawn:
    kinds = list(dict.fromkeys(point["collective"] for point in points))
    groups = list(dict.fromkeys(point["group"] for point in points))
    rates = [point["y"] for point in points] + ([link[1] / _GIGA] if link else [])
    colors = [palette()[name] for name in KINDS[: len(kinds)]]
    return scatter(
        points,
        LogAxis("bytes of a message", "~s", [point["x"] for point in points], _MARGIN),
        LogAxis(f"{_short(measure)} (GB/s)", ",~g", rates, _MARGIN),
        size="transfer (ms)",
        color=alt.Color(
            "collective:N", title="collective", scale=alt.Scale(domain=kinds, range=colors)
        ),
        shape=alt.Shape(
            "group:N",
            title="process groups of",
            scale=alt.Scale(domain=groups, range=list(_SHAPES[: len(groups)])),
            legend=alt.Legend(symbolFillColor=palette()["outline"]),
        ),
        told={**_TOLD, "rate": _short(measure)},
    )


def _short(measure: str) -> str:
    return measure.partition("_")[0]


def _link_layers(name: str, bytes_per_s: float) -> list[Drawn]:
    text = f"{name}: {bytes_per_s / _GIGA:,g} GB/s in each direction"
    data = values([{"y": bytes_per_s / _GIGA, "text": text}])
    rule = alt.Chart(data).mark_rule(color=palette()["outline"], strokeDash=[6, 4])
    words = alt.Chart(data).mark_text(
        align="right", baseline="bottom", dy=-4, color=palette()["muted"]
    )
    return [
        rule.encode(y="y:Q"),
        words.encode(x=alt.value(WIDTH), y="y:Q", text="text:N"),
    ]


def _spoken(
    shown: Sequence[Mapping[str, Any]], measure: str, link: tuple[str, float] | None
) -> str:
    fastest = max(shown, key=lambda row: row[measure])
    text = (
        f"{format_number_of(len(shown), 'kind')} of collectives; the fastest, "
        f"{visible(fastest['collective'] or UNKNOWN, _NAME_LIMIT)} of "
        f"{format_bytes(fastest['message_bytes'])}, reaches "
        f"{fastest[measure] / _GIGA:,.3g} GB/s"
    )
    return text if link is None else f"{text}, where {link[0]} has {link[1] / _GIGA:,g}"
