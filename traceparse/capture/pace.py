"""How long did steps take, with and without the profiler?"""

from __future__ import annotations

import time
from collections import deque
from enum import Enum
from statistics import median

__all__ = ["Pace", "Step"]

_MOST_BEFORE = 20  # steps that are remembered: a job changes as it goes on
_ENOUGH_AFTER = 5


class Step(Enum):
    """What a step is good for."""

    PLAIN = "no capture took part in it"
    PROFILED = "it was recorded whole"
    OTHER = "the first one, or one in which capture did something else"


class Pace:
    """Times of steps on the host's clock, without what capture does between them.

    Where a device works behind its host, their steps take equally long all the same, once the
    host has got as far ahead as it may.
    """

    def __init__(self) -> None:
        self._before: deque[int] = deque(maxlen=_MOST_BEFORE)
        self._after: list[int] = []
        self._profiled: list[int] = []
        self._began_ns = time.perf_counter_ns()

    def begin(self) -> None:
        """Begin a step."""
        self._began_ns = time.perf_counter_ns()

    def end(self, kind: Step) -> None:
        """End the step that was begun last."""
        took_ns = time.perf_counter_ns() - self._began_ns
        if kind is Step.PROFILED:
            self._profiled.append(took_ns)
        elif kind is Step.PLAIN and not self._profiled:
            self._before.append(took_ns)
        elif kind is Step.PLAIN and len(self._after) < _ENOUGH_AFTER:
            self._after.append(took_ns)

    @property
    def is_known(self) -> bool:
        """Would more steps tell no more?"""
        return len(self._after) == _ENOUGH_AFTER

    def facts(self) -> dict[str, int | float]:
        """Return medians of both kinds of steps, and by how much profiled ones are slower."""
        plain = [*self._before, *self._after]
        if not plain or not self._profiled:
            return {}
        profiled_ns, plain_ns = round(median(self._profiled)), round(median(plain))
        return {
            "profiled_step_ns": profiled_ns,
            "unprofiled_step_ns": plain_ns,
            "num_unprofiled_steps": len(plain),
            "capture_overhead_ratio": round(profiled_ns / max(plain_ns, 1) - 1, 6),
        }
