"""What HTA found, where it was asked: its parts in order, and lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from traceparse.units import format_count, format_duration, format_figure, format_percent

__all__ = [
    "MOST_DECIMALS",
    "MOST_ON_SCREEN",
    "bound_name",
    "bound_parts",
    "computed_by",
    "hta_lines",
    "longest_of_ranks",
]

MOST_ON_SCREEN: Final = 3
MOST_DECIMALS: Final = 3  # of milliseconds: HTA rounds to whole microseconds


def hta_lines(hta: Mapping[str, Any] | None) -> Iterator[str]:
    """Write the critical path of each rank, and which of its streams had the longest queue."""
    if hta is None:
        return
    by = _by(hta)
    paths, queues = hta["critical_path"] or (), longest_of_ranks(hta)
    if not paths and not queues:
        yield f"nothing by {by}: notes say why"
    for path in paths:
        whole = path["duration_ns"]
        shares = ", ".join(
            f"{bound_name(name)} {format_percent(ns, whole)}" for name, ns in bound_parts(path)
        )
        where = "" if path["step"] is None else f", step {path['step']}"
        yield (
            f"critical path of rank {path['rank']}{where} ({by}): "
            f"{format_duration(whole)}: {shares}"
        )
    for longest in queues:
        yield (
            f"queue of rank {longest['rank']}, stream {longest['stream']} ({by}): at most "
            f"{format_count(longest['max'])} launches waiting, "
            f"{format_figure(longest['mean'])} on average"
        )


def _by(hta: Mapping[str, Any]) -> str:
    return f"{hta['distribution']} {hta['version']}"


def computed_by(hta: Mapping[str, Any]) -> str:
    """Say what computed it, and what that rounds and leaves out."""
    return (
        f"Computed by {_by(hta)} in whole microseconds, without what the last of several steps "
        f"launched"
    )


def bound_name(name: str) -> str:
    """Write what bounds a part of a critical path in HTA's words: ``cpu bound``."""
    return name.replace("_", " ")


def bound_parts(path: Mapping[str, Any]) -> list[tuple[str, int]]:
    """List what bounds a critical path and for how long, the largest first; no zeros."""
    parts = [(name, ns) for name, ns in path["bound_by_ns"].items() if ns]
    return sorted(parts, key=lambda part: part[1], reverse=True)


def longest_of_ranks(hta: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List the longest queue of each rank."""
    longest: dict[int, Mapping[str, Any]] = {}
    for queue in hta["queue_length"] or ():
        known = longest.setdefault(queue["rank"], queue)
        if (queue["max"], queue["mean"]) > (known["max"], known["mean"]):
            longest[queue["rank"]] = queue
    return list(longest.values())
