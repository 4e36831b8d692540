"""Which rows of a table have a text like this?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.rank.classify import by_text
from traceparse.tables import ArrowTable

__all__ = ["rows_where"]


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
