"""Top kernels, why devices idled, and copies on the page, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from traceparse.report.cells import (
    Cell,
    Column,
    Table,
    Words,
    count,
    megabytes,
    ms,
    percent,
    ratio,
)
from traceparse.report.safe import visible
from traceparse.units import UNKNOWN, ms_decimals

__all__ = ["Cause", "Host", "copy_table", "host_of", "kernel_table"]

_MAX_KERNELS = 100
_MOST_DECIMALS = 4
_NAME_LIMIT = 120
_SHAPES_LIMIT = 90
_CAUSES: Final = (
    ("data_loader", "data loader", "data_loader"),
    ("sync", "synchronizing calls", "sync"),
    ("launch", "launching", "launch"),
    ("unknown", "not known", "not_known"),
)


@dataclass(frozen=True, slots=True)
class Cause:
    """What the host did while devices idled, and how much of their idle time that was."""

    key: str
    name: str
    definition: str
    time: Cell
    share: Cell
    x: str
    width: str


@dataclass(frozen=True, slots=True)
class Host:
    """The causes of idle time, which add up to it."""

    idle: Cell
    causes: Sequence[Cause]
    spoken: str


def kernel_table(rows: Sequence[Mapping[str, Any]] | None) -> Table | None:
    """Write the kernels that take most; the row without a name sums the rest."""
    if not rows:
        return None
    shown = [(n, row) for n, row in enumerate(rows) if row["name"] is not None][:_MAX_KERNELS]
    longest = max((row["time_ns"] for _, row in shown), default=0)
    decimals = min(ms_decimals(longest), _MOST_DECIMALS)
    return Table(
        key="kernels-table",
        label="Kernels and copies that take most",
        columns=[
            Column("kernel", "", "text"),
            Column("operator and shapes", "", "text"),
            Column("kind", "", "text"),
            Column("count"),
            Column("time, ms", "sum of durations, of all ranks"),
            Column("share", "of the time of all device events, as sums of durations"),
            Column("counted", "its operator has a FLOP count", "text"),
        ],
        rows=[
            [
                Words(visible(row["name"], _NAME_LIMIT)),
                Words(
                    UNKNOWN if row["op"] is None else visible(row["op"], _SHAPES_LIMIT),
                    visible(row["shapes"] or "", _SHAPES_LIMIT),
                ),
                Words(row["kind"]),
                count(row["count"], f"top_kernels.{place}.count"),
                ms(row["time_ns"], decimals, f"top_kernels.{place}.time_ns"),
                ratio(row["ratio"], f"top_kernels.{place}.ratio"),
                Words("yes" if row["is_counted"] else "no"),
            ]
            for place, row in shown
        ],
        left=len(rows) - len(shown),
    )


def host_of(host: Mapping[str, Any] | None, path: str = "host") -> Host | None:
    """Lay out what the host was doing while its devices idled; nothing where they never did."""
    if not host or not host["idle_ns"]:
        return None
    idle = host["idle_ns"]
    decimals = ms_decimals(idle)
    causes, end = [], 0
    for key, name, definition in _CAUSES:
        ns = host[f"{key}_ns"]
        start, end = end, end + ns
        causes.append(
            Cause(
                key,
                name,
                definition,
                ms(ns, decimals, f"{path}.{key}_ns"),
                percent(ns, idle),
                f"{100 * start / idle:.3f}%",
                f"{100 * ns / idle:.3f}%",
            )
        )
    spoken = ", ".join(f"{cause.name} {cause.share.text}" for cause in causes)
    return Host(ms(idle, decimals, f"{path}.idle_ns"), causes, spoken)


def copy_table(rows: Sequence[Mapping[str, Any]] | None) -> Table | None:
    """Write copies by their direction and the memory on the host's side."""
    if not rows:
        return None
    longest = max(row["time_ns"] for row in rows)
    decimals = min(ms_decimals(longest), _MOST_DECIMALS)
    return Table(
        key="copies-table",
        label="Copies",
        columns=[
            Column("direction", "", "text"),
            Column(
                "memory", "of the host's side; the device waits for pageable memory", "text"
            ),
            Column("count"),
            Column("time, ms", "sum of durations, of all ranks"),
            Column("size"),
            Column("exposed, ms", "exposed_copy"),
        ],
        rows=[
            [
                Words(row["direction"] or UNKNOWN),
                Words(row["memory"] or UNKNOWN),
                count(row["count"], f"copies.{place}.count"),
                ms(row["time_ns"], decimals, f"copies.{place}.time_ns"),
                megabytes(row["bytes"], f"copies.{place}.bytes"),
                ms(row["exposed_ns"], decimals, f"copies.{place}.exposed_ns"),
            ]
            for place, row in enumerate(rows)
        ],
    )
