"""Charts as specifications, pictures and the script that draws them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import altair
import vl_convert

from traceparse.report.charts.chart import Chart
from traceparse.report.charts.palette import dark_colors
from traceparse.report.charts.png import repacked

__all__ = ["javascript", "to_png", "to_spec", "to_svg"]

_SCALE = 2.0
_CLOSING = re.compile(r"</(?=script)", re.IGNORECASE)
_SNIPPET = "window.vegaEmbed = vegaEmbed;"
_DATA = ("data", "datasets")


def to_spec(chart: Chart, *, dark: bool = False, titled: bool = False) -> dict[str, Any]:
    """Return the Vega-Lite specification, as :func:`traceparse.report.charts.to_spec`."""
    spec = _spec_of(chart, dark=dark)
    spec["background"] = "transparent"
    spec["config"].pop("background", None)
    if not titled:
        spec.pop("title", None)
    return spec


def to_png(chart: Chart, *, dark: bool = False) -> bytes:
    """Return the PNG, as :func:`traceparse.report.charts.to_png`."""
    png: bytes = vl_convert.vegalite_to_png(
        _spec_of(chart, dark=dark), vl_version=_version(), scale=_SCALE, allowed_base_urls=[]
    )
    return repacked(png)


def to_svg(chart: Chart, *, dark: bool = False) -> str:
    """Return the SVG, as :func:`traceparse.report.charts.to_svg`."""
    svg: str = vl_convert.vegalite_to_svg(
        _spec_of(chart, dark=dark), vl_version=_version(), allowed_base_urls=[]
    )
    return svg


@cache
def javascript() -> str:
    """Return the script, as :func:`traceparse.report.charts.javascript`."""
    script: str = vl_convert.javascript_bundle(_SNIPPET, vl_version=_version())
    # a string in it must not end the element that the script stands in
    return _CLOSING.sub(r"<\\/", script)


def _spec_of(chart: Chart, *, dark: bool) -> dict[str, Any]:
    spec: dict[str, Any] = chart.chart.to_dict()
    del spec["$schema"]  # a URL; what draws it is told
    spec["description"] = chart.spoken
    return _recolored(spec, dark_colors()) if dark else spec


def _recolored(spec: dict[str, Any], colors: Mapping[str, str]) -> dict[str, Any]:
    """Exchange colors everywhere but in the data, which may say anything."""
    return {
        key: value if key in _DATA else _exchanged(value, colors) for key, value in spec.items()
    }


def _exchanged(value: Any, colors: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return _recolored(value, colors)
    if isinstance(value, list):
        return [_exchanged(item, colors) for item in value]
    return colors.get(value, value) if isinstance(value, str) else value


@cache
def _version() -> str:
    """Return Altair's version of Vega-Lite, as far as vl-convert has it: ``v6.1``."""
    wanted: str = altair.SCHEMA_VERSION.rpartition(".")[0]
    known: list[str] = [f"v{version}" for version in vl_convert.get_vegalite_versions()]
    same = [one for one in known if one.partition(".")[0] == wanted.partition(".")[0]]
    return wanted if wanted in known else same[-1]
