"""Text from a trace, made harmless to show: nothing in it moves the cursor or hides.

A trace is untrusted input. Its names may hold terminal escape sequences, characters that turn
the reading direction, or bytes that were never text. Here they become visible; what the
receiving format itself would interpret (HTML, rich's markup) is escaped by that format's own
means where it is drawn.
"""

from __future__ import annotations

import unicodedata

__all__ = ["encodable", "visible"]

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_PLAIN = str.maketrans({"\N{EN DASH}": "-", "…": "...", "█": "#", "▓": "=", "▒": "~", "░": "."})
_LIMIT = 600


def visible(text: str, limit: int = _LIMIT) -> str:
    r"""Spell out what is invisible, and shorten what is endless.

    Control and formatting characters (C0, C1, ESC, bidirectional overrides, zero-width ones),
    lone surrogates (the bytes of a file name that is not UTF-8) and line separators become
    escapes such as ``\x1b``. A text of more than ``limit`` characters loses its middle.
    """
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]} … {text[-half:]}"
    return "".join(map(_spelled, text))


def encodable(text: str, encoding: str) -> str:
    """Keep a text within what an output's encoding can write, so that writing it cannot fail.

    Our own dashes and bars get their ASCII likeness, everything else an escape.
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return text


def _spelled(char: str) -> str:
    if unicodedata.category(char) not in _INVISIBLE:
        return char
    code = ord(char)
    if code <= 0xFF:
        return _SHORT.get(char, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
