"""The ranks of a process group, as any version of torch lists them."""

from __future__ import annotations

import re

from traceparse.units import format_ranges

__all__ = ["MOST_RANKS", "ranks_text"]

MOST_RANKS = 1 << 20  # more than anybody has; a claim above it is not believed
_LIST = re.compile(r"\s*\[([\d,\s]*)\]\s*", re.ASCII)
_LONGEST = 1 << 23  # letters of a list


def ranks_text(found: object) -> str | None:
    """Write a list of ranks compactly, in order; ``None`` if it is odd, or was shortened.

    A list may be text: ``[0, 1, 2]``, or ``[0, 1, ..., 9]`` where a writer cut it.
    """
    ranks = _numbers(found) if isinstance(found, str) else found
    if not isinstance(ranks, list) or not 0 < len(ranks) <= MOST_RANKS:
        return None
    if not all(type(rank) is int and 0 <= rank < MOST_RANKS for rank in ranks):
        return None
    in_order = sorted(set(ranks))
    return format_ranges(in_order) if len(in_order) == len(ranks) else None


def _numbers(text: str) -> list[int] | None:
    found = _LIST.fullmatch(text) if len(text) <= _LONGEST else None
    words = found[1].split(",") if found else []
    if not all(0 < len(word.strip()) <= 7 and word.strip().isdigit() for word in words):
        return None
    return [int(word) for word in words]
