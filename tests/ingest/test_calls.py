from __future__ import annotations

import json

import pytest

from tests.traces import annotation, kernel, op, write
from traceparse.ingest import is_built, read_trace
from traceparse.ingest.calls import call_args

SIZES = {"dtype": "BFloat16", "In msg nelems": 25136, "Out msg nelems": 201088, "Group size": 8}
NAMED = {"Collective name": "_allgather_base", "Comms Id": 2**64 - 1, "Seq": 3}


@pytest.fixture(params=["native", "msgspec"] if is_built() else ["msgspec"], autouse=True)
def _engine(request, monkeypatch):
    monkeypatch.setenv("TRACEPARSE_ENGINE", request.param)


def _rows(tmp_path, events):
    table = read_trace(write(tmp_path / "rank0.json", events)).tables["collective_args"]
    return [tuple(row.values()) for row in table.to_pylist()]


def test_arguments_of_collectives_say_whose_they_are(tmp_path):
    events = [
        op(1, 5),
        op(2, 1, "record_param_comms", **SIZES, **{"Ev Idx": 7}),
        kernel(10, 5),
        kernel(0, 5),  # without a time it is in no table
        kernel(11, 5, "ncclDevKernel_AllGather_RING_LL", **NAMED),
        annotation(3, 1, "nccl:all_gather", **SIZES),  # in a table that has no calls
    ]
    rows = _rows(tmp_path, events)
    assert [row for row in rows if row[0] == "ops"] == [
        ("ops", 1, "Group size", "8"),
        ("ops", 1, "In msg nelems", "25136"),
        ("ops", 1, "Out msg nelems", "201088"),
        ("ops", 1, "dtype", "BFloat16"),
    ]
    assert [row for row in rows if row[0] != "ops"] == [
        ("device_events", 1, "Collective name", "_allgather_base"),
        ("device_events", 1, "Comms Id", str(2**64 - 1)),
        ("device_events", 1, "Seq", "3"),
    ]


def test_rows_are_counted_over_all_of_a_file(tmp_path):
    events = [op(n, 1, "record_param_comms", **{"In msg size": n}) for n in range(1, 70_001)]
    rows = _rows(tmp_path, events)
    assert rows[-1] == ("ops", 69_999, "In msg size", "70000")
    assert [row[1] for row in rows] == list(range(70_000))


def test_an_event_with_nothing_of_a_collective_has_no_row(tmp_path):
    nothing = {"In msg nelems": None, "Collective name": None, "dtype": "Float", "Rank": 1}
    assert _rows(tmp_path, [kernel(1, 1, **nothing), op(1, 1, Seq=3)]) == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"Seq": 0, "Rank": -1, "dtype": "", "Group size": 10**18}, True),
        ({"Seq": 1.5, "Rank": True, "dtype": None, "Group size": [2], "Ev Idx": 3}, False),
        ({"Comms Id": 2**64}, False),
    ],
)
def test_texts_and_whole_numbers_are_kept(given, kept):
    expected = {key: str(value) for key, value in given.items()} if kept else {}
    assert call_args(json.dumps(given).encode()) == expected


def test_what_is_no_json_gives_what_python_reads_of_it():
    assert call_args(b'{"Seq": NaN, "dtype": "a\xff"}') == {"dtype": "a\ufffd"}
    assert call_args(b'{"dtype": "\\ud800"}') == {"dtype": "?"}
    for text in (b"[1]", b"null", b'{"Seq": 1', b'{"Seq": ' + b"[" * 9999):
        assert call_args(text) == {}


def test_values_have_an_end():
    text = json.dumps({"Process Group Ranks": "1, " * 9999}).encode()
    assert call_args(text) == {"Process Group Ranks": ("1, " * 9999)[:4096]}
