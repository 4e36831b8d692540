"""Ranks that a text names: links to their sections, and who is waited for."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from markupsafe import Markup, escape

from traceparse.report.safe import visible
from traceparse.run import Report

__all__ = ["Flag", "headline", "linked", "named_ranks", "sentence", "stragglers_of"]

_RANK = re.compile(r"\brank (\d{1,7})\b", re.ASCII)
_SPECIAL = re.compile(r"\b[Rr]ank (?P<rank>\d{1,7})\b|`(?P<code>[^`]{1,200})`", re.ASCII)
_WORD = re.compile(r"[a-z]+(?=[ ,;.?!]|$)", re.ASCII)
_LIMIT = 4_000


@dataclass(frozen=True, slots=True)
class Flag:
    """Why a rank is called a straggler, and how sure and costly that is."""

    cause: str
    severity: str


def stragglers_of(report: Report) -> dict[int | None, Flag]:
    """Return the ranks that findings call stragglers, and the cause that is said of each."""
    said: dict[int | None, Flag] = {}
    for found in report.findings or ():
        if found["code"] == "straggler":
            cause = found["title"].rpartition(":")[2].strip()
            for rank in _ranks_in(found["title"]):
                said.setdefault(rank, Flag(cause, found["severity"]))
    return said


def named_ranks(report: Report) -> list[int]:
    """List the ranks that titles of findings name, each once, in their order."""
    titles = (found["title"] for found in report.findings or ())
    return list(dict.fromkeys(rank for title in titles for rank in _ranks_in(title)))


def linked(text: str, anchors: Collection[str]) -> Markup:
    """Return a text for the page: ``rank 3`` leads to its section, if there is one.

    What stands between backticks is set as code.
    """
    shown = visible(text, _LIMIT)
    pieces, end = [], 0
    for match in _SPECIAL.finditer(shown):
        piece = _special(match, anchors)
        if piece is not None:
            pieces += [escape(shown[end : match.start()]), piece]
            end = match.end()
    return Markup("").join([*pieces, escape(shown[end:])])


def _special(match: re.Match[str], anchors: Collection[str]) -> Markup | None:
    rank, code = match["rank"], match["code"]
    if code is not None:
        return Markup("<code>{}</code>").format(code)
    if f"rank-{rank}" in anchors:
        return Markup('<a href="#rank-{}">{}</a>').format(rank, match[0])
    return None


def sentence(text: str, anchors: Collection[str]) -> Markup:
    """Return a text as :func:`linked`, with a capital first and an end."""
    told = _with_capital(text)
    return linked(told if told.endswith((".", "?", "!")) else f"{told}.", anchors)


def headline(text: str, anchors: Collection[str]) -> Markup:
    """Return a text as :func:`linked`, with a capital first."""
    return linked(_with_capital(text), anchors)


def _with_capital(text: str) -> str:
    """Begin a text with a capital, unless its first word is a name such as ``aten::mm``."""
    return text[:1].upper() + text[1:] if _WORD.match(text) else text


def _ranks_in(text: str) -> list[int]:
    return [int(number) for number in _RANK.findall(text)]
