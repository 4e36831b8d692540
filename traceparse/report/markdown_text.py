"""Text from a trace in Markdown: it shows as it is, and nothing in it is markup.

What has a meaning in CommonMark, in GitHub's tables and formulas or in HTML is escaped.
Backslashes, which would escape the escape, are character references. Beyond that, GitHub
makes links of addresses and mentions people: neither happens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from traceparse.report.safe import visible
from traceparse.units import UNKNOWN

__all__ = ["code", "prose", "table"]

# in words: underscores between letters are no markup
_ESCAPED = re.compile(r"[*\[\]~$]|(?<!\w)_|_(?!\w)|\A[#+=-]|(?<=\A\d)[.)]|(?<=\A\d\d)[.)]")
# even after a backslash, or where a table takes no account of one
_REFERRED = re.compile(r"[&<>|\\`]")
_AUTOMATIC = re.compile(r"(?:(?<=https)|(?<=http)|(?<=ftp)):(?=//)|(?<=www)\.|[@#](?=\w)", re.I)
_JOINER = "\N{WORD JOINER}"  # without width: parts what would become a link
_NOT_CODE = re.compile(r"[|\\`]")


def prose(text: str, limit: int = 600) -> str:
    """Return a text as Markdown that shows just this text, in one line."""
    parted = _AUTOMATIC.sub(rf"\g<0>{_JOINER}", visible(text, limit))
    referred = _REFERRED.sub(lambda found: f"&#{ord(found[0])};", parted)
    return _ESCAPED.sub(r"\\\g<0>", referred)


def code(text: str, limit: int = 80) -> str:
    """Return a name as Markdown, in the letters of code where it can be."""
    shown = visible(text, limit)
    if shown == UNKNOWN or not shown.strip() or _NOT_CODE.search(shown):
        return prose(text, limit)
    return f"`{shown}`"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, num_words: int = 1) -> str:
    """Return a table, its cells Markdown already; the first columns are words, not numbers."""
    rule = ["---" if place < num_words else "---:" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows))
