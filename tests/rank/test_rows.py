from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import kernel, write
from traceparse.ingest import Kept, read_trace
from traceparse.rank.rows import alike, distinct, groups, num_where, rows_where, texts_of
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
    texts, ids = texts_of(trace.kept["ops"].table(), "name")
    assert (texts, ids.tolist()) == ([], [])


def test_distinct_texts_are_those_that_rows_are_numbered_by():
    chunks = [pa.array(["b", None, "a"], TEXT), pa.array(["c", "b"], TEXT), pa.array([], TEXT)]
    table = pa.table({"name": pa.chunked_array(chunks)})
    texts, ids = texts_of(table, "name")
    assert distinct(Kept.of(table), "name") == texts == ["b", "a", "c"]
    assert ids.tolist() == [0, -1, 1, 2, 0]


def test_texts_that_are_known_keep_their_numbers():
    known = {"a": 0}
    for texts, numbers in ((["b", "a"], [1, 0]), (["c", None, "b"], [2, -1, 1])):
        table = pa.table({"name": pa.array(texts, TEXT)})
        assert texts_of(table, "name", known)[1].tolist() == numbers
    assert known == {"a": 0, "b": 1, "c": 2}


def test_rows_of_all_parts_are_counted():
    chunks = [pa.array(texts, TEXT) for texts in (["a", "b"], [None, "a"], ["b"])]
    kept = Kept.of(pa.table({"name": pa.chunked_array(chunks)}))
    assert num_where(kept, "name", lambda names: pc.equal(names, "a")) == 2


def test_groups_have_all_rows_in_their_order():
    values = np.array([3, 0, 3, 1, 0], np.int16)
    found = {value: np.arange(5)[rows].tolist() for value, rows in groups(values)}
    assert found == {0: [1, 4], 1: [3], 3: [0, 2]}
    assert [value for value, _ in groups(np.array([2, 2]))] == [2]
    assert list(groups(np.empty(0, np.int16))) == []


@given(st.lists(st.tuples(*[st.integers(-2, 2)] * 3), max_size=20))
def test_rows_that_are_alike_agree_with_a_dictionary(table):
    columns = [np.array([row[at] for row in table], np.int64) for at in range(3)]
    firsts, which = alike(columns)
    assert sorted(table[first] for first in firsts) == sorted(set(table))
    assert [table[firsts[own]] for own in which] == table
