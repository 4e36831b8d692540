"""Threads of the host, numbered."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traceparse.rank.rows import texts_of
from traceparse.tables import ArrowTable

__all__ = ["Threads"]

_PID_BITS = 32


class Threads:
    """Gives a number to each thread of each process, in the order in which they are met."""

    def __init__(self) -> None:
        self._pids: dict[str, int] = {}
        self._tids: dict[str, int] = {}
        self._known: dict[int, int] = {}

    def of(self, spans: ArrowTable) -> npt.NDArray[np.int32]:
        """Return the number of each row's thread; ``pid`` and ``tid`` are looked at."""
        pids = texts_of(spans, "pid", self._pids)[1].astype(np.int64)
        tids = texts_of(spans, "tid", self._tids)[1].astype(np.int64)
        found, which = np.unique((pids << _PID_BITS) + tids, return_inverse=True)
        numbers = [self._known.setdefault(key, len(self._known)) for key in found.tolist()]
        return np.array(numbers, np.int32)[which]
