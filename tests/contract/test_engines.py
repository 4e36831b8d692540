"""Both engines make the same of any file: tables, counts, refusals, in blocks of any size."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.contract.places import PUBLIC, SHARED, STORED
from tools.damage import KINDS
from traceparse.errors import TraceparseError
from traceparse.ingest.native import engine
from traceparse.ingest.routes import EXTRAS
from traceparse.ingest.scan import scan
from traceparse.ingest.source import Source

pytestmark = pytest.mark.skipif(
    engine() != "native", reason="the native engine was not built, for want of a compiler"
)
# few and small blocks take long in large files, and show nothing that they do not in small ones
BLOCKS = (1 << 12, 1 << 16, 1 << 20, 1 << 24)


def plain(column):
    """Return a column whatever its chunks and dictionaries."""
    is_dictionary = pa.types.is_dictionary(column.type)
    whole = (column.cast(column.type.value_type) if is_dictionary else column).combine_chunks()
    return whole.to_pylist() if len(whole) < 100 else whole


def found(path, which, block, monkeypatch):
    """Return all that one engine makes of a file."""
    monkeypatch.setenv("TRACEPARSE_ENGINE", which)
    parts = []
    try:
        with Source(path) as source:
            for part in scan(source, EXTRAS, block=block):
                tables = {name: kept.table() for name, kept in part.tables(5).items()}
                parts.append(
                    {
                        "columns": {
                            (name, column): plain(table[column])
                            for name, table in tables.items()
                            for column in table.column_names
                        },
                        "skipped": {why: num for why, num in part.skipped.items() if num},
                        "first": part.first_ns >= 10**18,
                        **{
                            name: getattr(part, name)
                            for name in part.__slots__
                            if name not in ("tables", "skipped", "first_ns")
                        },
                    }
                )
    except TraceparseError as error:
        parts.append({"refused": str(error)})
    return parts


def assert_alike(path, blocks, monkeypatch):
    for block in blocks:
        natively, otherwise = (
            found(path, which, block, monkeypatch) for which in ("native", "msgspec")
        )
        assert natively == otherwise, (path, block)


def test_there_is_something_to_compare():
    assert len(STORED) > 200


@pytest.mark.parametrize("folder", sorted({path.parent for path in STORED}), ids=str)
def test_stored_traces(folder, monkeypatch):
    for path in STORED:
        if path.parent == folder:
            assert_alike(path, BLOCKS, monkeypatch)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.number}-{kind.name}")
def test_damaged_traces(kind, tmp_path, monkeypatch):
    for layout in kind.layouts:
        folder = tmp_path / layout
        kind.make(folder, layout)
        for path in folder.rglob("*.*"):
            assert_alike(path, (1 << 12, 1 << 20), monkeypatch)


@pytest.mark.skipif(not PUBLIC, reason=f"no traces at {SHARED}")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_public_traces(path, monkeypatch):
    is_small = path.stat().st_size < 300_000
    assert_alike(path, BLOCKS if is_small else (1 << 20,), monkeypatch)
