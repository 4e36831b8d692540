"""Is it one rank? What each rank does itself, and which one changed unlike the others.

A rank that became slower lets the others wait, so that all steps grow; what it does itself
(compute, copies, and idle time, in which nobody waits for anybody) grows on it alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from statistics import median
from typing import Any, Final

from traceparse.run.compare.sides import Side

__all__ = ["rank_of", "ranks_of"]

_OWN: Final = ("compute", "contention", "exposed_copy", "idle")
_NOTHING: Final = Fraction(0)
_STRAGGLER: Final = re.compile(r"rank (\d+) is waited for: (.+)", re.DOTALL)
_FEWEST: Final = 2


def ranks_of(base: Side, new: Side) -> dict[int, dict[str, Fraction]]:
    """Return how much longer each term of a mean step of each rank became: of those on both."""
    return {
        rank: {
            name: Fraction(new.by_rank[rank][1][name], new.by_rank[rank][0])
            - Fraction(base.by_rank[rank][1][name], base.by_rank[rank][0])
            for name in ("span", *base.terms)
        }
        for rank in sorted(base.by_rank.keys() & new.by_rank.keys())
    }


def rank_of(
    changes: Mapping[int, Mapping[str, Fraction]],
    base: Side,
    new: Side,
    delta: Fraction,
    *,
    is_significant: bool,
) -> dict[str, Any] | None:
    """Return field ``rank``: the one rank that changed a step, ``None`` where it is not one.

    What it does itself must have changed by half of what a step did at least, beyond the median
    of the other ranks, and by twice as much as any other of them did so.
    """
    if not is_significant or len(changes) < _FEWEST or not delta:
        return None
    sign = 1 if delta > 0 else -1
    own = {
        rank: sum((one.get(name, _NOTHING) for name in _OWN), _NOTHING)
        for rank, one in changes.items()
    }
    beyond = {
        rank: sign * (ns - median(other for at, other in own.items() if at != rank))
        for rank, ns in own.items()
    }
    first, *others = sorted(beyond, key=lambda rank: -beyond[rank])
    if 2 * beyond[first] < abs(delta) or any(2 * beyond[o] > beyond[first] for o in others):
        return _told(base, new)
    largest = max(_OWN, key=lambda name: sign * changes[first].get(name, _NOTHING))
    causes = _stragglers(new if sign > 0 else base)
    return {
        "rank": first,
        "delta_ns": round(own[first]),
        "others_delta_ns": round(median(ns for rank, ns in own.items() if rank != first)),
        "term": largest,
        "cause": causes.get(first),
    }


def _told(base: Side, new: Side) -> dict[str, Any] | None:
    """Return the straggler that only one side has, such as one whose link is slow."""
    before, after = _stragglers(base), _stragglers(new)
    differ = {
        rank: cause
        for rank, cause in {**before, **after}.items()
        if (rank in before) != (rank in after)
    }
    if len(differ) != 1:
        return None
    ((rank, cause),) = differ.items()
    return {
        "rank": rank,
        "delta_ns": None,
        "others_delta_ns": None,
        "term": None,
        "cause": cause,
    }


def _stragglers(side: Side) -> dict[int, str]:
    found = {}
    for report in side.reports:
        for finding in report.findings or ():
            match = _STRAGGLER.fullmatch(finding["title"])
            if finding["code"] == "straggler" and match:
                found[int(match[1])] = match[2]
    return found
