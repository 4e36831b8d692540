"""What became of a file: how much was read, kept, repaired and lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["LOSSES", "FileHealth"]

# reasons for which an event that belongs in a table is in none
LOSSES = frozenset(
    {
        "undecodable",
        "time_missing",
        "time_negative",
        "time_zero",
        "time_too_large",
        "duration_missing",
        "duration_negative",
    }
)


@dataclass(frozen=True, slots=True)
class FileHealth:
    """One trace file as the report lists it: an entry of ``files`` of the contract.

    ``events`` counts the elements of ``traceEvents``; ``skipped`` those in no table, by reason,
    so ``events`` is the rows of all tables plus the sum of ``skipped``.
    ``time_resolution_ns`` is 1000 where the file writes whole microseconds.
    """

    path: str
    rank: int | None
    rank_source: str | None
    layout: str
    bytes: int
    events: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)
    truncated: bool = False
    time_resolution_ns: int | None = None
    gpu_events: int = 0
    launches_without_gpu_event: int | None = None
    gpu_events_without_launch: int | None = None
