"""Account for instants: how long what ran, by one walk over the times at which that changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, TypeAlias

__all__ = ["EXPOSED", "Part", "account", "uncovered"]

Label = Literal["compute", "copy", "transfer", "wait", "pipeline", "unsplit"]
Part: TypeAlias = tuple[Label, int, int]

# of comm that is exposed at an instant, the first one that is there says what it is
EXPOSED: dict[Label, str] = {
    "transfer": "exposed_transfer_ns",
    "wait": "exposed_wait_ns",
    "pipeline": "pipeline_wait_ns",
    "unsplit": "exposed_unsplit_ns",
}
_NAMES = ("busy", "compute", "comm", "copy", "overlap", "exposed_comm", "exposed_copy", "idle")


def account(parts: Iterable[Part], start_ns: int, end_ns: int) -> dict[str, int]:
    """Return TIMES and the split of exposed comm of the instants ``[start_ns, end_ns)``."""
    changes: dict[int, list[tuple[Label, int]]] = {start_ns: [], end_ns: []}
    for label, begin_ns, finish_ns in parts:
        begin, finish = max(begin_ns, start_ns), min(finish_ns, end_ns)
        if begin < finish:
            changes.setdefault(begin, []).append((label, 1))
            changes.setdefault(finish, []).append((label, -1))
    sums = Counter(dict.fromkeys([f"{name}_ns" for name in _NAMES], 0))
    sums.update(dict.fromkeys(EXPOSED.values(), 0))
    running: Counter[Label] = Counter()
    for here, there in pairwise(sorted(changes)):
        for label, by in changes[here]:
            running[label] += by
        for name in _true_of({label for label, number in running.items() if number}):
            sums[name] += there - here
    bounds = {"start_ns": start_ns, "end_ns": end_ns, "span_ns": end_ns - start_ns}
    return bounds | dict(sums)


def _true_of(running: set[Label]) -> set[str]:
    """Return what an instant counts for at which these run."""
    if not running:
        return {"idle_ns"}
    comm = [label for label in EXPOSED if label in running]
    names = {"busy_ns"} | {f"{label}_ns" for label in ("compute", "copy") if label in running}
    if comm:
        names.add("comm_ns")
    if comm and "compute" in running:
        names.add("overlap_ns")
    elif comm:
        names |= {"exposed_comm_ns", EXPOSED[comm[0]]}
    elif running == {"copy"}:
        names.add("exposed_copy_ns")
    return names


def uncovered(start_ns: int, end_ns: int, others: Iterable[tuple[int, int]]) -> int:
    """Return how much of ``[start_ns, end_ns)`` none of the others covers."""
    left, at = 0, start_ns
    for begin, finish in sorted(others):
        left += max(0, min(begin, end_ns) - at)
        at = max(at, finish)
    return left + max(0, end_ns - at)
