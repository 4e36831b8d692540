"""The report as one HTML page that needs nothing else: no network and no other file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache, partial
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from traceparse.report.named import linked, sentence
from traceparse.report.page import page_of
from traceparse.report.page_charts import charts_for_page
from traceparse.report.safe import visible
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
    style, scripts = _own("report.css"), [*charts.scripts, _own("report.js")]
    template = _environment().get_template("report.html.j2")
    return template.render(
        page=page,
        charts=charts,
        style=Markup(style),  # noqa: S704 - our own file, not trace text
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - ours and Vega's
        policy=_policy(style, scripts),
        definitions=DEFINITIONS,
        open_ended=OPEN_ENDED,
        unknown=UNKNOWN,
        number_of=format_number_of,
        linked=partial(linked, anchors=page.anchors),
        sentence=partial(sentence, anchors=page.anchors),
    )


def _policy(style: str, scripts: Sequence[str]) -> str:
    allowed = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("traceparse.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _own(name: str) -> str:
    return (files("traceparse.report") / "templates" / name).read_text("utf-8").strip()


def _shown(value: object) -> object:
    """Make every text harmless on its way into the page; jinja2 escapes it after that."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
