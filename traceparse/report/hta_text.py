"""What HTA found, where it was asked, in lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from traceparse.units import format_duration, format_figure, format_percent

__all__ = ["MOST_ON_SCREEN", "hta_lines"]

MOST_ON_SCREEN: Final = 3


def hta_lines(hta: Mapping[str, Any] | None) -> Iterator[str]:
    """Write the critical path of each rank, and which of its streams had the longest queue."""
    if hta is None:
        return
    by = f"{hta['distribution']} {hta['version']}"
    paths, queues = hta["critical_path"] or (), hta["queue_length"] or ()
    if not paths and not queues:
        yield f"nothing by {by}: notes say why"
    for path in paths:
        whole = path["duration_ns"]
        bound = sorted(path["bound_by_ns"].items(), key=lambda item: item[1], reverse=True)
        shares = ", ".join(
            f"{name.replace('_', ' ')} {format_percent(ns, whole)}" for name, ns in bound if ns
        )
        where = "" if path["step"] is None else f", step {path['step']}"
        yield (
            f"critical path of rank {path['rank']}{where} ({by}): "
            f"{format_duration(whole)}: {shares}"
        )
    for rank in dict.fromkeys(queue["rank"] for queue in queues):
        own = (queue for queue in queues if queue["rank"] == rank)
        longest = max(own, key=lambda queue: (queue["max"], queue["mean"]))
        yield (
            f"queue of rank {rank}, stream {longest['stream']} ({by}): at most "
            f"{longest['max']} launches waiting, {format_figure(longest['mean'])} on average"
        )
