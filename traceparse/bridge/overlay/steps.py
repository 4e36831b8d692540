"""In which step is an instant? What a window of steps takes, it takes of all ranks alike.

Steps of the job are numbered in order, from 1 on; 0 is before the first of a device or host,
and the number after the last is after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from traceparse.intervals import Int64s

__all__ = ["Marked", "StepPlaces", "Window"]


class Marked(NamedTuple):
    """A step that has a number, and when it was."""

    number: int
    start_ns: int
    end_ns: int


class Window(NamedTuple):
    """Places of steps, both ends in it."""

    first: int
    last: int

    def has(self, first: int, last: int) -> bool:
        """Say whether what goes from one place to another is in it."""
        return self.first <= first and last <= self.last


class StepPlaces:
    """The steps of a job that any device has."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._known = frozenset(numbers)
        self.numbers = tuple(sorted(self._known))

    @property
    def everything(self) -> Window:
        """All steps, and what is before and after them."""
        return Window(0, len(self.numbers) + 1)

    def window(self, steps: Sequence[int]) -> Window:
        """Return the places of some steps; the last is before the first if there are none."""
        places = np.searchsorted(self.numbers, [min(steps), max(steps) + 1]).tolist()
        return Window(places[0] + 1, places[1])

    def of(self, marked: Sequence[Marked], times_ns: Int64s) -> Int64s:
        """Return for each instant the place of the step that it is in.

        What lies between two steps, or in one that no device has, counts as the earlier one's.
        """
        order = sorted(
            (one for one in marked if one.number in self._known),
            key=lambda one: (one.start_ns, one.end_ns),
        )
        if not order:
            return np.zeros(times_ns.size, np.int64)
        starts = np.array([one.start_ns for one in order], np.int64)
        numbers = np.searchsorted(self.numbers, [one.number for one in order]) + 1
        at = np.searchsorted(starts, times_ns, "right") - 1
        found = np.where(at < 0, 0, numbers[np.maximum(at, 0)])
        last_ns = max(one.end_ns for one in marked)
        found[times_ns >= last_ns] = len(self.numbers) + 1
        return found.astype(np.int64)
