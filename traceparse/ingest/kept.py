"""A table of events as it was read, part by part: in memory, or what is much of it on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.intervals import Int64s
from traceparse.spill import Place, Spill
from traceparse.tables import ArrowTable

__all__ = ["Kept"]

_Part: TypeAlias = dict[str, "pa.Array | Place"]


class Kept:
    """Rows of one table, in the order of the file; texts by a dictionary a part.

    What is computed of it is computed of :meth:`parts`, with only the columns that it needs, so
    that memory does not grow with the file.
    """

    def __init__(self, schema: pa.Schema, spill: Spill | None = None) -> None:
        self.schema = schema
        self.num_rows = 0
        self._spill = spill
        self._parts: list[_Part] = []
        self._times: list[Int64s] = []  # those in memory
        self._base_ns = 0

    @classmethod
    def of(cls, table: ArrowTable) -> Kept:
        """Return what stands in a table already."""
        kept = cls(table.schema)
        for batch in table.to_batches():
            kept.add(batch.columns)
        return kept

    def add(self, columns: Sequence[npt.NDArray[Any] | pa.Array], *, held: bool = True) -> int:
        """Add a part, all columns in the schema's order; return the bytes of memory it takes.

        Times are numpy's, all else is Arrow's. ``held`` is whether it may stay in memory.
        """
        num_rows = len(columns[0])
        if not num_rows:
            return 0
        self.num_rows += num_rows
        if self._spill and not held:
            self._parts.append(
                {
                    name: self._spill.put(_packed(name, _array(column)))
                    for name, column in zip(self.schema.names, columns, strict=True)
                }
            )
            return 0
        self._times += [column for column in columns if isinstance(column, np.ndarray)]
        part = dict(zip(self.schema.names, map(_array, columns), strict=True))
        self._parts.append(part)
        return sum(column.nbytes for column in part.values())

    def move(self, base_ns: int) -> None:
        """Move all times; once, when all parts are there."""
        for column in self._times:
            np.add(column, base_ns, out=column)
        self._times.clear()
        self._base_ns = base_ns

    def parts(self, *names: str) -> Iterator[ArrowTable]:
        """Yield some columns, a part at a time; none is empty."""
        schema = pa.schema([self.schema.field(name) for name in names])
        for part in self._parts:
            columns = [self._column(part[name]) for name in names]
            yield pa.Table.from_arrays(columns, schema=schema)

    def _column(self, column: pa.Array | Place) -> pa.Array:
        if not isinstance(column, Place):
            return column
        assert self._spill is not None
        (batch,) = pa.ipc.open_stream(self._spill.get(column))
        found = batch.column(0)
        if self._base_ns and found.type == pa.int64():
            return pa.array(found.to_numpy() + self._base_ns)
        return found

    def table(self) -> ArrowTable:
        """Return all of it, in memory."""
        parts = list(self.parts(*self.schema.names))
        return pa.concat_tables(parts) if parts else self.schema.empty_table()


def _array(column: npt.NDArray[Any] | pa.Array) -> pa.Array:
    return pa.array(column) if isinstance(column, np.ndarray) else column


def _packed(name: str, column: pa.Array) -> memoryview:
    """Write a column as Arrow's stream, its dictionary with it."""
    batch = pa.record_batch([column], names=[name])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return memoryview(sink.getvalue())
