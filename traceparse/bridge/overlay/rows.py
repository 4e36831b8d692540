"""Rows of tables as values of Python, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.intervals import Int64s
from traceparse.tables import ArrowTable

__all__ = ["Ids", "Rows", "by_row", "decoded"]

_SMALL = 1 << 32
_EACH = 1 << 33  # numbers a rank


class Rows:
    """One table, for who asks for values of some rows."""

    def __init__(self, table: ArrowTable) -> None:
        self.num = table.num_rows
        self._table = table.unify_dictionaries().combine_chunks()
        self._texts: dict[str, tuple[npt.NDArray[np.int64], list[str | None]]] = {}

    def times(self, column: str) -> Int64s:
        """Return all of a column of times."""
        found: Int64s = self._table[column].to_numpy()
        return found

    def texts(self, column: str, rows: Int64s) -> list[str | None]:
        """Return the texts of some rows."""
        codes, values = self._coded(column)
        return [values[code] for code in codes[rows].tolist()]

    def numbers(self, column: str, rows: Int64s) -> list[int | None]:
        """Return the numbers of some rows."""
        found: list[int | None] = self._table[column].take(pa.array(rows)).to_pylist()
        return found

    def ids(self, column: str) -> npt.NDArray[np.uint64]:
        """Return all of a column of ids; 0 for none."""
        found: npt.NDArray[np.uint64] = self._table[column].fill_null(0).to_numpy()
        return found

    def labels(self, column: str, rows: Int64s, word: str) -> list[str]:
        """Return the numbers of some rows as words for people; empty for none."""
        return [
            "" if number is None else f"{word} {number}"
            for number in self.numbers(column, rows)
        ]

    def codes(self, column: str) -> npt.NDArray[np.int64]:
        """Return a number for each row's text, the same for the same text."""
        return self._coded(column)[0]

    def json(self, column: str, rows: Int64s) -> list[Any]:
        """Return what texts of JSON stand for; ``None`` for what is none."""
        codes, values = self._coded(column)
        some = {code: decoded(values[code]) for code in np.unique(codes[rows]).tolist()}
        return [some[code] for code in codes[rows].tolist()]

    def _coded(self, column: str) -> tuple[npt.NDArray[np.int64], list[str | None]]:
        known = self._texts.get(column)
        if known is None:
            whole = self._table[column]
            if whole.num_chunks:
                array = whole.chunk(0)
                if not pa.types.is_dictionary(array.type):
                    array = array.dictionary_encode()
                values = [*array.dictionary.to_pylist(), None]
                codes = array.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)
                known = codes.astype(np.int64), values
            else:
                known = np.empty(0, np.int64), []
            self._texts[column] = known
        return known


def by_row(columns: Mapping[str, list[Any]], num: int) -> Iterator[dict[str, Any]]:
    """Yield of each row what is known of it."""
    if not columns:
        yield from ({} for _ in range(num))
    keys = tuple(columns)
    for values in zip(*columns.values(), strict=True):
        yield {key: one for key, one in zip(keys, values, strict=True) if one is not None}


def decoded(text: str | None) -> Any:  # noqa: ANN401 - JSON is of any type
    """Read JSON from a trace; ``None`` for what is none, or nested past belief."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


class Ids:
    """Numbers of one rank's launches and operators, none of which another rank has too.

    Of a file of one rank they stay as they are.
    """

    def __init__(self, place: int, *, is_alone: bool) -> None:
        self._base = 0 if is_alone else place * _EACH
        self._is_alone = is_alone
        self._large: dict[int, int] = {}

    def of(self, numbers: list[int | None]) -> list[int | None]:
        """Return the numbers to write."""
        if self._is_alone:
            return numbers
        return [
            None if number is None else self._base + self._own(number) for number in numbers
        ]

    def _own(self, number: int) -> int:
        if number < _SMALL:
            return number
        return self._large.setdefault(number, _SMALL + len(self._large))
