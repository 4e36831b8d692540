"""The colors of charts: those of the page's style sheet, light and dark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

__all__ = ["FONT", "KINDS", "color_of", "config_of", "dark_colors", "palette"]

FONT: Final = 'system-ui, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif'
_COLOR = re.compile(r"--([a-z-]+):\s*light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
# what charts draw with; colors of the page alone may be alike in one of its modes
_USED: Final = (
    *("page", "text", "muted", "rule", "grid", "outline"),
    *("compute", "exposed-comm", "exposed-wait", "pipeline-wait", "exposed-transfer"),
    *("exposed-copy", "idle", "other-kernels", "matmul-inefficiency", "recompute", "mfu"),
)
# told apart in this order; with shapes as well where there are more than lightness can carry
KINDS: Final = (
    *("compute", "exposed-comm", "mfu", "exposed-copy"),
    *("other-kernels", "exposed-transfer", "recompute", "muted"),
)


@cache
def palette(*, dark: bool = False) -> Mapping[str, str]:
    """Return the colors by the names that they have in ``report.css``, without dashes before.

    The style sheet has them once, for light and dark; here it is read.
    """
    style = files("traceparse.report").joinpath("templates", "report.css").read_text("utf-8")
    found = {name: night if dark else day for name, day, night in _COLOR.findall(style)}
    return {name: found[name] for name in _USED}


def color_of(key: str) -> str:
    """Return the light color of a part, a term or a kind, by its key in the report."""
    name = {"exposed_unsplit": "exposed-comm", "other": "muted"}.get(key, key)
    return palette()[name.replace("_", "-")]


def dark_colors() -> dict[str, str]:
    """Return for each light color that a chart may have the one that it has in the dark."""
    dark = palette(dark=True)
    return {color: dark[name] for name, color in palette().items()}


def config_of() -> dict[str, Any]:
    """Return what all charts have in common: letters, lines and their colors."""
    colors = palette()
    text, muted = colors["text"], colors["muted"]
    words = {"labelColor": muted, "titleColor": muted, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": colors["page"],
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            **words,
            "titleFontWeight": "normal",
            "gridColor": colors["grid"],
            "domainColor": colors["rule"],
            "tickColor": colors["rule"],
            "labelLimit": 260,
        },
        "header": {**words, "labelColor": text, "labelFontWeight": 600},
        "legend": {**words, "labelColor": text, "labelLimit": 260, "symbolStrokeWidth": 1},
        "title": {
            "color": text,
            "fontSize": 14,
            "fontWeight": 600,
            "anchor": "start",
            "subtitleColor": muted,
            "subtitleFontSize": 12,
            "offset": 12,
        },
        "text": {"color": text, "fontSize": 12},
    }
