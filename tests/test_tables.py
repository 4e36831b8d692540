from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import pyarrow as pa
import pytest

from traceparse.ingest import FileHealth
from traceparse.rank import Times
from traceparse.tables import (
    STAGES,
    TABLES,
    TIMES_COLUMNS,
    _NoPandas,
    schema_of,
    spare_pandas,
)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_column_says_what_it_means(table):
    assert table.meaning
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names)
    for column in table.columns:
        assert column.meaning
        assert column.stage in STAGES
        assert (column.unit == "ns") == column.name.endswith("_ns")


def test_contract_columns_of_device_events():
    wanted = {
        *("rank", "device", "step", "stream", "name", "kind", "start_ns", "end_ns", "dur_ns"),
        *("correlation", "op", "shapes", "dtype", "flop", "bytes"),
    }
    for table in ("kernels", "device_events"):
        assert wanted <= set(schema_of(table).names)


def test_a_stage_sees_the_columns_of_those_before_it():
    early = schema_of("device_events", stage="ingest").names
    late = schema_of("device_events", stage="rank").names
    assert "kind" not in early
    assert set(early) < set(late) < set(schema_of("device_events").names)


def test_times_and_files_have_the_names_of_their_dataclasses():
    assert [column.name for column in TIMES_COLUMNS] == [field.name for field in fields(Times)]
    assert schema_of("files").names == [field.name for field in fields(FileHealth)]


def test_ids_are_unsigned_64_bit():
    schema = schema_of("device_events")
    for name in ("correlation", "external_id", "stream"):
        assert schema.field(name).type == pa.uint64()


_SPARING = """
import sys
from traceparse.tables import spare_pandas
spare_pandas()
import pyarrow as pa
table = pa.table({"a": pa.array([1.5, None])})
assert "pandas" not in sys.modules
assert table.to_pandas()["a"].isna().tolist() == [False, True]
assert "pandas" in sys.modules
spare_pandas()
"""


def test_arrow_can_do_without_pandas_until_somebody_wants_a_frame():
    subprocess.run([sys.executable, "-c", _SPARING], check=True)


def test_the_import_is_blocked_for_no_longer_than_that(monkeypatch):
    """The same in this process, for those who count lines: here Arrow has looked before."""
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    finders = list(sys.meta_path)
    spare_pandas()
    assert sys.meta_path == finders
    with pytest.raises(ModuleNotFoundError):
        _NoPandas().find_spec("pandas", None)
    assert _NoPandas().find_spec("numpy", None) is None  # type: ignore[func-returns-value]


def test_where_pandas_is_already_nothing_changes():
    finders = list(sys.meta_path)
    __import__("pandas")
    spare_pandas()
    assert sys.meta_path == finders
