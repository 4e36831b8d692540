"""Where one event ends and the next begins, in any layout of valid JSON.

Two ways, both exact. libkineto, ``json.dump(indent=…)`` and torch's Python writer put a line
break between events that occurs nowhere else, so searching that byte string is enough
(:func:`delimiter`), even around a damaged event. Everything else takes a pass over the
brackets and quotes of the text (:func:`outline`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Outline", "Separator", "delimiter", "outline", "pieces"]

_OPEN, _CLOSE, _COMMA, _QUOTE, _BACKSLASH = 1, 2, 3, 4, 5
_ROLES = np.zeros(256, np.uint8)
for _bytes, _role in (
    (b"[{", _OPEN),
    (b"]}", _CLOSE),
    (b",", _COMMA),
    (b'"', _QUOTE),
    (b"\\", _BACKSLASH),
):
    _ROLES[list(_bytes)] = _role


class Separator(NamedTuple):
    """Bytes that stand between two events and nowhere else.

    ``close`` is how many of them belong to the event before: they end with its brace.
    """

    between: bytes
    close: int

    def end_of_array(self, text: bytes) -> int:
        """Return where the last event ends, just before the array closes, or -1."""
        close = re.escape(self.between[: self.close])
        found = re.search(close + rb"(?=[ \t]*\r?\n[ \t]*\])", text)
        return found.end() if found else -1


class Outline(NamedTuple):
    """The commas between whole elements of an array, and its closing bracket (-1: not here)."""

    commas: npt.NDArray[np.int64]
    end: int


def delimiter(head: bytes) -> Separator | None:
    """Return the bytes that separate events, given what follows ``"traceEvents": [``.

    ``None`` where events stand on one line, so that no such bytes can be told.
    """
    first = re.match(rb"[ \t\r\n]*\{", head)
    if first is None or b"\n" not in first[0]:
        return None
    lead = first[0][:-1]
    margin = (b"\r\n" if b"\r\n" in lead else b"\n") + lead.rpartition(b"\n")[2]
    on_own_line = head[first.end() : first.end() + 2].startswith((b"\n", b"\r\n"))
    close = (margin if on_own_line else b"") + b"}"
    return Separator(close + b"," + margin + b"{", len(close))


def outline(text: bytes) -> Outline:
    """Find the elements of an array whose inside begins with ``text``."""
    data = np.frombuffer(text, np.uint8)
    roles = _ROLES[data]
    at = np.flatnonzero(roles)
    role = roles[at]
    quote = role == _QUOTE
    if np.any(role == _BACKSLASH):
        quote &= ~_escaped(at, role)
    outside = np.cumsum(quote) % 2 == 0
    depth = np.cumsum(np.where(outside, (role == _OPEN).astype(np.int64) - (role == _CLOSE), 0))
    closing = np.flatnonzero(depth < 0)
    end = int(closing[0]) if closing.size else at.size
    commas = np.flatnonzero((role[:end] == _COMMA) & outside[:end] & (depth[:end] == 0))
    return Outline(at[commas], int(at[end]) if closing.size else -1)


def _escaped(at: npt.NDArray[np.int64], role: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Say of each special byte whether an odd run of backslashes stands before it."""
    slash = role == _BACKSLASH
    joined = np.append(False, slash[:-1] & (np.diff(at) == 1))
    begins = slash & ~joined
    run_start = np.maximum.accumulate(np.where(begins, at, -1))
    escaped: npt.NDArray[np.bool_] = joined & ((at - run_start) % 2 == 1)
    return escaped


def pieces(text: bytes, separator: Separator | None) -> list[bytes]:
    """Cut text that does not decode into the events it seems to hold, to go one by one."""
    if separator is None:
        commas = outline(text).commas.tolist()
        bounds = zip([0, *(comma + 1 for comma in commas)], [*commas, len(text)], strict=True)
        return [text[start:end] for start, end in bounds]
    parts = text.split(separator.between)
    close = separator.between[: separator.close]
    opened = [parts[0], *(b"{" + part for part in parts[1:])]
    return [*(part + close for part in opened[:-1]), opened[-1]]
