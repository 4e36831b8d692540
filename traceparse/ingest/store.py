"""What is kept of a file: columns that grow, and the Arrow tables that they become.

Texts are numbered in one dictionary for all columns, which begins anew before it grows without
end; what was collected then becomes a chunk of Arrow's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.intervals import Int64s
from traceparse.tables import TEXT, ArrowTable, schema_of

__all__ = ["Int32s", "Store"]

Int32s: TypeAlias = npt.NDArray[np.int32]

# What is held as Python's strings and as small arrays, before it becomes a chunk of Arrow's
_MOST_TEXTS = 1 << 16  # distinct ones
_MOST_LETTERS = 1 << 24  # in these
_MOST_ROWS = 1 << 18


class Store:
    """Columns of tables, part by part; ``epoch`` counts how often ids of texts began anew."""

    def __init__(self) -> None:
        self.epoch = 0
        self._columns: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        self._texts: dict[str, int] = {}
        self._letters = 0
        self._num_rows = 0
        # by table and column: times grow in one piece each, the others chunk by chunk
        self._times: dict[tuple[str, str], bytearray] = defaultdict(bytearray)
        self._chunks: dict[tuple[str, str], list[pa.Array]] = defaultdict(list)

    def append(self, table: str, **columns: npt.NDArray[Any] | pa.Array) -> None:
        """Add a part to some columns of a table: times, ids of texts, or Arrow's numbers."""
        for name, part in columns.items():
            self._columns[table][name].append(part)
        self._num_rows += len(columns.get("start_ns", ()))

    def _id(self, text: str | None) -> int:
        if text is None:
            return -1
        return self._texts.setdefault(text, len(self._texts))

    def ids(self, texts: Iterable[str | None]) -> Int32s:
        """Return a number for each text, -1 for none; they hold until :meth:`make_room`."""
        num_known = len(self._texts)
        ids = np.fromiter(map(self._id, texts), np.int32)
        added = islice(reversed(self._texts), len(self._texts) - num_known)
        self._letters += sum(map(len, added))
        return ids

    def make_room(self) -> None:
        """Turn what was collected into Arrow, if it is much."""
        if (
            len(self._texts) > _MOST_TEXTS
            or self._letters > _MOST_LETTERS
            or self._num_rows >= _MOST_ROWS
        ):
            self._flush()

    def _flush(self) -> None:
        """Turn what was collected into Arrow, whose texts take a third of Python's room."""
        texts = pa.array(self._texts, pa.string())
        for name, columns in self._columns.items():
            for field in schema_of(name, stage="ingest"):
                key, parts = (name, field.name), columns.pop(field.name)
                if field.type == pa.int64():
                    self._times[key] += np.concatenate(parts).data
                else:
                    self._chunks[key].append(_column(parts, field.type, texts))
        self._columns.clear()
        self._texts.clear()
        self._letters = self._num_rows = 0
        self.epoch += 1

    def finish(self, tables: Iterable[str], base_ns: int) -> dict[str, ArrowTable]:
        """Return tables, times moved by ``base_ns``."""
        self._flush()
        return {name: self._table(name, base_ns) for name in tables}

    def _table(self, name: str, base_ns: int) -> ArrowTable:
        schema = schema_of(name, stage="ingest")
        columns = [
            _moved(self._times.pop((name, field.name), bytearray()), base_ns)
            if field.type == pa.int64()
            else pa.chunked_array(self._chunks.pop((name, field.name), []), field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)


def _moved(data: bytearray, base_ns: int) -> pa.Array:
    """Make a column of times that are moved where they lie: it may be the most of memory."""
    times = np.frombuffer(data, np.int64)
    times += base_ns
    return pa.array(times)


def _column(parts: Sequence[Any], kind: pa.DataType, texts: pa.Array) -> pa.Array:
    if kind == pa.uint64():
        return pa.concat_arrays(parts)
    return _texts_column(np.concatenate(parts), texts, kind)


def _texts_column(ids: Int64s, texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Make a column of texts whose dictionary holds only what the column has."""
    is_used = np.zeros(len(texts) + 1, np.bool_)
    is_used[ids] = True  # null is -1, the last one
    used = np.flatnonzero(is_used[:-1])
    positions = np.cumsum(is_used, dtype=np.int32) - 1
    column = pa.DictionaryArray.from_arrays(
        pa.array(positions[ids].astype(np.int32), mask=ids < 0), texts.take(pa.array(used))
    )
    return column if kind == TEXT else column.cast(kind)
