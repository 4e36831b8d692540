"""What every page of ours is made with: its own style and scripts, by hash, and no more."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from traceparse.report.safe import visible

__all__ = ["environment", "own", "policy"]


@cache
def environment() -> Environment:
    """Return what fills templates: all text in them is escaped, and made visible before."""
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
def own(name: str) -> str:
    """Return a style sheet or a script of ours."""
    return (files("traceparse.report") / "templates" / name).read_text("utf-8").strip()


def policy(style: str, scripts: Sequence[str] = ()) -> str:
    """Return the content security policy: these, by hash, and nothing else.

    So even a name that slipped through the escaping could not load or run anything.
    """
    allowed = " ".join(map(_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _shown(value: object) -> object:
    """Make every text harmless on its way into the page; jinja2 escapes it after that."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
