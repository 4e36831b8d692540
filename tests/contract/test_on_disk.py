"""What a trace comes to does not depend on how much of it fits memory."""

from __future__ import annotations

import pytest

from tests.contract.places import PUBLIC, SHARED, STORED
from traceparse import ordered
from traceparse.errors import TraceparseError
from traceparse.ingest import read_traces, store
from traceparse.rank import digest, public_tables


def _digests(path, *, on_disk):
    try:
        return [digest(trace) for trace in read_traces(path, on_disk=on_disk)]
    except TraceparseError as error:
        return str(error)


def _assert_same(path, monkeypatch, *, rows):
    """Compare with what comes of it when so many rows are too many for memory."""
    in_memory = _digests(path, on_disk=False)
    with monkeypatch.context() as patch:
        patch.setattr(store, "_MOST_HELD", 0)
        patch.setattr(store, "_MOST_ROWS", rows)
        patch.setattr(ordered, "_RUN", rows)
        patch.setattr(ordered, "_LEAST", max(rows // 8, 1))
        assert _digests(path, on_disk=True) == in_memory, path


@pytest.mark.parametrize("folder", sorted({path.parent for path in STORED}), ids=str)
def test_stored_traces(folder, monkeypatch):
    for path in STORED:
        if path.parent == folder:
            _assert_same(path, monkeypatch, rows=5)


@pytest.mark.skipif(not PUBLIC, reason=f"no traces at {SHARED}")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_public_traces(path, monkeypatch):
    _assert_same(path, monkeypatch, rows=2000)


@pytest.mark.parametrize("path", STORED[::7], ids=str)
def test_tables_are_the_same_wherever_they_were_kept(path, monkeypatch):
    monkeypatch.setattr(store, "_MOST_HELD", 2000)  # some in memory, some not
    monkeypatch.setattr(store, "_MOST_ROWS", 5)
    try:
        kept = read_traces(path, on_disk=True)
    except TraceparseError:
        return
    for held, trace in zip(read_traces(path), kept, strict=True):
        tables, others = (
            {name: table.to_pylist() for name, table in public_tables(one).items()}
            for one in (held, trace)
        )
        assert tables == others
