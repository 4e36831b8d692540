"""Where one event ends and the next begins, in any layout of JSON.

Where the JSON is valid, a pass over the brackets and quotes of the text finds every element of
an array (:func:`outline`). Where it is not, or to go faster, seams do: bytes that stand between
events and, as those programs write, nowhere else. libkineto, ``json.dump(indent=…)`` and
torch's Python writer put a line break there (:class:`LineSeams`); on one line it is what an
event begins with (:class:`KeySeams`).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

__all__ = [
    "KeySeams",
    "LineSeams",
    "ObjectSeams",
    "Outline",
    "Seam",
    "Seams",
    "find_seams",
    "layout_of",
    "outline",
]

_NEXT_OBJECT = rb"\}\s*,\s*(?=\{)"
_FIRST_KEY = re.compile(rb'\s*\{\s*"(\w{1,32})"\s*:')

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

_Mask = npt.NDArray[np.bool_]


class Outline(NamedTuple):
    """The structure of text that begins inside an array or object.

    ``commas`` between its whole elements, ``end`` its closing bracket (-1: not here), ``at``
    the places of brackets and quotes with the ``depth`` and whether they are ``outside`` of
    strings after each.
    """

    commas: npt.NDArray[np.int64]
    end: int
    at: npt.NDArray[np.int64]
    depth: npt.NDArray[np.int32]
    outside: _Mask

    def is_top_level(self, place: int) -> bool:
        """Is the byte at this place directly in the array or object, and in no string?"""
        before = int(np.searchsorted(self.at, place)) - 1
        return before < 0 or bool(self.depth[before] == 0 and self.outside[before])


def outline(text: bytes) -> Outline:
    """Find the elements of the array or object whose inside begins with ``text``."""
    roles = _ROLES[np.frombuffer(text, np.uint8)]
    at = np.flatnonzero(roles)
    role = roles[at]
    quote = role == _QUOTE
    if np.any(role == _BACKSLASH):
        quote &= ~_escaped(at, role)
    outside = ~np.logical_xor.accumulate(quote)
    turn = (role == _OPEN).astype(np.int8) - (role == _CLOSE).astype(np.int8)
    turn[~outside] = 0
    depth = np.cumsum(turn, dtype=np.int32)
    closing = np.flatnonzero(depth < 0)
    end = int(closing[0]) if closing.size else at.size
    commas = np.flatnonzero((role[:end] == _COMMA) & outside[:end] & (depth[:end] == 0))
    return Outline(
        at[commas], int(at[end]) if closing.size else -1, at[:end], depth[:end], outside[:end]
    )


def _escaped(at: npt.NDArray[np.int64], role: npt.NDArray[np.uint8]) -> _Mask:
    """Say of each special byte whether an odd run of backslashes stands before it."""
    slash = role == _BACKSLASH
    joined = np.append(False, slash[:-1] & (np.diff(at) == 1))
    begins = slash & ~joined
    run_start = np.maximum.accumulate(np.where(begins, at, -1))
    escaped: _Mask = joined & ((at - run_start) % 2 == 1)
    return escaped


class Seam(NamedTuple):
    """A place between two events: where the one ends, and where the next begins."""

    end: int
    following: int


class Seams(Protocol):
    """Finds the places between events, also around a damaged one."""

    def first(self, text: bytes) -> Seam | None:
        """Return the first seam of a text."""
        ...

    def last(self, text: bytes) -> Seam | None:
        """Return the last seam of a text."""
        ...

    def pieces(self, text: bytes) -> list[bytes]:
        """Cut text into the events it seems to hold, each to be decoded on its own."""
        ...

    def ends(self, text: bytes) -> Iterator[Seam]:
        """Return where the array may close: the last event's end, and what follows."""
        ...


