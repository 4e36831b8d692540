from __future__ import annotations

from tests.traces import copy, kernel, launch, op, step, write
from traceparse.ingest import read_trace
from traceparse.rank import public_tables
from traceparse.tables import schema_of


def _tables(tmp_path, events, **options):
    return public_tables(read_trace(write(tmp_path / "rank3.json", events), **options))


def test_events_have_their_rank_step_and_kind(tmp_path):
    events = [
        step(1, 100, 100),
        step(2, 150, 100),  # overlaps: the first step stays
        launch(160, correlation=1),
        launch(220, correlation=2),
        kernel(300, 5, correlation=1),
        kernel(310, 5, "nccl", correlation=2),
        copy(320, 5, correlation=9),
        op(1, 1),
    ]
    tables = _tables(tmp_path, events)
    for name, table in tables.items():
        assert table.schema.equals(schema_of(name)), name
        assert set(table["rank"].to_pylist()) <= {3}
    found = tables["device_events"].select(["step", "kind", "dur_ns", "flop"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (1, "compute", 5000, None),
        (2, "comm", 5000, None),
        (None, "copy", 5000, None),
    ]
    assert tables["kernels"].num_rows == 2


def test_a_step_without_number_leaves_events_without_step(tmp_path):
    odd = step(1, 100, 100)
    odd["name"] = "ProfilerStep"
    tables = _tables(tmp_path, [odd, launch(110, correlation=1), kernel(120, 5, correlation=1)])
    assert tables["device_events"]["step"].to_pylist() == [None]


def test_a_host_without_devices_has_empty_device_tables(tmp_path):
    tables = _tables(tmp_path, [op(1, 1)])
    assert tables["device_events"].num_rows == 0
    assert tables["ops"].num_rows == 1
    assert "python_functions" not in tables


def test_extras_come_along(tmp_path):
    events = [op(1, 1), {"ph": "C", "name": "c", "ts": 1, "args": {"v": 1}}]
    tables = _tables(tmp_path, events, extras=frozenset({"counters"}))
    assert tables["counters"]["values"].to_pylist() == ['{"v": 1}']
