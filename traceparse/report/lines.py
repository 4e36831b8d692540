"""Single lines in a terminal, whatever the text in them was."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from traceparse.report.safe import encodable, visible

__all__ = ["as_text", "say"]


def as_text(console: Console, text: str, style: str = "") -> Text:
    """Return a text that is shown as it is, in what a console can write."""
    return Text(encodable(visible(text), console.encoding), style)


def say(
    console: Console,
    text: str,
    style: str = "",
    *,
    lead: str = "",
    lead_style: str = "",
    indent: int = 0,
) -> None:
    """Print one line: wrapped between words for people, whole for whatever reads a pipe."""
    line = Text.assemble(
        (f"{lead} " if lead else "", lead_style), as_text(console, text, style)
    )
    if not console.is_terminal:
        console.print(Text(" " * indent) + line, soft_wrap=True)
        return
    console.print(Padding(line, (0, 0, 0, indent)))
