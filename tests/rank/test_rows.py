from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from traceparse.rank.rows import rows_where
from traceparse.tables import TEXT


def _rows(texts: list[str | None], wanted: str) -> list[bool]:
    table = pa.table({"name": pa.array(texts, TEXT)})
    return list(rows_where(table, "name", lambda names: pc.equal(names, wanted)))


def test_rows_with_a_text():
    assert _rows(["a", "b", None, "a"], "a") == [True, False, False, True]
    assert _rows(["a", None], "b") == [False, False]
    assert _rows([None, None], "a") == [False, False]
    assert _rows([], "a") == []
