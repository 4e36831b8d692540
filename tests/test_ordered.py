from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse import ordered
from traceparse.ordered import Ordered

_FIELDS = (("key", "u8"), ("tag", "i2"), ("value", "i8"))
_ROW = st.tuples(
    st.sampled_from([0, 1, 2, 2**63, 2**64 - 1]), st.integers(-2, 2), st.integers(0, 99)
)


def _fill(batches, by=("key", "tag")):
    rows = Ordered(_FIELDS, by=by)
    for batch in batches:
        keys, tags, values = zip(*batch, strict=True) if batch else [()] * 3
        rows.add(
            len(batch),
            key=np.array(keys, np.uint64),
            tag=np.array(tags, np.int16),
            value=np.array(values, np.int64),
        )
    return rows


def _all(rows):
    parts = list(rows.parts())
    assert all(part.size for part in parts)
    return [row for part in parts for row in part.tolist()]


@given(
    st.lists(st.lists(_ROW, max_size=9), max_size=9),
    st.integers(1, 40),
    st.integers(1, 5),
)
def test_rows_come_in_order_whatever_fits_memory(batches, run, least):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_RUN", run)
        patch.setattr(ordered, "_LEAST", least)
        rows = _fill(batches)
        found = _all(rows)
        assert _all(rows) == found  # as often as one likes
    given_rows = [row for batch in batches for row in batch]
    assert rows.num_rows == len(given_rows)
    assert [row[:2] for row in found] == sorted(row[:2] for row in given_rows)
    assert sorted(found) == sorted(given_rows)


def test_rows_may_be_added_after_some_were_given_back(monkeypatch):
    monkeypatch.setattr(ordered, "_RUN", 3)
    rows = _fill([[(5, 0, 1)], [(4, 0, 2)]])
    assert [row[2] for row in _all(rows)] == [2, 1]
    for key in (9, 1, 7):
        rows.add(1, key=key)
    assert [row[0] for row in _all(rows)] == [1, 4, 5, 7, 9]


def test_what_is_left_out_is_zero():
    rows = Ordered(_FIELDS, by=("key",))
    rows.add(2, key=np.array([2, 1], np.uint64), tag=7)
    assert _all(rows) == [(1, 7, 0), (2, 7, 0)]


def test_few_rows_need_no_disk(monkeypatch):
    rows = _fill([[(1, 1, 1)] * 9])
    monkeypatch.setattr(rows._spill, "put", lambda _: pytest.fail("it was written"))
    assert len(_all(rows)) == 9


def test_much_more_than_a_run_is_merged_in_bounded_parts(monkeypatch):
    monkeypatch.setattr(ordered, "_RUN", 1 << 10)
    monkeypatch.setattr(ordered, "_LEAST", 1 << 5)
    keys = np.random.default_rng(5).permutation(1 << 16).astype(np.uint64)
    rows = Ordered(_FIELDS, by=("key",))
    for some in np.split(keys, 128):
        rows.add(some.size, key=some)
    parts = [part["key"] for part in rows.parts()]
    assert max(part.size for part in parts) <= 65 * (1 << 5)
    assert np.array_equal(np.concatenate(parts), np.arange(1 << 16, dtype=np.uint64))