class LineSeams:
    """A line break between events that occurs nowhere else.

    ``between`` are its bytes, ``close`` is how many of them belong to the event before.
    """

    def __init__(self, between: bytes, close: int) -> None:
        self.between = between
        self.close = close
        margin = re.escape(between[:close])
        self._end = re.compile(margin + rb"(?=[ \t]*\r?\n[ \t]*\])")

    def first(self, text: bytes) -> Seam | None:
        """Return the first seam of a text."""
        return self._seam(text.find(self.between))

    def last(self, text: bytes) -> Seam | None:
        """Return the last seam of a text."""
        return self._seam(text.rfind(self.between))

    def _seam(self, at: int) -> Seam | None:
        return None if at < 0 else Seam(at + self.close, at + len(self.between) - 1)

    def pieces(self, text: bytes) -> list[bytes]:
        """Cut text into the events it seems to hold, each to be decoded on its own."""
        first, *others = text.split(self.between)
        opened = [first, *(b"{" + part for part in others)]
        return [*(part + self.between[: self.close] for part in opened[:-1]), opened[-1]]

    def ends(self, text: bytes) -> Iterator[Seam]:
        """Return where the array may close: the last event's end, and what follows."""
        return _ends(self._end, text)


class ObjectSeams:
    """A brace, a comma, and a brace: the weakest sign that there is.

    Lists of objects among the arguments of an event show it too.
    """

    _END = re.compile(rb"\}(?=\s*\]\s*(?:[,}]|\Z))")

    def __init__(self, more: bytes = b"") -> None:
        self._between = re.compile(_NEXT_OBJECT + more)

    def first(self, text: bytes) -> Seam | None:
        """Return the first seam of a text."""
        return next(self._all(text), None)

    def last(self, text: bytes) -> Seam | None:
        """Return the last seam of a text."""
        last = deque(self._all(text), maxlen=1)
        return last[0] if last else None

    def pieces(self, text: bytes) -> list[bytes]:
        """Cut text into the events it seems to hold, each to be decoded on its own."""
        seams = list(self._all(text))
        starts = [0, *(seam.following for seam in seams)]
        ends = [*(seam.end for seam in seams), len(text)]
        return [text[start:end] for start, end in zip(starts, ends, strict=True)]

    def ends(self, text: bytes) -> Iterator[Seam]:
        """Return where the array may close: the last event's end, and what follows."""
        return _ends(self._END, text)

    def _all(self, text: bytes) -> Iterator[Seam]:
        return (Seam(found.start() + 1, found.end()) for found in self._between.finditer(text))


class KeySeams(ObjectSeams):
    """The same with a key that events begin with: ``also`` is one more of those.

    An unescaped quote cannot be inside a string, so none of this is in a valid one.
    """

    def __init__(self, also: bytes = b"ph") -> None:
        keys = rb"ph|cat|name|pid|tid|ts|args|" + re.escape(also)
        super().__init__(rb'(?=\{\s*"(?:' + keys + rb')"\s*:)')


def _ends(last_brace: re.Pattern[bytes], text: bytes) -> Iterator[Seam]:
    return (
        Seam(found.end(), text.index(b"]", found.end()) + 1)
        for found in last_brace.finditer(text)
    )


def find_seams(head: bytes) -> Seams:
    """Say what separates events, given what follows ``"traceEvents": [``."""
    first = re.match(rb"[ \t\r\n]*\{", head)
    if first is None or b"\n" not in first[0]:
        key = _FIRST_KEY.match(head)
        return KeySeams(key[1]) if key else KeySeams()
    lead = first[0][:-1]
    margin = (b"\r\n" if b"\r\n" in lead else b"\n") + lead.rpartition(b"\n")[2]
    # not by what follows the brace: the first event may be a damaged one
    line, ended, _ = head[first.end() :].partition(b"\n")
    on_own_line = bool(ended) and not (b'"' in line and line.rstrip().endswith((b"}", b"},")))
    close = (margin if on_own_line else b"") + b"}"
    return LineSeams(close + b"," + margin + b"{", len(close))


def layout_of(text: bytes, seams: Seams, first_bytes: bytes, *, is_list: bool) -> str:
    """Name the layout of a file, as reports do, given what follows ``"traceEvents": [``."""
    if is_list:
        return "list"
    if not isinstance(seams, LineSeams):
        return "compact"
    if seams.close == 1:
        return "python-export"
    first_line = text.lstrip()[1:].lstrip().partition(b"\n")[0]
    if first_line.count(b'": ') > 1:
        return "libkineto"
    return "libkineto-2026" if first_bytes.startswith(b" {") else "indented"
