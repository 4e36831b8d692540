"""The report as one HTML page that needs nothing else: no network and no other file."""

from __future__ import annotations

from functools import partial

from markupsafe import Markup

from traceparse.report.named import headline, linked, sentence
from traceparse.report.offline import environment, own, policy
from traceparse.report.page import page_of
from traceparse.report.page_charts import charts_for_page
from traceparse.report.words import DEFINITIONS, OPEN_ENDED
from traceparse.run import Report
from traceparse.units import UNKNOWN, format_number_of

__all__ = ["render"]


def render(report: Report) -> str:
    """Return the page as text.

    Its content security policy allows its own style sheet and scripts, by hash, and nothing
    else, so that even a name that slipped through the escaping could not load or run anything.
    """
    page = page_of(report)
    charts = charts_for_page(report)
    style, scripts = own("report.css"), [*charts.scripts, own("report.js")]
    template = environment().get_template("report.html.j2")
    return template.render(
        page=page,
        charts=charts,
        style=Markup(style),  # noqa: S704 - our own file, not trace text
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - ours and Vega's
        policy=policy(style, scripts),
        definitions=DEFINITIONS,
        open_ended=OPEN_ENDED,
        unknown=UNKNOWN,
        number_of=format_number_of,
        linked=partial(linked, anchors=page.anchors),
        headline=partial(headline, anchors=page.anchors),
        sentence=partial(sentence, anchors=page.anchors),
    )
