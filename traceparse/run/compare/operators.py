"""Which operators changed: called with what, how often, for how long, by which kernels.

Of a mean device-step, as far as rows of whole traces tell: their sums over the steps that the
traces have. An operator is the same on both sides where its name, its shapes and its data type
are. One that is gone for one that is new, of the same name and as often, was given other
shapes; one whose kernels have other names runs other code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias

from traceparse.run.compare.rows import Pair, paired
from traceparse.run.compare.sides import Side
from traceparse.run.report import Report

__all__ = ["MOST_ROWS", "operators_of"]

MOST_ROWS: Final = 512
_MOST_KERNELS: Final = 8
_COMM: Final = "comm"
_Key: TypeAlias = tuple[str | None, str | None, str | None, str | None]


@dataclass(slots=True)
class _Operator:
    """What all runs of one operator were on a side, in whole traces."""

    shapes: str | None
    count: int = 0
    time_ns: int = 0
    recompute_count: int | None = None
    kernels: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Rows:
    """All operators of a side, how many device-steps they are of, and what is too small."""

    operators: dict[_Key, _Operator]
    num_device_steps: int
    unlisted_ns: int

    def per_step(self, amount: int) -> Fraction:
        """Return an amount of a mean device-step."""
        return Fraction(amount, self.num_device_steps)


_Changed: TypeAlias = Pair[_Key, _Operator]


def operators_of(base: Side, new: Side) -> list[dict[str, Any]] | None:
    """Return field ``operators``, what changed most first; ``None`` where nothing tells."""
    has_kernels = all(
        report.top_kernels is not None for side in (base, new) for report in side.reports
    )
    before, after = (_rows(side, has_kernels=has_kernels) for side in (base, new))
    if before is None or after is None:
        return None
    pairs = paired(before.operators, after.operators)
    found = [_plain(pair, before, after, base) for pair in _reshaped(pairs, before, after)]
    listed = [row for row in found if not _is_below(row, before, after)]
    return sorted(listed, key=lambda row: -abs(row["delta_ns"]))[:MOST_ROWS]


def _rows(side: Side, *, has_kernels: bool) -> _Rows | None:
    operators: dict[_Key, _Operator] = {}
    unlisted_ns, num = 0, side.num_recorded[1]
    for report in side.reports:
        if not has_kernels and report.roofline is None:
            return None
        for key, row in _told(report, has_kernels=has_kernels):
            operator = operators.setdefault(key, _Operator(row["shapes"]))
            operator.count += row["count"]
            operator.time_ns += row["time_ns"]
            if name := row.get("name"):
                operator.kernels[name] = operator.kernels.get(name, 0) + row["time_ns"]
        if has_kernels:
            unlisted_ns += _unlisted_ns(report)
        _add_recomputed(operators, report)
    return _Rows(operators, num, unlisted_ns) if num else None


def _told(report: Report, *, has_kernels: bool) -> Iterator[tuple[_Key, dict[str, Any]]]:
    """Yield rows with the operator that each is of: kernels by name, else operators."""
    if not has_kernels:
        for row in report.roofline or ():
            yield (row["op"], row["shapes"], row["dtype"], "compute"), dict(row)
        return
    dtypes = _dtypes(report)
    for row in report.top_kernels or ():
        op, shapes, kind = row["op"], row["shapes"], row["kind"]
        if row["name"] is None or kind == _COMM:
            continue
        # what no operator launched is known by its name alone
        key = (op if op is not None else row["name"], shapes, dtypes.get((op, shapes)), kind)
        yield key, dict(row)


def _dtypes(report: Report) -> dict[tuple[str | None, str | None], str]:
    """Return the data type of each operator with its shapes, if it had one only."""
    found: dict[tuple[str | None, str | None], set[str]] = defaultdict(set)
    for row in report.roofline or ():
        found[row["op"], row["shapes"]].add(row["dtype"])
    return {key: dtypes.pop() for key, dtypes in found.items() if len(dtypes) == 1}


def _add_recomputed(operators: dict[_Key, _Operator], report: Report) -> None:
    for row in report.roofline or ():
        key = (row["op"], row["shapes"], row["dtype"], "compute")
        if operator := operators.get(key):
            operator.recompute_count = (operator.recompute_count or 0) + row["recompute_count"]


def _unlisted_ns(report: Report) -> int:
    """Return below which time a row of kernels may be missing, as they are too many."""
    rows = report.top_kernels or ()
    if all(row["name"] is not None for row in rows):
        return 0
    return min((row["time_ns"] for row in rows if row["name"] is not None), default=0)


def _reshaped(pairs: Sequence[_Changed], before: _Rows, after: _Rows) -> Iterator[_Changed]:
    """Put what disappeared beside what appeared, where it is plain what became of what."""
    alone: dict[tuple[object, ...], list[_Changed]] = defaultdict(list)
    for pair in pairs:
        if pair.change is None:
            yield pair
            continue
        own, rows = (pair.base, before) if pair.new is None else (pair.new, after)
        assert own is not None
        op, _, dtype, kind = pair.key
        alone[op, dtype, kind, rows.per_step(own.count)].append(pair)
    for found in alone.values():
        gone = [pair for pair in found if pair.new is None]
        come = [pair for pair in found if pair.base is None]
        if len(gone) == len(come) == 1:
            yield Pair(come[0].key, gone[0].base, come[0].new)
        else:
            yield from found


def _plain(pair: _Changed, before: _Rows, after: _Rows, base: Side) -> dict[str, Any]:
    op, _, dtype, kind = pair.key
    sides = [(pair.base, before), (pair.new, after)]
    was, now = (own and rows.per_step(own.time_ns) for own, rows in sides)
    delta = (now or Fraction(0)) - (was or Fraction(0))
    plain = [_side(own, rows) for own, rows in sides]
    return {
        "op": op,
        "shapes": plain[1]["shapes"] if plain[1] else plain[0] and plain[0]["shapes"],
        "dtype": dtype,
        "kind": kind,
        "change": pair.change or _change(*plain),
        "base": plain[0],
        "new": plain[1],
        "delta_ns": round(delta),
        "ratio": float(delta / base.mean_ns("span")),
    }


def _side(own: _Operator | None, rows: _Rows) -> dict[str, Any] | None:
    if own is None:
        return None
    again = own.recompute_count
    by_time = sorted(own.kernels, key=lambda name: -own.kernels[name])
    return {
        "shapes": own.shapes,
        "count": float(rows.per_step(own.count)),
        "recompute_count": None if again is None else float(rows.per_step(again)),
        "time_ns": round(rows.per_step(own.time_ns)),
        "kernels": by_time[:_MOST_KERNELS],
    }


def _change(base: dict[str, Any] | None, new: dict[str, Any] | None) -> str:
    assert base is not None and new is not None
    if base["shapes"] != new["shapes"]:
        return "reshaped"
    if set(base["kernels"]) != set(new["kernels"]):
        return "renamed"
    return "same" if base == new else "changed"


def _is_below(row: dict[str, Any], before: _Rows, after: _Rows) -> bool:
    """Say whether an operator may be on both sides, and too small on one to be listed."""
    if row["change"] == "appeared":
        limit = before.per_step(before.unlisted_ns)
    elif row["change"] == "disappeared":
        limit = after.per_step(after.unlisted_ns)
    else:
        return False
    return abs(int(row["delta_ns"])) <= limit
