from __future__ import annotations

import json
from typing import Any

import pytest

from tests.traces import annotation, kernel, launch, op, span, step
from traceparse.ingest import store
from traceparse.ingest.collect import Collector
from traceparse.ingest.decode import decode_block
from traceparse.ingest.routes import EXTRAS


def _collect(events: list[dict[str, Any]], *, extras=frozenset(), base: int = 0):
    decoded = decode_block(json.dumps(events)[1:-1].encode())
    assert decoded is not None
    collector = Collector(extras)
    for event in decoded:  # each on its own: tables must not care how events arrive
        collector.add([event])
    tables = collector.finish(base)
    rows = sum(kept.num_rows for name, kept in tables.items() if name != "collective_args")
    assert rows + collector.skipped.total() == collector.events == len(events)
    return collector, {name: kept.table().to_pylist() for name, kept in tables.items()}


def test_a_kernel_keeps_what_the_contract_has():
    _, tables = _collect(
        [kernel(10, 5, "k", correlation=7, device=3, stream=2**64 - 1, **{"External id": 9})]
    )
    assert tables["device_events"] == [
        {
            "start_ns": 10_000,
            "end_ns": 15_000,
            "name": "k",
            "category": "kernel",
            "device": "3",
            "stream": 2**64 - 1,
            "correlation": 7,
            "external_id": 9,
            "collective": None,
            "copied_bytes": None,
        }
    ]


@pytest.mark.parametrize(
    ("category", "table", "label"),
    [
        ("kernel", "device_events", "kernel"),
        ("Kernel", "device_events", "kernel"),
        ("Memcpy", "device_events", "gpu_memcpy"),
        ("gpu_memset", "device_events", "gpu_memset"),
        ("mtia_ccp_events", "device_events", "mtia_ccp_events"),
        ("Runtime", "launches", "cuda_runtime"),
        ("cuda_driver", "launches", "cuda_driver"),
        ("xpu_runtime", "launches", "xpu_runtime"),
        ("Operator", "ops", "cpu_op"),
        ("User", "annotations", "user_annotation"),
        ("Trace", "annotations", "trace"),
        ("overhead", "annotations", "overhead"),
    ],
)
def test_categories_in_old_and_new_spelling(category, table, label):
    _, tables = _collect([span(category, "x", 1, 1)])
    assert [row["category"] for row in tables[table]] == [label]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"ph": "M", "name": "process_name"}, "metadata"),
        ({"ph": "s", "cat": "ac2g", "ts": 1}, "flow"),
        ({"ph": "f", "cat": "ac2g", "ts": 1}, "flow"),
        ({"ph": "i", "ts": 1}, "instant"),
        ({"ph": "C", "ts": 1}, "counter"),
        ({"ph": "B", "ts": 1}, "other_phase"),
        ({"name": "no phase"}, "no_phase"),
        ({"ph": "X", "ts": 1, "dur": 1, "pid": "Spans"}, "no_category"),
        (span("python_function", "f", 1, 1), "python_function"),
        (span("gpu_user_annotation", "ProfilerStep#1", 1, 1), "gpu_annotation"),
        (span("cuda_sync", "Stream Sync", 1, 1), "sync"),
        (span("mtia_ccp_events", "event_wait", 1, 1), "sync"),
        (span("mtia_insight", "x", 1, 1), "other_category"),
        (kernel(None, 1), "time_missing"),
        (kernel("soon", 1), "time_missing"),
        (kernel(0, 1), "time_zero"),
        (kernel(-5, 1), "time_negative"),
        (kernel(5, None), "duration_missing"),
        (kernel(5, -1), "duration_negative"),
        (kernel(4.6e15, 4.6e15), "time_too_large"),
        ({"ph": "X", "cat": "kernel", "ts": 5}, "duration_missing"),
    ],
)
def test_what_is_in_no_table_is_counted_by_reason(event, reason):
    collector, tables = _collect([event, kernel(1, 1)])
    assert collector.skipped == {reason: 1}
    assert len(tables["device_events"]) == 1


def test_step_markers_are_no_operators_in_any_category():
    _, tables = _collect([span("Operator", "ProfilerStep#3", 1, 9), op(2, 1), step(4, 10, 5)])
    assert [row["name"] for row in tables["annotations"]] == [
        "ProfilerStep#3",
        "ProfilerStep#4",
    ]
    assert [row["name"] for row in tables["ops"]] == ["aten::mm"]


def test_events_of_the_old_autograd_profiler():
    events = [
        {"ph": "X", "name": "mm", "ts": 1.5, "dur": 2, "tid": 0, "pid": "CPU functions"},
        {"ph": "X", "name": "k", "ts": 2, "dur": 2, "tid": 3, "pid": "CUDA functions"},
    ]
    _, tables = _collect(events)
    assert [row["name"] for row in tables["ops"]] == ["mm"]
    assert [(row["name"], row["device"]) for row in tables["device_events"]] == [("k", "3")]


