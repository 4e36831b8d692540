"""Which collectives changed: by their ranks, data type and size, how often and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

from traceparse.run.compare.rows import paired
from traceparse.run.compare.sides import Side

__all__ = ["collectives_of"]

_EVERY: Final = "all"
_AMOUNTS: Final = ("transfer_ns", "wait_ns", "exposed_ns")
_Key: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class _Collective:
    """What all calls of a kind were on a side; what one run does not tell, the sum does not."""

    row: Mapping[str, Any]
    count: int
    amounts: dict[str, int | None]


def collectives_of(base: Side, new: Side) -> list[dict[str, Any]] | None:
    """Return field ``collectives``, what is exposed longer first; ``None`` where unknown.

    ``count`` and ``transfer_ns`` are of a step of the job, ``wait_ns`` and ``exposed_ns`` of a
    mean device-step. Groups are the same where their ranks are; between jobs of other sizes,
    where they have as many, or all.
    """
    if any(report.collectives is None for side in (base, new) for report in side.reports):
        return None
    sizes = {report.run.world_size for side in (base, new) for report in side.reports}
    sides = [_rows(side, is_one_size=len(sizes) == 1) for side in (base, new)]
    found = []
    for pair in paired(*sides):
        was, now = _side(pair.base, base), _side(pair.new, new)
        own = pair.new or pair.base
        assert own is not None
        names = ("process_group", "ranks", "collective", "dtype", "message_bytes", "group_size")
        deltas = {f"delta_{name}": _delta(name, was, now) for name in ("count", *_AMOUNTS)}
        found.append(
            {
                **{name: own.row[name] for name in names},
                "change": pair.change or ("same" if was == now else "changed"),
                "base": was,
                "new": now,
                **deltas,
            }
        )
    return sorted(found, key=lambda row: -_weight(row))


def _rows(side: Side, *, is_one_size: bool) -> dict[_Key, _Collective]:
    found: dict[_Key, _Collective] = {}
    for report in side.reports:
        for row in report.collectives or ():
            group: object = tuple(row["ranks"])
            if not is_one_size:
                is_every = row["group_size"] == report.run.world_size
                group = _EVERY if is_every else row["group_size"]
            key = (group, row["collective"], row["dtype"], row["message_bytes"])
            own = found.setdefault(key, _Collective(row, 0, dict.fromkeys(_AMOUNTS, 0)))
            own.count += row["count"]
            own.amounts = {
                name: None if before is None or row[name] is None else before + row[name]
                for name, before in own.amounts.items()
            }
    return found


def _side(own: _Collective | None, side: Side) -> dict[str, Any] | None:
    if own is None:
        return None
    per_step, per_device_step = side.num_recorded
    divided: dict[str, Fraction | int] = {
        "transfer_ns": per_step,
        "wait_ns": per_device_step,
        "exposed_ns": per_device_step,
    }
    return {
        "count": float(own.count / per_step),
        **{
            name: None if amount is None else round(amount / divided[name])
            for name, amount in own.amounts.items()
        },
    }


def _delta(
    name: str, was: Mapping[str, Any] | None, now: Mapping[str, Any] | None
) -> float | None:
    before, after = (0 if side is None else side[name] for side in (was, now))
    if before is None or after is None:
        return None
    change: float = after - before
    return change


def _weight(row: Mapping[str, Any]) -> int:
    return max(abs(int(row[f"delta_{name}"] or 0)) for name in _AMOUNTS)
