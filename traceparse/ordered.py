"""Rows in order, however many there are: runs that fit memory are sorted, then merged.

Rows are structured arrays, a field a column. What is no more than one run never leaves memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from traceparse.spill import Place, Spill

__all__ = ["Ordered", "Rows"]

Rows: TypeAlias = npt.NDArray[np.void]
_Key: TypeAlias = tuple[Any, ...]

_RUN = 1 << 16  # rows that are sorted in memory
_LEAST = 1 << 10  # rows of a run that are read at a time, if there are many runs


class Ordered:
    """Takes rows in any order; gives them back by ``by``, as often as one likes.

    Rows whose fields of ``by`` are equal come in any order.
    """

    def __init__(self, fields: Sequence[tuple[str, str]], *, by: Sequence[str]) -> None:
        self.num_rows = 0
        self._type = np.dtype(list(fields), align=True)
        self._by = tuple(by)
        self._held: list[Rows] = []
        self._num_held = 0
        self._runs: list[Place] = []
        self._spill = Spill()

    def add(self, num_rows: int, **columns: npt.NDArray[Any] | int) -> None:
        """Add rows, given by column: a number is for every row, what is left out is 0."""
        rows = np.zeros(num_rows, self._type)
        for name, column in columns.items():
            rows[name] = column
        self._held.append(rows)
        self.num_rows += num_rows
        self._num_held += num_rows
        if self._num_held >= _RUN:
            self._put()

    def _put(self) -> None:
        """Put what is held on disk, sorted."""
        self._runs.append(self._spill.put(self._sorted().view(np.uint8).data))
        self._held.clear()
        self._num_held = 0

    def _sorted(self) -> Rows:
        """Return what is held, sorted; it stays so."""
        if len(self._held) != 1:
            joined = np.empty(self._num_held, self._type)
            if self._held:
                np.concatenate(self._held, out=joined)
            self._held[:] = [joined]
        rows = self._held[0]
        order = np.lexsort([rows[name] for name in reversed(self._by)])
        if np.any(order[1:] < order[:-1]):
            rows = self._held[0] = rows[order]
        return rows

    def parts(self) -> Iterator[Rows]:
        """Yield all rows in order, some at a time; no part is empty."""
        rows = self._sorted()
        if self._runs:
            yield from self._merged(rows)
        elif rows.size:
            yield rows

    def _merged(self, rows: Rows) -> Iterator[Rows]:
        size = max(_RUN // len(self._runs), _LEAST) * self._type.itemsize
        runs = [_Run(self._read(place, size), self._by) for place in self._runs]
        if rows.size:
            runs.append(_Run(iter([rows]), self._by))
        while runs:
            # a run holds nothing yet unread that comes before the last row it shows
            limit = min(run.last for run in runs)
            due = [run.take(limit) for run in runs if run.first <= limit]
            runs = [run for run in runs if not run.is_empty]
            if len(due) == 1:
                yield due[0]
                continue
            part = np.concatenate(due)
            yield part[np.lexsort([part[name] for name in reversed(self._by)])]

    def _read(self, place: Place, size: int) -> Iterator[Rows]:
        for at in range(0, place.size, size):
            some = Place(place.offset + at, min(size, place.size - at))
            yield np.frombuffer(self._spill.get(some), self._type)


class _Run:
    """One sorted run, as far as it is shown: from ``first`` to ``last``, by their keys."""

    def __init__(self, blocks: Iterator[Rows], by: Sequence[str]) -> None:
        self._blocks = blocks
        self._by = by
        self._show(next(blocks))

    def _show(self, rows: Rows) -> None:
        self._rows = rows
        self.first = self._key(0)
        self.last = self._key(-1)

    def _key(self, row: int) -> _Key:
        return tuple(self._rows[name][row].item() for name in self._by)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of it."""
        return not self._rows.size

    def take(self, limit: _Key) -> Rows:
        """Return the rows up to this key, of those that are shown, and show what follows."""
        num = self._num_up_to(limit)
        taken, rest = self._rows[:num], self._rows[num:]
        if not rest.size:
            rest = next(self._blocks, rest)
        if rest.size:
            self._show(rest)
        else:
            self._rows = rest
        return taken

    def _num_up_to(self, limit: _Key) -> int:
        first, last = 0, self._rows.size
        for name, value in zip(self._by, limit, strict=True):
            column = self._rows[name]
            wanted = np.array(value, column.dtype)
            first, last = (
                first + int(np.searchsorted(column[first:last], wanted, side))
                for side in ("left", "right")
            )
        return last
