"""Rows of a query, as files: exact, and harmless."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from traceparse.errors import UsageError
from traceparse.report.answer import render_csv, render_json, write_parquet

LARGEST = 2**64 - 1
NANO = 1_796_028_469_322_576_883


@pytest.fixture
def table():
    return pa.table(
        {
            "u": pa.array([LARGEST, None], pa.uint64()),
            "whole": pa.array([Decimal(10**30), None], pa.decimal128(38, 0)),
            "part": pa.array([Decimal("1.25"), Decimal("2.00")], pa.decimal128(9, 2)),
            "real": [float("nan"), 0.1],
            "text": ["=1+1", "a\x1b[2J"],
            "yes": [True, None],
            "at": pa.array([NANO, None], pa.timestamp("ns")),
            "took": pa.array([1_500, 2], pa.duration("ns")),
            "bytes": [b"\x01\xff", None],
            "list": pa.array([[1, None], None], pa.list_(pa.int64())),
            "counts": pa.array([[("-a", 2)], None], pa.map_(pa.string(), pa.int64())),
            "deep": pa.array([{"a": 1, "b": [date(2026, 1, 2)]}, None]),
            "clock": pa.array([[time(1, 2, 3)], None], pa.list_(pa.time64("us"))),
            "months": pa.array([pa.MonthDayNano([1, 2, 3]), None]),
        }
    )


def test_json_is_exact_and_one_row_a_line(table):
    text = render_json(table)
    assert text.isascii()
    assert len(text.splitlines()) == 2
    first, second = json.loads(text)
    assert first == {
        "u": LARGEST,
        "whole": 10**30,
        "part": 1.25,
        "real": None,
        "text": "=1+1",
        "yes": True,
        "at": "2026-11-30 08:47:49.322576883",
        "took": "1500",
        "bytes": "01ff",
        "list": [1, None],
        "counts": {"-a": 2},
        "deep": {"a": 1, "b": ["2026-01-02"]},
        "clock": ["01:02:03"],
        "months": "1 months 2 days 3 ns",
    }
    assert second["text"] == "a\x1b[2J"
    assert [name for name, value in second.items() if value is None] == [
        *("u", "whole", "yes", "at", "bytes", "list", "counts", "deep", "clock", "months")
    ]


def test_no_rows_are_an_empty_list(table):
    assert json.loads(render_json(table.slice(0, 0))) == []
    assert render_csv(table.slice(0, 0)).splitlines() == [",".join(table.column_names)]


def test_csv_is_exact_and_no_formula(table):
    first, second = csv.DictReader(io.StringIO(render_csv(table)))
    assert first["u"] == str(LARGEST)
    assert first["whole"] == str(10**30)
    assert first["text"] == "'=1+1"
    assert second["text"] == "a\\x1b[2J"
    assert json.loads(first["list"]) == [1, None]
    assert json.loads(first["counts"]) == {"-a": 2}
    assert (second["u"], second["list"], second["at"]) == ("", "", "")
    assert (first["real"], second["real"]) == ("nan", "0.1")


def test_names_of_columns_are_no_formulas_either():
    assert render_csv(pa.table({"=cmd()": [1]})) == "'=cmd()\n1\n"


def test_parquet_has_what_there_is(table, tmp_path):
    written = table.drop_columns(["months"])
    write_parquet(written, tmp_path / "x.parquet")
    assert (
        pq.read_table(tmp_path / "x.parquet")
        .drop_columns(["real"])
        .equals(written.drop_columns(["real"]))
    )


def test_what_parquet_cannot_hold_is_said(table, tmp_path):
    with pytest.raises(UsageError, match=r"^Parquet cannot hold a column of the query \("):
        write_parquet(table.select(["months"]), tmp_path / "x.parquet")
