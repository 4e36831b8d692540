"""The columns that the scanner (``_scanner.c``) fills, in its order."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.ingest.store import Int32s
from traceparse.intervals import Int64s

__all__ = ["Rows"]

_TYPES: Final = ("i8", "i8", *("u8",) * 5, *("i4",) * 9, "u1", "2i8")


class Rows(NamedTuple):
    """What the scanner fills: times in ns, ids as they are, all else as ids of its texts.

    Those of dims, types and concretes are ids of its raw texts.
    """

    starts: Int64s
    lasts: Int64s
    streams: npt.NDArray[np.uint64]
    correlations: npt.NDArray[np.uint64]
    externals: npt.NDArray[np.uint64]
    sequences: npt.NDArray[np.uint64]
    forwards: npt.NDArray[np.uint64]
    kinds: Int32s
    names: Int32s
    pids: Int32s
    tids: Int32s
    devices: Int32s
    collectives: Int32s
    dims: Int32s
    types: Int32s
    concretes: Int32s
    flags: npt.NDArray[np.uint8]
    args: Int64s

    @classmethod
    def empty(cls, size: int) -> Rows:
        """Return columns of so many rows."""
        return cls(*(np.zeros(size, kind) for kind in _TYPES))

    def first(self, num: int) -> Rows:
        """Return the first of the rows."""
        return Rows(*(column[:num] for column in self))  # type: ignore[arg-type]
