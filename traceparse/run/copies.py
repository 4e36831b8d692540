"""What was copied, from where to where? Field ``copies`` of the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from traceparse.rank import CopyWork, RankDigest

__all__ = ["copies"]


def copies(digests: Iterable[RankDigest]) -> list[dict[str, Any]]:
    """Add up the copies and memsets of all files by direction and memory, most time first.

    Times are sums of durations, over whole files. What is not known of all is ``None``.
    """
    found: dict[tuple[str | None, str | None], list[CopyWork]] = {}
    for digest in digests:
        for one in digest.copies:
            found.setdefault((one.direction, one.memory), []).append(one)
    rows = [
        {
            "direction": direction,
            "memory": memory,
            "count": sum(one.count for one in own),
            "time_ns": sum(one.time_ns for one in own),
            "bytes": _total(one.num_bytes for one in own),
            "exposed_ns": _total(one.exposed_ns for one in own),
        }
        for (direction, memory), own in found.items()
    ]
    return sorted(rows, key=_order)


def _total(parts: Iterable[int | None]) -> int | None:
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _order(row: dict[str, Any]) -> tuple[int, str, str]:
    return -row["time_ns"], row["direction"] or "", row["memory"] or ""
