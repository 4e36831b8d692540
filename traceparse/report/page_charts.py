"""Charts on the page: specifications to be drawn by Vega, which the page brings with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from traceparse.report.charts import (
    Chart,
    charts_of,
    dark_colors,
    javascript,
    to_spec,
    why_no_charts,
)
from traceparse.run import Report

__all__ = ["Charts", "Drawn", "as_json", "charts_for_page"]

# the others are on the page as pictures that need no script
_DRAWN: Final = ("steps", "roofline", "collectives")
_MAP_FROM: Final = 64  # devices; of fewer, each has a row of the static picture
_ESCAPED: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """One chart: its specification as JSON that may stand in the page."""

    key: str
    title: str
    spoken: str
    spec: Markup


@dataclass(frozen=True, slots=True)
class Charts:
    """The charts by key, the scripts that they need, their dark colors; or what to install."""

    drawn: Mapping[str, Drawn]
    scripts: Sequence[str]
    colors: Markup
    install: str


def charts_for_page(report: Report) -> Charts:
    """Return the charts that the page has no static picture of; none without the extra."""
    if lacking := why_no_charts():
        return Charts({}, (), Markup(""), lacking)
    is_large = len(report.devices) > _MAP_FROM
    drawn = {
        chart.key: _drawn(chart)
        for chart in charts_of(report)
        if chart.key in _DRAWN and (is_large or chart.key != "steps")
    }
    scripts = (javascript(),) if drawn else ()
    return Charts(drawn, scripts, as_json(dark_colors()), "")


def _drawn(chart: Chart) -> Drawn:
    spec = to_spec(chart)
    if chart.key == "steps":
        spec = _upper(spec)
    return Drawn(chart.key, chart.title, chart.spoken, as_json(spec))


def _upper(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the upper of two pictures: the lower one is on the page as a static one."""
    if "vconcat" not in spec:
        return spec
    return {**{key: spec[key] for key in spec if key != "vconcat"}, **spec["vconcat"][0]}


def as_json(value: object) -> Markup:
    """Write JSON that cannot end the script element that it stands in.

    All that is not ASCII is an escape, and so are the characters that mean something in HTML.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPED))  # noqa: S704 - nothing of HTML is left in it
