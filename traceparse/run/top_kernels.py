"""What takes most of the time of all devices? Field ``top_kernels`` of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from traceparse.rank import KernelWork, RankDigest

__all__ = ["MOST_ROWS", "top_kernels"]

MOST_ROWS: Final = 512

_Key = tuple[str | None, str | None, str | None, str | None, bool]


@dataclass(slots=True)
class _Sum:
    """Kernels of all files that are alike; what one file does not know, the sum does not."""

    count: int = 0
    time_ns: int = 0
    least_bytes: int | None = 0

    def add(self, one: KernelWork | _Sum) -> None:
        """Add the kernels of one file, or of one row."""
        self.count += one.count
        self.time_ns += one.time_ns
        if one.least_bytes is None or self.least_bytes is None:
            self.least_bytes = None
        else:
            self.least_bytes += one.least_bytes


def top_kernels(digests: Iterable[RankDigest]) -> list[dict[str, Any]]:
    """Add up the device events of all files by name, operator and shapes, most time first.

    After :data:`MOST_ROWS` the rest is one row more, whose ``name`` and ``kind`` are ``None``;
    so all rows together are all device events, and their ``ratio`` adds up to 1. Times are sums
    of durations: what runs side by side counts twice. Without devices, operators are in their
    place, each less what others took inside of it.
    """
    sums: dict[_Key, _Sum] = {}
    rest = _Sum()
    for digest in digests:
        for one in digest.kernels:
            if one.name is None:
                rest.add(one)
                continue
            key = (one.name, one.op, one.shapes, one.kind, one.is_counted)
            sums.setdefault(key, _Sum()).add(one)
    rows: list[tuple[_Key, _Sum]] = sorted(sums.items(), key=_order)
    for _, small in rows[MOST_ROWS:]:
        rest.add(small)
    del rows[MOST_ROWS:]
    if rest.count:
        rest.least_bytes = None
        rows.append(((None, None, None, None, False), rest))
    return _plain(rows)


def _order(row: tuple[_Key, _Sum]) -> tuple[Any, ...]:
    (name, op, shapes, kind, is_counted), one = row
    return (-one.time_ns, name, op or "", shapes or "", kind, is_counted, op is None)


def _plain(rows: Sequence[tuple[_Key, _Sum]]) -> list[dict[str, Any]]:
    total_ns = sum(one.time_ns for _, one in rows)
    return [
        {
            "name": name,
            "op": op,
            "shapes": shapes,
            "kind": kind,
            "is_counted": is_counted,
            "count": one.count,
            "time_ns": one.time_ns,
            "ratio": one.time_ns / total_ns if total_ns else None,
            "least_bytes": one.least_bytes,
        }
        for (name, op, shapes, kind, is_counted), one in rows
    ]
