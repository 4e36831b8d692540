"""Which steps are recorded, and on which ranks?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from traceparse.errors import UsageError

if TYPE_CHECKING:
    from torch.profiler import ProfilerAction

__all__ = ["TEN_TO_TWELVE", "Do", "Plan", "Ranks", "Steps", "plan_of", "ranks_of"]

Steps: TypeAlias = "Sequence[int] | Callable[[int], ProfilerAction]"
Ranks: TypeAlias = "str | int | Iterable[int]"

TEN_TO_TWELVE = range(10, 13)  # recorded if no steps are named: a job has settled by then

_LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")

_RUN = re.compile(r"\s*([0-9]{1,7})(?:-([0-9]{1,7}))?\s*")


class Do(Enum):
    """What happens in a step; the names are those of torch's ``ProfilerAction``."""

    NONE = "nothing"
    WARMUP = "the profiler is made ready"
    RECORD = "it records"
    RECORD_AND_SAVE = "it records, and the trace is kept when the step has ended"

    @property
    def records(self) -> bool:
        """Does the profiler record in such a step?"""
        return self in (Do.RECORD, Do.RECORD_AND_SAVE)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do in each step; ``steps`` is ``None`` where a schedule tells it."""

    steps: range | None
    do: Callable[[int], Do]

    @property
    def look_at(self) -> int | None:
        """A step before those that are recorded and the one that makes ready, if any.

        Not the first one, in which torch.compile compiles: a look would be compiled with it.
        """
        if self.steps is None:
            return 1 if self.do(0) is self.do(1) is self.do(2) is Do.NONE else None
        return self.steps[0] - 2 if self.steps[0] > 2 else None

    def is_over(self, step: int) -> bool:
        """Is nothing recorded from this step on?"""
        return self.steps is not None and step >= self.steps.stop


def plan_of(steps: object) -> Plan:
    """Read what was asked for: a contiguous range, or one of torch's schedules.

    Raises
    ------
    UsageError
        It is neither.
    """
    if callable(steps):
        return Plan(None, lambda step: Do[steps(step).name])
    asked = _contiguous(steps)

    def do(step: int) -> Do:
        if step in asked:
            return Do.RECORD_AND_SAVE if step == asked[-1] else Do.RECORD
        return Do.WARMUP if step == asked[0] - 1 else Do.NONE

    return Plan(asked, do)


def _contiguous(steps: object) -> range:
    """Return the steps as a range from first to last, or say that they are not one."""
    if isinstance(steps, Sequence) and len(steps) and isinstance(steps[0], int):
        whole = range(steps[0], steps[0] + len(steps))
        # Ranges compare by arithmetic, so an enormous one costs nothing.
        same = steps == whole if isinstance(steps, range) else list(steps) == list(whole)
        if same and whole.start >= 0:
            return whole
    raise UsageError(
        f"steps={steps!r}: needs one contiguous range of steps counted from 0, "
        "such as range(10, 13), or a schedule of torch.profiler"
    )


def ranks_of(ranks: Ranks) -> Callable[[int, Mapping[str, str]], bool]:
    """Return what tells whether a rank records, from its number and its environment.

    ``"all"``, ``"node"`` (the first of each node), ranks, or a text of them, ``"0,8-15"``.

    Raises
    ------
    UsageError
        It is nothing of that.
    """
    if ranks == "all":
        return lambda _rank, _environment: True
    if ranks == "node":
        return lambda _rank, environment: _is_first_of_node(environment)
    wanted = _numbers(ranks)
    if wanted is None:
        raise UsageError(
            f"ranks={ranks!r}: give 'all', 'node' (one of each node), or ranks such as '0,8-15'"
        )
    return lambda rank, _environment: any(rank in some for some in wanted)


def _numbers(ranks: object) -> Sequence[range] | None:
    if isinstance(ranks, str):
        found = [_RUN.fullmatch(run) for run in ranks.split(",")]
        runs = [range(int(run[1]), int(run[2] or run[1]) + 1) for run in found if run]
        return runs if len(runs) == len(found) and all(runs) else None
    each = list(ranks) if isinstance(ranks, Iterable) else [ranks]
    runs = [range(rank, rank + 1) for rank in each if isinstance(rank, int) and rank >= 0]
    return runs if runs and len(runs) == len(each) else None


def _is_first_of_node(environment: Mapping[str, str]) -> bool:
    told = [environment[name] for name in _LOCAL_RANK if name in environment]
    return not told or told[0].strip() == "0"
