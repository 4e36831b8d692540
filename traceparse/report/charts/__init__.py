"""Pictures of a report as Altair charts: data and marks, drawn by Vega-Lite in a browser.

``charts_of(report)`` gives what there is to draw; each chart can be shown in a notebook,
become a specification for a page, a PNG or an SVG. All of it needs the extra ``report``, and
nothing of it is imported before it is asked for.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from traceparse.errors import MissingExtraError, TraceparseError
from traceparse.report.charts.chart import Chart
from traceparse.report.charts.palette import dark_colors

if TYPE_CHECKING:
    from traceparse.run import Report

__all__ = [
    "NEEDED",
    "NO_ROOM",
    "Chart",
    "charts_of",
    "dark_colors",
    "has_charts",
    "javascript",
    "to_png",
    "to_spec",
    "to_svg",
    "why_no_charts",
]

_ADDRESSES = 128 << 30  # bytes: with vl-convert 1.9, twice what is too little
NO_ROOM = "charts need more addresses than this process may have: raise ulimit -v to 128 GiB"
NEEDED = "charts need the extra `report`: pip install 'traceparse[report]'"


def has_charts() -> bool:
    """Can charts be drawn here: the extra is installed, and there is room for it?"""
    return why_no_charts() is None


def why_no_charts() -> str | None:
    """Say why no chart can be drawn here, and what to do; ``None`` if they can.

    The JavaScript engine of vl-convert claims addresses, not memory, and where it gets none it
    ends the process; so that is asked before.
    """
    if any(find_spec(name) is None for name in ("altair", "vl_convert")):
        return NEEDED
    return None if _has_room() else NO_ROOM


def charts_of(report: Report) -> tuple[Chart, ...]:
    """Return a chart of everything in the report that there is something to draw of.

    Keys, in this order: ``waterfall``, ``steps``, ``scaling_loss``, ``roofline``,
    ``collectives``. None has more than about 2,000 rows of data, whatever the run.

    Raises
    ------
    MissingExtraError
        The extra ``report`` is not installed.
    """
    _require()
    from traceparse.report.charts import drawn  # noqa: PLC0415 - Altair takes a second

    return drawn.charts_of(report)


def to_spec(chart: Chart, *, dark: bool = False, titled: bool = False) -> dict[str, Any]:
    """Return a chart as a Vega-Lite specification for a page: data in it, and no URL.

    Its background is the page's own. The title is left to the page unless ``titled``.

    Raises
    ------
    MissingExtraError
        The extra ``report`` is not installed.
    """
    _require()
    from traceparse.report.charts import rendered  # noqa: PLC0415 - as above

    return rendered.to_spec(chart, dark=dark, titled=titled)


def to_png(chart: Chart, *, dark: bool = False) -> bytes:
    """Return a chart with its title as PNG, at twice the resolution of old screens.

    Raises
    ------
    MissingExtraError
        The extra ``report`` is not installed.
    """
    _require()
    from traceparse.report.charts import rendered  # noqa: PLC0415 - as above

    return rendered.to_png(chart, dark=dark)


def to_svg(chart: Chart, *, dark: bool = False) -> str:
    """Return a chart with its title as SVG.

    Raises
    ------
    MissingExtraError
        The extra ``report`` is not installed.
    """
    _require()
    from traceparse.report.charts import rendered  # noqa: PLC0415 - as above

    return rendered.to_svg(chart, dark=dark)


def javascript() -> str:
    """Return the script that draws specifications on a page: Vega, Vega-Lite, vega-embed.

    It sets ``vegaEmbed``; call it with ``{ast: true, actions: false, mode: "vega-lite"}``, and
    the page's policy need not allow ``unsafe-eval``. It may stand in a ``script`` element.

    Raises
    ------
    MissingExtraError
        The extra ``report`` is not installed.
    """
    _require()
    from traceparse.report.charts import rendered  # noqa: PLC0415 - as above

    return rendered.javascript()


def _require() -> None:
    reason = why_no_charts()
    if reason is not None:
        raise MissingExtraError(reason) if reason == NEEDED else TraceparseError(reason)


def _has_room() -> bool:
    if sys.platform == "win32":
        return True
    import resource  # noqa: PLC0415 - not everywhere

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return limit == resource.RLIM_INFINITY or limit >= _ADDRESSES
