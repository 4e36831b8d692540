"""What a capture is asked for, checked before the training begins."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceparse.capture.plan import Plan, Ranks, plan_of, ranks_of
from traceparse.errors import UsageError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Asked", "asked_for"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A capture, as :class:`traceparse.profile` describes it."""

    directory: Path
    plan: Plan
    wants: Callable[[int, Mapping[str, str]], bool]
    rank: int | None = None
    stacks: bool = False
    memory: bool = False
    overwrite: bool = False
    with_host: bool = False
    count_flop: bool = False
    model: nn.Module | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def asked_for(
    directory: str | os.PathLike[str],
    *,
    steps: object,
    ranks: Ranks = "all",
    rank: int | None = None,
    step_on: str = "step()",
    facts: Mapping[str, object],
    **options: Any,  # noqa: ANN401 - the other fields of Asked
) -> Asked:
    """Check what is asked for.

    Raises
    ------
    UsageError
        The steps are no contiguous range and no schedule, a rank is none, or a number that is
        told of the job is no whole number above 0.
    """
    if rank is not None and rank < 0:
        raise UsageError(f"rank={rank}: ranks count from 0")
    return Asked(
        Path(directory),
        plan_of(steps),
        ranks_of(ranks),
        rank,
        facts={"step_on": step_on, **_checked(facts)},
        **options,
    )


def _checked(facts: Mapping[str, object]) -> dict[str, int]:
    """Return the facts that are told, each a whole number above 0 and below 10^30."""
    told = {}
    for name, value in facts.items():
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 10**30:
            raise UsageError(f"{name}={value!r}: needs a whole number above 0 and below 10**30")
        told[name] = value
    return told
