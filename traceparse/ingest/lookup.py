"""What the scanner's texts mean elsewhere, computed for each when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from traceparse.ingest.store import Int32s

__all__ = ["Lookup"]

_UNKNOWN = -2


class Lookup:
    """What texts with ids mean elsewhere; id -1 is no text, and means ``none``."""

    def __init__(
        self,
        most_texts: int,
        compute: Callable[[list[object]], Sequence[int] | Int32s],
        *,
        none: int,
    ) -> None:
        self._compute = compute
        self._known = np.empty(most_texts + 1, np.int32)
        self._none = none
        self.forget()

    def forget(self) -> None:
        """Compute all anew."""
        self._known[:-1] = _UNKNOWN
        self._known[-1] = self._none  # id -1 is no text

    def of(self, ids: Int32s, values: list[object]) -> Int32s:
        """Return what these ids mean, given the value of each text."""
        found: Int32s = self._known[ids]
        is_fresh = found == _UNKNOWN
        if is_fresh.any():
            fresh = np.unique(ids[is_fresh])
            self._known[fresh] = self._compute([values[text] for text in fresh.tolist()])
            found = self._known[ids]
        return found
