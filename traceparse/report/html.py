"""The report as one HTML page that needs nothing else: no network, script or other file."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from traceparse.report.page import page_of
from traceparse.report.safe import visible
from traceparse.report.words import DEFINITIONS, OPEN_ENDED, PARTS
from traceparse.run import Report
from traceparse.units import UNKNOWN, format_number_of

__all__ = ["render"]


def render(report: Report) -> str:
    """Return the page as text.

    Its content security policy allows its own style sheet, by hash, and nothing else, so that
    even a name that slipped through the escaping could not load or run anything.
    """
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = _environment().get_template("report.html.j2")
    return template.render(
        page=page_of(report),
        style=Markup(style),  # noqa: S704 - our own file, not trace text
        style_hash=f"sha256-{digest}",
        parts=PARTS,
        definitions=DEFINITIONS,
        open_ended=OPEN_ENDED,
        unknown=UNKNOWN,
        number_of=format_number_of,
    )


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
def _style() -> str:
    return (files("traceparse.report") / "templates" / "report.css").read_text("utf-8").strip()


def _shown(value: object) -> object:
    """Make every text harmless on its way into the page; jinja2 escapes it after that."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
