"""How long a step would take under other conditions, in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from traceparse.report.words import WHAT_IF
from traceparse.run import Report
from traceparse.units import UNKNOWN, format_ms, format_ratio, ms_decimals, rank_ranges

__all__ = ["HOW", "Change", "changes_of"]

HOW: Final = "a mean step, replayed with one thing changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what it is, the step after it in ms, what of a step it wins.

    Of what is only known to be between two times, it has both. ``subtracted`` is the step less
    what the report has of the same loss; ``width`` is the step, at most, in percent of the
    longest one.
    """

    name: str
    step: str
    won: str
    subtracted: str
    width: str


def changes_of(report: Report) -> list[Change]:
    """Write the changes whose outcome is known, after the step as it was; else none."""
    found = report.what_if
    known = [row for row in (found or {}).get("changes", ()) if row["between_ns"]]
    if found is None or not known:
        return []
    now_ns = found["step_ns"]
    longest_ns = max(now_ns, *(row["between_ns"][1] for row in known))
    decimals = ms_decimals(longest_ns)
    was = Change("as recorded", format_ms(now_ns, decimals), "", "", _width(now_ns, longest_ns))
    return [was, *(_change(row, now_ns, decimals, longest_ns) for row in known)]


def _change(row: Mapping[str, Any], now_ns: int, decimals: int, longest_ns: int) -> Change:
    subtracted_ns = row["subtracted_step_ns"]
    least_ns, most_ns = row["between_ns"]
    steps = [least_ns, most_ns] if row["step_ns"] is None else [row["step_ns"]]
    won = [1 - step_ns / now_ns for step_ns in reversed(steps)]
    return Change(
        name=_name(row),
        step=" to ".join(format_ms(step_ns, decimals) for step_ns in steps),
        won=" to ".join(map(format_ratio, won)),
        subtracted=UNKNOWN if subtracted_ns is None else format_ms(subtracted_ns, decimals),
        width=_width(most_ns, longest_ns),
    )


def _name(row: Mapping[str, Any]) -> str:
    text: str = WHAT_IF.get(row["change"], row["change"])
    ranks = [rank for rank in row["ranks"] or () if rank is not None]
    return text.format(ranks=f"rank {rank_ranges(ranks)}")


def _width(step_ns: int, longest_ns: int) -> str:
    return f"{100 * step_ns / longest_ns if longest_ns else 0:.2f}%"
