"""Were two runs laid out alike? Told by the groups that communicate, and by shapes of products.

As a job grows, groups of a kind stay as they are (those within a replica) or grow as much as
the job does (those across replicas, also from one). Whatever grows otherwise, comes or goes is
another parallel layout. In weak scaling each device multiplies the same shapes as before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from traceparse.run.report import Report
from traceparse.units import format_count

__all__ = ["Groups", "Layout", "group_changes", "layout_of", "new_shapes"]

Groups: TypeAlias = Mapping[str, frozenset[int]]
_Shape: TypeAlias = tuple[str, str, str]  # operator, shapes, data type

_PEERS: Final = "send/recv"
_MATTERS: Final = Fraction(1, 100)  # of the bytes of a run: less is a barrier, or a loss's mean


@dataclass(frozen=True, slots=True)
class Layout:
    """What tells how a run was laid out.

    ``groups`` are sizes of the groups that each collective ran in, without those that hardly
    move a byte; ``None`` where a group's size is unknown. ``flop`` are those of each shape.
    """

    groups: Groups | None
    flop: Mapping[_Shape, int]


def layout_of(report: Report) -> Layout:
    """Read off a report how its run was laid out."""
    flop: Counter[_Shape] = Counter()
    for row in report.roofline or ():
        flop[row["op"], row["shapes"], row["dtype"]] += row["flop"] or 0
    return Layout(_groups(report), flop)


def _groups(report: Report) -> Groups | None:
    moved: dict[str, int] = defaultdict(int)
    sizes: dict[str, set[int]] = defaultdict(set)
    has_unknown = False
    for row in report.collectives or ():
        kind = row["collective"]
        if kind == _PEERS:
            sizes[kind].add(2)
        elif row["message_bytes"]:
            has_unknown |= kind is None or row["group_size"] is None
            moved[kind] += row["message_bytes"] * row["count"]
            sizes[kind].add(row["group_size"])
    if has_unknown:
        return None
    least = _MATTERS * sum(moved.values())
    return {
        kind: frozenset(own)
        for kind, own in sizes.items()
        if kind == _PEERS or moved[kind] >= least
    }


def group_changes(run: Groups, base: Groups, growth: Fraction) -> Iterator[str]:
    """Say in words which groups did not grow with the job, nor stay as they were."""
    for kind in sorted({*run, *base}):
        before, after = base.get(kind, frozenset()), run.get(kind, frozenset())
        if kind == _PEERS:
            is_alike = bool(before) == bool(after)
        else:
            grown = {size * growth for size in (*before, 1)}
            is_alike = all(size in before or size in grown for size in after) and all(
                size in after or size * growth in after for size in before
            )
        if not is_alike:
            yield f"{kind} {_among(after)}, there {_among(before)}"


def _among(sizes: frozenset[int]) -> str:
    if not sizes:
        return "nowhere"
    return f"among {' and '.join(map(format_count, sorted(sizes)))} ranks"


def new_shapes(run: Layout, base: Layout) -> tuple[float, str] | None:
    """Return which share of a run's FLOP is in shapes that another has not, and the largest.

    ``None`` where all shapes are known there, or one of the runs has none.
    """
    total = sum(run.flop.values())
    if not total or not base.flop:
        return None
    new = {shape: flop for shape, flop in run.flop.items() if shape not in base.flop and flop}
    if sum(new.values()) <= _MATTERS * total:
        return None
    op, shapes, _ = max(new, key=new.__getitem__)
    return sum(new.values()) / total, f"{op} {shapes}"
