"""What a column says of every row of a table: its text, whether that is wanted, its number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.tables import ArrowTable

__all__ = ["by_text", "dictionary_of", "numbers_of", "rows_where", "texts_of"]


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
    parts = []
    for chunk in table[column].chunks:
        values = function(chunk.dictionary)
        ids = chunk.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
        parts.append(np.append(values, np.array(null, values.dtype))[ids])
    if not parts:
        return np.empty(0, function(pa.array([], pa.string())).dtype)
    return np.concatenate(parts)


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


def dictionary_of(table: ArrowTable, column: str) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Return the distinct texts of a column and each row's index among them; -1 for null.

    For columns that have few; for names, :func:`by_text` needs less room.
    """
    if not table.num_rows:
        return pa.array([], pa.string()), np.empty(0, np.int32)
    whole = table[column].unify_dictionaries().combine_chunks()
    chunk = whole.chunk(0) if hasattr(whole, "chunk") else whole
    return chunk.dictionary, chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def texts_of(table: ArrowTable, column: str) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the same, the texts as Python's."""
    texts, ids = dictionary_of(table, column)
    return texts.to_pylist(), ids


def numbers_of(table: ArrowTable, column: str) -> npt.NDArray[np.uint64]:
    """Return a column of ids, 0 for null: no id is 0."""
    found: npt.NDArray[np.uint64] = table[column].fill_null(0).to_numpy()
    return found
