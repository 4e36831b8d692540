from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tests.traces import kernel, write
from traceparse.ingest import read_trace
from traceparse.rank.rows import distinct, rows_where, texts_of
from traceparse.tables import TEXT


def _rows(texts: list[str | None], wanted: str) -> list[bool]:
    table = pa.table({"name": pa.array(texts, TEXT)})
    return list(rows_where(table, "name", lambda names: pc.equal(names, wanted)))


def test_rows_with_a_text():
    assert _rows(["a", "b", None, "a"], "a") == [True, False, False, True]
    assert _rows(["a", None], "b") == [False, False]
    assert _rows([None, None], "a") == [False, False]
    assert _rows([], "a") == []


def test_a_column_without_rows_has_no_texts(tmp_path):
    trace = read_trace(write(tmp_path / "rank0.json", [kernel(1, 1)]))
    texts, ids = texts_of(trace.tables["ops"], "name")
    assert (texts, ids.tolist()) == ([], [])


def test_distinct_texts_are_those_that_rows_are_numbered_by():
    chunks = [pa.array(["b", None, "a"], TEXT), pa.array(["c", "b"], TEXT), pa.array([], TEXT)]
    table = pa.table({"name": pa.chunked_array(chunks)})
    texts, ids = texts_of(table, "name")
    assert distinct(table, "name") == texts == ["b", "a", "c"]
    assert ids.tolist() == [0, -1, 1, 2, 0]
