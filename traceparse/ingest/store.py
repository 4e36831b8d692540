"""What is kept of a file: columns that grow, part by part.

Texts of a column are numbered in a dictionary, which begins anew before it grows without end;
what was collected then becomes a part of the tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.ingest.kept import Kept
from traceparse.spill import Spill
from traceparse.tables import TEXT, schema_of

__all__ = ["Int32s", "Store"]

Int32s: TypeAlias = npt.NDArray[np.int32]

# What is collected before it becomes a part of the tables
_MOST_TEXTS = 1 << 16  # distinct ones of each column
_MOST_LETTERS = 1 << 24  # in these
_MOST_ROWS = 1 << 16
_MOST_HELD = 1 << 23  # bytes of parts that stay in memory, if there is a disk for the others


class Store:
    """Columns of tables, part by part; ``epoch`` counts how often ids of texts began anew.

    ``on_disk`` keeps what is much of it in a temporary file.
    """

    def __init__(self, *, on_disk: bool = False) -> None:
        self.epoch = 0
        self._columns: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        self._texts: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        self._num_texts = self._letters = self._num_rows = 0
        self._spill = Spill() if on_disk else None
        self._num_held = 0
        self._kept: dict[str, Kept] = {}

    def append(self, table: str, **columns: npt.NDArray[Any] | pa.Array) -> None:
        """Add a part to some columns of a table: times, ids of texts, or Arrow's numbers."""
        for name, part in columns.items():
            self._columns[table][name].append(part)
        self._num_rows += len(columns.get("start_ns", ()))

    def append_texts(self, table: str, **columns: Iterable[str | None]) -> None:
        """Add a part to some columns of a table, given as texts."""
        for name, texts in columns.items():
            self._columns[table][name].append(self.ids(table, name, texts))

    def ids(self, table: str, column: str, texts: Iterable[str | None]) -> Int32s:
        """Return a number for each text of a column, -1 for none.

        They hold until :meth:`make_room`.
        """
        known = self._texts[table, column]
        num_known = len(known)
        ids = np.fromiter(
            (-1 if text is None else known.setdefault(text, len(known)) for text in texts),
            np.int32,
        )
        num_added = len(known) - num_known
        self._num_texts += num_added
        self._letters += sum(map(len, islice(reversed(known), num_added)))
        return ids

    def make_room(self) -> None:
        """Turn what was collected into Arrow, if it is much."""
        if (
            self._num_texts > _MOST_TEXTS
            or self._letters > _MOST_LETTERS
            or self._num_rows >= _MOST_ROWS
        ):
            self._flush()

    def _flush(self) -> None:
        """Turn what was collected into Arrow, whose texts take a third of Python's room."""
        for name, columns in self._columns.items():
            kept = self._of(name)
            part = [
                _column(columns.pop(field.name), field.type, self._texts[name, field.name])
                for field in kept.schema
            ]
            self._num_held += kept.add(part, held=self._num_held < _MOST_HELD)
        self._columns.clear()
        self._texts.clear()
        self._num_texts = self._letters = self._num_rows = 0
        self.epoch += 1

    def _of(self, name: str) -> Kept:
        return self._kept.setdefault(name, Kept(schema_of(name, stage="ingest"), self._spill))

    def finish(self, tables: Iterable[str], base_ns: int) -> dict[str, Kept]:
        """Return tables, times moved by ``base_ns``."""
        self._flush()
        found = {name: self._of(name) for name in tables}
        for kept in found.values():
            kept.move(base_ns)
        return found


def _column(
    parts: Sequence[Any], kind: pa.DataType, texts: Iterable[str]
) -> npt.NDArray[np.int64] | pa.Array:
    if kind == pa.uint64():
        return pa.concat_arrays(parts)
    joined = np.concatenate(parts)
    if kind == pa.int64():
        return joined
    nothing = joined < 0
    column = pa.DictionaryArray.from_arrays(
        pa.array(joined, mask=nothing if nothing.any() else None), pa.array(texts, pa.string())
    )
    return column if kind == TEXT else column.cast(kind)
