"""Blocks of code on pages of Markdown: all fences are read, as one's end looks like a start."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str, *languages: str) -> list[str]:
    """Return what stands in the blocks of these languages; ``""`` is one that is not named."""
    return [code for language, code in _BLOCK.findall(text) if language in languages]


def without_blocks(text: str) -> str:
    """Return what is no code."""
    return _BLOCK.sub("", text)
