"""What a column says of every row of a table: its text, whether that is wanted, its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.ingest import Kept
from traceparse.tables import ArrowTable

__all__ = [
    "alike",
    "by_text",
    "distinct",
    "groups",
    "hashes_of",
    "num_where",
    "numbers_of",
    "nums_of",
    "picked",
    "rows_where",
    "texts_of",
]


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


def num_where(kept: Kept, column: str, wanted: Callable[[pa.Array], pa.Array]) -> int:
    """How many rows have a text that is wanted?"""
    return sum(int(rows_where(part, column, wanted).sum()) for part in kept.parts(column))


def distinct(kept: Kept, column: str) -> list[str]:
    """Return the distinct texts of a column, in the order of the file's dictionaries."""
    return list(
        dict.fromkeys(
            text
            for part in kept.parts(column)
            for chunk in part[column].chunks
            for text in chunk.dictionary.to_pylist()
        )
    )


def nums_of(parts: Iterable[ArrowTable], column: str) -> Counter[str]:
    """How many rows have each text of a column? In the order in which texts appear."""
    nums: Counter[str] = Counter()
    for part in parts:
        texts, ids = texts_of(part, column)
        counts = np.bincount(ids[ids >= 0], minlength=len(texts)).tolist()
        for text, num in zip(texts, counts, strict=True):
            nums[text] += num
    return +nums  # a part may have none of a text that its dictionary has


def texts_of(
    table: ArrowTable, column: str, known: dict[str, int] | None = None
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the distinct texts of a column and each row's index among them; -1 for null.

    For columns that have few; for names, :func:`by_text` needs less room. ``known`` are texts
    that have an index already; others are added to it.
    """
    texts = {} if known is None else known

    def numbered(chunk_texts: pa.Array) -> npt.NDArray[np.int32]:
        numbers = [texts.setdefault(text, len(texts)) for text in chunk_texts.to_pylist()]
        return np.array(numbers, np.int32)

    ids = by_text(table, column, numbered, null=-1)
    return list(texts), ids


def hashes_of(table: ArrowTable, column: str) -> npt.NDArray[np.uint64]:
    """Return a number for each row's text, the same for the same text; 0 for null."""

    def hashed(texts: pa.Array) -> npt.NDArray[np.uint64]:
        digests = (
            blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
            for text in texts.to_pylist()
        )
        return np.frombuffer(b"".join(digests), np.uint64)

    return by_text(table, column, hashed, null=0)


def numbers_of(table: ArrowTable, column: str) -> npt.NDArray[np.uint64]:
    """Return a column of ids, 0 for null: no id is 0."""
    found: npt.NDArray[np.uint64] = table[column].fill_null(0).to_numpy()
    return found


def picked(kept: Kept, rows: npt.NDArray[np.int64], *columns: str) -> Iterator[ArrowTable]:
    """Yield some columns of some rows, given in order: part by part, also of none."""
    done = 0
    for part in kept.parts(*columns):
        first, last = np.searchsorted(rows, [done, done + part.num_rows])
        yield part.take(pa.array(rows[first:last] - done))
        done += part.num_rows


def alike(
    columns: Sequence[npt.NDArray[Any]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return one row of each combination of values, and which of these each row is like.

    Columns of integers. Most have few values, which sorting whole rows does not profit from.
    """
    codes = np.zeros(columns[0].size, np.int64)
    for column in columns:
        if not np.all(column == column[:1]):
            values, which = np.unique(column, return_inverse=True)
            _, codes = np.unique(codes * values.size + which, return_inverse=True)
    _, firsts, which = np.unique(codes, return_index=True, return_inverse=True)
    return firsts, which


def groups(values: npt.NDArray[Any]) -> Iterator[tuple[int, slice | npt.NDArray[np.int64]]]:
    """Yield each distinct value with the rows that have it, in their order."""
    if not values.size:
        return
    if np.all(values == values[0]):  # as nearly always: nothing has to be copied
        yield int(values[0]), slice(None)
        return
    order = np.argsort(values, kind="stable")
    firsts = np.flatnonzero(np.diff(values[order], prepend=values[order[0]] - 1))
    for rows in np.split(order, firsts[1:]):
        yield int(values[rows[0]]), rows
