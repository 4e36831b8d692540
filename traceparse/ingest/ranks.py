"""The ranks of a process group, as any version of torch lists them."""

from __future__ import annotations

import re
from collections.abc import Callable

from traceparse.ingest.decode import text_of
from traceparse.units import format_ranges, num_in_ranges, parse_runs

__all__ = ["MOST_RANKS", "groups_of", "ranks_text", "runs_text"]

MOST_RANKS = 1 << 20  # more than anybody has; a claim above it is not believed
_LIST = re.compile(r"\s*\[([\d,\s]*)\]\s*", re.ASCII)
_LONGEST = 1 << 23  # letters of a list
_INT64 = 1 << 63
_MOST_GROUPS = 1 << 12
_LONGEST_GROUP = 256  # letters of a name
_MOST_LETTERS = 1 << 20  # of the ranks of all groups
_MOST_MEMBERS = 1 << 23  # of all groups: a few letters can claim a million ranks
_LONGEST_RUNS = 1 << 16  # letters of one group's ranks, where runs are written as such


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


def runs_text(found: object) -> str | None:
    """Return ranks that are written compactly already, ``0-7,9``; ``None`` if they are not."""
    if not isinstance(found, str) or len(found) > _LONGEST_RUNS:
        return None
    try:
        parse_runs(found)
    except ValueError:
        return None
    return found


def groups_of(
    told: object, *, name: str, read: Callable[[object], str | None]
) -> dict[str, str]:
    """Read the ranks of process groups; a name that two of them have says nothing.

    ``name`` is the key of their names, ``read`` reads what they have under ``ranks``.
    """
    found: dict[str, str] = {}
    seen: set[str] = set()
    num_letters = num_members = 0
    for group in told[:_MOST_GROUPS] if isinstance(told, list) else ():
        own = _name(group.get(name)) if isinstance(group, dict) else None
        ranks = read(group.get("ranks")) if own else None
        if own is None or ranks is None:
            continue
        if own in seen and found.get(own) != ranks:
            found.pop(own, None)
        elif own not in seen:
            letters, members = num_letters + len(ranks), num_members + num_in_ranges(ranks)
            if letters <= _MOST_LETTERS and members <= _MOST_MEMBERS:
                num_letters, num_members = letters, members
                found[own] = ranks
        seen.add(own)
    return found


def _name(value: object) -> str | None:
    """Write the name of a group, which was a number once."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    name = str(text_of(value)) if isinstance(value, str) or abs(value) < _INT64 else ""
    return name if 0 < len(name) <= _LONGEST_GROUP else None


def _numbers(text: str) -> list[int] | None:
    found = _LIST.fullmatch(text) if len(text) <= _LONGEST else None
    words = found[1].split(",") if found else []
    if not all(0 < len(word.strip()) <= 7 and word.strip().isdigit() for word in words):
        return None
    return [int(word) for word in words]
