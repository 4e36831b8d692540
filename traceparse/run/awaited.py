"""For which calls computing waits, where a trace says no more than that something waits.

Programs wait for a call once (``work.wait()``, ``wait_stream``), which covers all that came
before it on its stream. So a wait is not for what has been waited for before, nor for what had
not ended when computing went on. If several streams have something left, those are preferred
whose calls are usually waited for: a collective that is waited for where there was no choice,
for more than half of its calls. A wait is for the last call of its stream, but where each
single one is waited for, for the first that is left: weights may be gathered two layers ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s

__all__ = ["Awaited", "Lane", "Waiting", "awaited"]

_USUALLY: Final = 0.5
_EACH: Final = 0.9


@dataclass(frozen=True, slots=True)
class Lane:
    """The calls of one stream, in the order of their launches, and which collectives they are.

    ``tasks`` are their places among all tasks.
    """

    stream: int
    tasks: Int64s
    ends_ns: Int64s
    kinds: Int64s


@dataclass(frozen=True, slots=True)
class Waiting:
    """Waits in the order of the host: before which task, and how many.

    What waits began at ``begins_ns``, on ``stream``; when the host launched it, it knew that
    all had ended that had at ``known_ns``.
    """

    before: Int64s
    nums: Int64s
    begins_ns: Int64s
    stream: Int64s
    known_ns: Int64s


@dataclass(frozen=True, slots=True)
class Awaited:
    """Calls that are waited for: each, by which of the waits, and whether it usually is."""

    calls: Int64s
    waits: Int64s
    is_usual: npt.NDArray[np.bool_]


def awaited(lanes: Sequence[Lane], waiting: Waiting) -> Awaited:
    """Return for which calls the waits are."""
    num_kinds = 1 + max((int(lane.kinds.max(initial=-1)) for lane in lanes), default=-1)
    search = _Search(lanes, waiting, num_kinds)
    first = search.go(_Habits.none(num_kinds))
    usual = first.sure > _USUALLY * search.num_calls
    tried = search.go(_Habits(usual, usual))
    each = usual & (tried.chosen >= _EACH * search.num_calls)
    return search.go(_Habits(usual, each)).awaited


@dataclass(frozen=True, slots=True)
class _Habits:
    """Which collectives are usually waited for, and which of these each by itself."""

    usual: npt.NDArray[np.bool_]
    each: npt.NDArray[np.bool_]

    @classmethod
    def none(cls, num_kinds: int) -> _Habits:
        nothing = np.zeros(num_kinds, np.bool_)
        return cls(nothing, nothing)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is awaited, and how many calls of each collective: all, and without a choice."""

    awaited: Awaited
    chosen: Int64s
    sure: Int64s


class _Search:
    """Go through waits, and choose for each what is left."""

    def __init__(self, lanes: Sequence[Lane], waiting: Waiting, num_kinds: int) -> None:
        self._lanes, self._waiting = lanes, waiting
        kinds = np.concatenate([lane.kinds for lane in lanes])
        self.num_calls = np.bincount(kinds, minlength=num_kinds)
        self._kinds = [lane.kinds.tolist() for lane in lanes]
        self._ends = [lane.ends_ns.tolist() for lane in lanes]
        launched, ended, known = [], [], []
        for lane in lanes:
            ends_ns = np.maximum.accumulate(lane.ends_ns)
            launched.append(np.searchsorted(lane.tasks, waiting.before))
            done = np.searchsorted(ends_ns, waiting.begins_ns, "right")
            ended.append(np.where(waiting.stream == lane.stream, 0, done))
            known.append(np.searchsorted(ends_ns, waiting.known_ns, "right"))
        self._launched, self._ended, self._known = (
            np.stack(one, axis=1).tolist() for one in (launched, ended, known)
        )

    def go(self, habits: _Habits) -> _Found:
        """Go through all waits once."""
        usual = habits.usual.tolist()
        following = [_following(habits.each[lane.kinds]) for lane in self._lanes]
        num_kinds = self.num_calls.size
        chosen, sure = [0] * num_kinds, [0] * num_kinds
        covered = [0] * len(self._lanes)
        rows: list[tuple[int, int, bool]] = []
        for place, num in enumerate(self._waiting.nums.tolist()):
            covered = list(map(max, covered, self._known[place]))
            for left in range(num, 0, -1):
                found = list(self._candidates(place, covered, usual, following))
                if not found:
                    break
                is_usual, *_, lane, at = max(found)
                kind = self._kinds[lane][at]
                chosen[kind] += 1
                sure[kind] += len(found) <= left
                covered[lane] = at + 1
                rows.append((int(self._lanes[lane].tasks[at]), place, is_usual))
        calls, waits, are_usual = np.array(rows, np.int64).reshape(-1, 3).T
        awaited = Awaited(calls, waits, are_usual.astype(np.bool_))
        return _Found(awaited, np.array(chosen), np.array(sure))

    def _candidates(
        self,
        place: int,
        covered: Sequence[int],
        usual: Sequence[bool],
        following: Sequence[Sequence[int]],
    ) -> Iterator[tuple[bool, bool, int, int, int]]:
        """Yield of each stream what may be waited for; what is likelier is greater."""
        for lane, (first, launched, ended) in enumerate(
            zip(covered, self._launched[place], self._ended[place], strict=True)
        ):
            kinds, last = self._kinds[lane], min(launched, ended) - 1
            if last < first:
                continue
            at = min(following[lane][first], last)
            is_meant = at == following[lane][first] or at == launched - 1
            yield usual[kinds[at]], is_meant, self._ends[lane][at], lane, at


def _following(are_such: npt.NDArray[np.bool_]) -> list[int]:
    """Return for each place the next that is such, itself or later; of none, the end."""
    places = np.where(are_such, np.arange(are_such.size), are_such.size)
    found: list[int] = np.minimum.accumulate(places[::-1])[::-1].tolist()
    return found
