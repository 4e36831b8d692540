"""What did hosts do while devices idled? Field ``host``, of the run and of each device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from traceparse.rank import IdleTimes, StepTimes

__all__ = ["host_of"]


def host_of(steps: Iterable[StepTimes]) -> dict[str, int] | None:
    """Add up why devices were idle in some steps (:mod:`traceparse.rank.idle` has the terms).

    The four add up to ``idle_ns``, exactly. ``None`` where one of the steps does not tell, or
    there is none.
    """
    timed = [step for step in steps if step.times is not None]
    told = [step.idle for step in timed if step.idle is not None]
    if not timed or len(told) < len(timed):
        return None
    return {"idle_ns": sum(map(sum, told)), **_sums(told)}


def _sums(told: Sequence[IdleTimes]) -> dict[str, int]:
    sums = map(sum, zip(*told, strict=True))
    return dict(zip(IdleTimes._fields, sums, strict=True))