def test_ids_that_mean_none_are_null():
    events = [
        kernel(1, 1, correlation=0, stream=-1, **{"external id": 5}),
        kernel(2, 1, correlation=2**63, stream="0x10"),
        kernel(3, 1, correlation="12", stream=2**64),
        span("kernel", "bare", 4, 1),
    ]
    _, tables = _collect(events)
    found = [(r["correlation"], r["stream"], r["external_id"]) for r in tables["device_events"]]
    assert found == [(None, None, 5), (2**63, 16, None), (12, None, None), (None, None, None)]


def test_device_is_the_argument_else_the_process_row():
    events = [
        kernel(1, 1, device=2.0, pid=9),
        span("kernel", "k", 1, 1, pid=4),
        span("kernel", "k", 1, 1, pid="GPU 0"),
        span("kernel", "k", 1, 1, pid=None),
    ]
    _, tables = _collect(events)
    assert [row["device"] for row in tables["device_events"]] == ["2", "4", "GPU 0", "unknown"]


def test_no_process_is_null():
    _, tables = _collect([op(1, 1, pid=None, tid=None)])
    assert (tables["ops"][0]["pid"], tables["ops"][0]["tid"]) == (None, None)


@pytest.mark.parametrize("extras", [frozenset(), EXTRAS])
def test_pythons_calls_that_recompute_are_marks(extras):
    mark = "torch/utils/checkpoint.py(1500): recompute_fn"
    others = ["model.py(3): recompute_fn", f"{mark}s", "torch/utils/checkpoint.py(1): backward"]
    events = [span("python_function", name, 1, 2) for name in (mark, *others)]
    collector, tables = _collect(events, extras=extras)
    (row,) = tables["annotations"]
    assert (row["name"], row["category"]) == (mark, "python_function")
    assert collector.skipped["python_function"] == (0 if extras else 3)


def test_extras_are_read_when_asked_for():
    events = [
        span("python_function", "f", 1, 2),
        {"ph": "C", "name": "mem", "pid": 5, "ts": 7, "args": {"": 12.5}},
        {"ph": "C", "name": "mem", "pid": 5, "args": {"": 12.5}},
    ]
    collector, tables = _collect(events, extras=EXTRAS)
    assert [row["name"] for row in tables["python_functions"]] == ["f"]
    assert tables["counters"] == [
        {"start_ns": 7000, "name": "mem", "pid": "5", "values": '{"": 12.5}'}
    ]
    assert collector.skipped == {"time_missing": 1}


def test_samples_that_are_all_kept_are_not_counted_as_lost():
    sample = {"ph": "C", "name": "mem", "pid": 5, "ts": 7, "args": {"": 12.5}}
    collector, _ = _collect([sample], extras=EXTRAS)
    assert collector.skipped == {}


def test_the_base_moves_every_time():
    _, tables = _collect(
        [kernel(1, 1), launch(2, correlation=1), annotation(3, 1, "a")], base=500
    )
    assert tables["device_events"][0]["start_ns"] == 1500
    assert tables["launches"][0]["end_ns"] == 3500
    assert tables["annotations"][0]["start_ns"] == 3500


def test_whole_microseconds_are_seen_in_kept_events_only():
    assert _collect([kernel(1, 1), span("python_function", "x", 1.5, 1)])[0].whole_us
    assert not _collect([kernel(1, 1), op(1.5, 1)])[0].whole_us


def test_unfinished_events_and_odd_arguments_are_counted():
    events = [
        op(1, 1, finished=False),
        op(1, 1, finished=True),
        annotation(1, 1, "a", finished=False),
        kernel(1, 1, device=[5]),
    ]
    collector, _ = _collect(events)
    assert collector.unfinished == 2
    assert collector.repaired == {"odd_type": 1}


def test_labels_have_an_end():
    _, tables = _collect(
        [op(1, 1, pid="p" * 999, tid="t" * 999), kernel(1, 1, device="d" * 999)]
    )
    (row,) = tables["ops"]
    assert (row["pid"], row["tid"]) == ("p" * 256, "t" * 256)
    assert tables["device_events"][0]["device"] == "d" * 256


def test_any_number_of_categories_goes_few_ways():
    events = [span(f"cuda_runtime{n}", "x", 1, 1) for n in range(5)]
    _, tables = _collect([*events, span("mtia_runtime", "x", 1, 1)])
    found = [row["category"] for row in tables["launches"]]
    assert found == ["other_runtime"] * 5 + ["mtia_runtime"]


@pytest.mark.parametrize("limit", ["_MOST_ROWS", "_MOST_LETTERS", "_MOST_TEXTS"])
def test_chunks_make_no_difference_but_to_memory(monkeypatch, limit):
    events = [step(1, 0, 900), *(op(10 * n + 1, 5, f"aten::{n % 3}") for n in range(9))]
    events += [kernel(20 * n + 1, 5, "k" * n, correlation=n) for n in range(9)]
    whole = _collect(events, base=7)[1]
    monkeypatch.setattr(store, limit, 3)
    assert _collect(events, base=7)[1] == whole
