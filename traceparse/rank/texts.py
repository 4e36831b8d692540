"""Texts that repeat, each kept once: columns of numbers until a table is made of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.intervals import Int64s
from traceparse.tables import TEXT

__all__ = ["NO_TEXT", "Texts", "used_texts"]

NO_TEXT = -1
_MOST = 1 << 12  # distinct ones; what comes after them is as good as unknown
_LONGEST = 1024  # letters

Int32s = npt.NDArray[np.int32]


def used_texts(column: pa.ChunkedArray) -> tuple[list[str | None], Int64s]:
    """Return the texts that rows have, and which of them is each row's.

    Of long dictionaries few are used, and only these become Python's. A text may come twice.
    """
    texts: list[str | None] = []
    found = [np.empty(0, np.int64)]
    for chunk in column.chunks:
        ids = chunk.indices.fill_null(NO_TEXT).to_numpy(zero_copy_only=False)
        used, which = np.unique(ids, return_inverse=True)
        found.append(len(texts) + which.reshape(-1))
        texts += [None if at < 0 else chunk.dictionary[at].as_py() for at in used.tolist()]
    return texts, np.concatenate(found)


class Texts:
    """Numbers texts in the order in which they are met, as far as anybody has as many."""

    def __init__(self, *, longest: int = _LONGEST) -> None:
        self._longest = longest
        self._known: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        """Return the number of a text, ``NO_TEXT`` for none."""
        if text is None:
            return NO_TEXT
        text = text[: self._longest]
        if len(self._known) >= _MOST:
            return self._known.get(text, NO_TEXT)
        return self._known.setdefault(text, len(self._known))

    def numbers(self, column: pa.ChunkedArray) -> Int32s:
        """Return the number of each row's text, looking at no other of its dictionaries."""
        texts, which = used_texts(column)
        return np.array([*map(self.number, texts)], np.int32)[which]

    def all(self) -> list[str]:
        """Return all texts, in order of their numbers."""
        return list(self._known)

    def column(self, numbers: Int32s) -> pa.DictionaryArray:
        """Make a column of numbers; equal texts make equal columns.

        The dictionary has the texts of the column, in order, however they were met.
        """
        used, which = np.unique(numbers, return_inverse=True)
        texts = self.all()
        own = sorted(texts[number] for number in used.tolist() if number != NO_TEXT)
        places = {text: place for place, text in enumerate(own)}
        place_of = [
            NO_TEXT if number == NO_TEXT else places[texts[number]] for number in used.tolist()
        ]
        indices = np.array(place_of, np.int32)[which.reshape(-1)]
        return pa.DictionaryArray.from_arrays(
            pa.array(indices, mask=indices < 0), pa.array(own, pa.string())
        ).cast(TEXT)
