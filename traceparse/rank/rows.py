"""What a column says of every row of a table: its text, whether that is wanted, its number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.tables import ArrowTable

__all__ = [
    "by_text",
    "distinct",
    "number_parts",
    "numbers_of",
    "parts",
    "rows_where",
    "texts_of",
]

_ROWS = 1 << 16  # at a time: what is computed of them fits the cache, and costs no memory


def by_text(
    table: ArrowTable,
    column: str,
    function: Callable[[pa.Array], npt.NDArray[Any]],
    *,
    null: object,
) -> npt.NDArray[Any]:
    """Compute something for every row from its text, once for each text of a dictionary.

    The chunks of a column keep dictionaries of their own, so that a file with any number of
    distinct names needs no more room here.
    """
    found = np.empty(table.num_rows, function(pa.array([], pa.string())).dtype)
    done = 0
    for chunk in table[column].chunks:
        values = np.append(function(chunk.dictionary), np.array(null, found.dtype))
        ids = chunk.indices.fill_null(values.size - 1).to_numpy(zero_copy_only=False)
        found[done : done + len(chunk)] = values[ids]
        done += len(chunk)
    return found


def rows_where(
    table: ArrowTable, column: str, wanted: Callable[[pa.Array], pa.Array]
) -> npt.NDArray[np.bool_]:
    """Say of every row whether its text is wanted; null is not.

    ``wanted`` is asked once for the texts of each dictionary, and answers with as many
    booleans: Arrow's functions on texts do, and hold none of them as Python's.
    """

    def told(texts: pa.Array) -> npt.NDArray[np.bool_]:
        answers: npt.NDArray[np.bool_] = wanted(texts).to_numpy(zero_copy_only=False)
        return answers.astype(np.bool_)

    return by_text(table, column, told, null=False)


def distinct(table: ArrowTable, column: str) -> list[str]:
    """Return the distinct texts of a column, in the order of :func:`texts_of`."""
    chunks = table[column].chunks
    return list(
        dict.fromkeys(text for chunk in chunks for text in chunk.dictionary.to_pylist())
    )


def texts_of(table: ArrowTable, column: str) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the distinct texts of a column and each row's index among them; -1 for null.

    For columns that have few; for names, :func:`by_text` needs less room.
    """
    texts: dict[str, int] = {}

    def numbered(chunk_texts: pa.Array) -> npt.NDArray[np.int32]:
        numbers = [texts.setdefault(text, len(texts)) for text in chunk_texts.to_pylist()]
        return np.array(numbers, np.int32)

    ids = by_text(table, column, numbered, null=-1)
    return list(texts), ids


def numbers_of(table: ArrowTable, column: str) -> npt.NDArray[np.uint64]:
    """Return a column of ids, 0 for null: no id is 0."""
    found = np.empty(table.num_rows, np.uint64)
    for rows, (numbers,) in number_parts(table, column):
        found[rows] = numbers
    return found


def number_parts(
    table: ArrowTable, *columns: str
) -> Iterator[tuple[slice, list[npt.NDArray[np.uint64]]]]:
    """Yield the same of several columns, some rows at a time, with which rows they are."""
    done = 0
    for batch in table.select(columns).to_batches(max_chunksize=_ROWS):
        numbers = [column.fill_null(0).to_numpy() for column in batch.columns]
        yield slice(done, done + batch.num_rows), numbers
        done += batch.num_rows


def parts(num_rows: int) -> Iterator[slice]:
    """Yield slices of as many rows as are best computed with at a time."""
    return (slice(at, min(at + _ROWS, num_rows)) for at in range(0, num_rows, _ROWS))
