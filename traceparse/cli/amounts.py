"""Ranks and sizes that people type, as numbers."""

from __future__ import annotations

import re
from decimal import Decimal

from traceparse.errors import UsageError

__all__ = ["parse_bytes", "parse_ranks"]

_BYTES = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([KMG]?)B?\s*", re.IGNORECASE)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
_RANKS = re.compile(r"\s*([0-9]{1,7})(?:\s*-\s*([0-9]{1,7}))?\s*")
_MOST_RANKS = 1 << 20  # more than anybody has


def parse_ranks(text: str) -> list[int]:
    """Read ranks and ranges of them, ``0,1,8-15``.

    Raises
    ------
    UsageError
        The text is none, or names more ranks than anybody has.
    """
    found: set[int] = set()
    for part in text.split(","):
        match = _RANKS.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last >= _MOST_RANKS:
            raise UsageError(
                f"--ranks {text!r}: give ranks or ranges of them, such as 0,1,8-15"
            )
        found.update(range(first, last + 1))
    return sorted(found)


def parse_bytes(option: str, text: str) -> int:
    """Read a size in decimal units: ``200MB``, ``1.5 GB``, ``4000``.

    Raises
    ------
    UsageError
        The text is none.
    """
    match = _BYTES.fullmatch(text)
    if match is None:
        raise UsageError(f"{option} {text!r}: give a size, such as 200MB")
    return int(Decimal(match[1]) * _UNITS[match[2].upper()])
