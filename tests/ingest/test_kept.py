from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from traceparse.ingest.kept import Kept
from traceparse.spill import Spill
from traceparse.tables import TEXT

SCHEMA = pa.schema([("start_ns", pa.int64()), ("name", TEXT), ("id", pa.uint64())])
ROWS = [
    ([10, 20], ["a", None], [1, 2**64 - 1]),
    ([], [], []),
    ([15], ["b"], [None]),
]


def _kept(held: list[bool]) -> Kept:
    kept = Kept(SCHEMA, Spill())
    for (starts, names, ids), is_held in zip(ROWS, held, strict=True):
        columns = [
            np.array(starts, np.int64),
            pa.array(names, TEXT),
            pa.array(ids, pa.uint64()),
        ]
        size = kept.add(columns, held=is_held)
        assert (size > 0) == bool(is_held and starts)
    return kept


@pytest.mark.parametrize("held", [[True] * 3, [False] * 3, [True, False, False]])
@pytest.mark.parametrize("base", [0, 7])
def test_parts_are_the_same_wherever_they_are(held, base):
    kept = _kept(held)
    kept.move(base)
    assert kept.num_rows == 3
    assert [part.to_pydict() for part in kept.parts("name", "start_ns")] == [
        {"name": ["a", None], "start_ns": [10 + base, 20 + base]},
        {"name": ["b"], "start_ns": [15 + base]},
    ]
    table = kept.table()
    assert table.schema == SCHEMA
    assert table["id"].to_pylist() == [1, 2**64 - 1, None]
    assert kept.table() == table  # as often as one likes


def test_a_table_without_rows_has_its_columns():
    kept = Kept(SCHEMA)
    assert list(kept.parts("name")) == []
    assert kept.table().schema == SCHEMA
