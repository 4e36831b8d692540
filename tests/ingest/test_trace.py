from __future__ import annotations

import gzip
import json

import pytest

from tests.traces import BASE_NS, document, job, kernel, op, simple, span, write
from traceparse.errors import EmptyTraceError, InputError, NotATraceError, UsageError
from traceparse.ingest import read_trace, read_traces
from traceparse.ingest import scan as scan_module


def _codes(trace) -> list[str]:
    return [note.code for note in trace.notes]


def test_a_good_trace_has_no_notes(tmp_path):
    events, header = simple(rank=3, world_size=8)
    path = write(tmp_path / "t.json", events, **header)
    trace = read_trace(path)
    assert trace.notes == ()
    assert trace.tables["device_events"]["start_ns"].to_pylist() == [
        BASE_NS + 100_000,
        BASE_NS + 104_000,
    ]
    health = trace.health
    assert (health.rank, health.rank_source, health.layout) == (3, "distributedInfo", "compact")
    assert (health.bytes, health.events, health.gpu_events) == (path.stat().st_size, 2, 2)
    assert (health.skipped, health.truncated, health.time_resolution_ns) == ({}, False, 1000)


def test_absolute_times_need_no_base(tmp_path):
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": [kernel(1_700_000_000_000_000, 5)]}))
    trace = read_trace(path)
    assert trace.tables["device_events"]["start_ns"].to_pylist() == [BASE_NS]
    assert _codes(trace) == ["rank_from_file_name"]


def test_absolute_times_are_not_moved_by_a_base(tmp_path):
    path = write(tmp_path / "rank0.json", [kernel(1_700_000_000_000_000, 5)])
    trace = read_trace(path)
    assert trace.tables["device_events"]["start_ns"].to_pylist() == [BASE_NS]
    assert _codes(trace) == ["rank_from_file_name", "time_base_ignored"]


def test_relative_times_without_base_are_said(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps([kernel(100, 5)]))
    trace = read_trace(path, rank=4)
    assert _codes(trace) == ["time_relative"]
    assert (trace.health.rank, trace.health.rank_source, trace.health.layout) == (
        4,
        "given",
        "list",
    )


def test_a_legacy_list_is_named(tmp_path):
    path = tmp_path / "t.json"
    event = {"ph": "X", "name": "mm", "ts": 1, "dur": 2, "tid": 0, "pid": "CPU functions"}
    path.write_text(json.dumps([event]))
    assert read_trace(path).health.layout == "legacy"
    path.write_text(json.dumps([op(1, 2)]))
    assert read_trace(path).health.layout == "list"


def test_an_unknown_rank_is_said_and_a_contradicted_one_too(tmp_path):
    path = write(tmp_path / "t.json", [kernel(1, 1)])
    assert _codes(read_trace(path)) == ["rank_unknown"]
    path = write(tmp_path / "t.json", [kernel(1, 1)], distributedInfo=job(2))
    trace = read_trace(path, rank=5)
    assert trace.health.rank == 2
    assert [note.message for note in trace.notes] == [
        "--rank 5 is not used: its distributedInfo says rank 2"
    ]


def test_losses_are_said_and_what_is_left_out_by_design_is_not(tmp_path):
    events = [kernel(1, 1), kernel(0, 1), kernel(2, -1), span("python_function", "f", 1, 1)]
    trace = read_trace(write(tmp_path / "rank0.json", events))
    said = [note.message for note in trace.notes if note.code == "events_lost"]
    assert said == ["events that could not be used: 1 duration_negative, 1 time_zero"]
    assert trace.health.skipped["python_function"] == 1


@pytest.mark.parametrize("packed", [False, True])
def test_a_truncated_file_is_used_and_said(tmp_path, packed):
    text = json.dumps(document([kernel(n, 1, f"k{n * 7919}") for n in range(1, 3000)])).encode()
    data = gzip.compress(text)[:-2000] if packed else text[:-2000]
    path = tmp_path / "rank0.json"
    path.write_bytes(data)
    trace = read_trace(path)
    num = trace.tables["device_events"].num_rows
    assert 100 < num < 3000
    assert trace.health.truncated
    (note,) = [note for note in trace.notes if note.code == "truncated"]
    assert note.message.endswith(f"breaks off; the {num} events before that are used") or (
        note.message
        == f"it breaks off after byte {len(data)}; the {num} events before that are used"
    )


def test_a_damaged_header_is_said(tmp_path):
    path = tmp_path / "rank0.json"
    path.write_text('{"user": "a"b", "traceEvents": [' + json.dumps(kernel(1, 1)) + "]}")
    assert "header_damaged" in _codes(read_trace(path))


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ('{"traceEvents": []}', EmptyTraceError, r"no duration events .*\(no events at all\)"),
        ('{"traceEvents": [{"ph": "M"}]}', EmptyTraceError, r"metadata only.*1 metadata"),
        ('[{"a": 1}, {"b": 2}]', NotATraceError, "a JSON list, but not of trace events"),
        (
            '{"traceEvents": [{"ph": "M"}, {"ph',
            EmptyTraceError,
            "breaks off after byte 34 before",
        ),
    ],
)
def test_a_trace_without_spans_is_refused(tmp_path, text, error, said):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(error, match=said):
        read_trace(path)


def test_an_unknown_extra_is_refused(tmp_path):
    with pytest.raises(
        UsageError, match="no such extra table: stacks; there are counters, python"
    ):
        read_trace(tmp_path, extras=frozenset({"stacks"}))


def test_a_file_of_two_traces(tmp_path):
    path = tmp_path / "both.json"
    first = json.dumps(document([kernel(1, 1, "a")], distributedInfo=job(0, 2)))
    second = json.dumps(document([kernel(2, 1, "b")], distributedInfo=job(1, 2)), indent=2)
    path.write_text(f"{first}\n{second}\n")
    traces = read_traces(path)
    assert [(trace.health.path, trace.health.rank) for trace in traces] == [
        (str(path), 0),
        (f"{path}#2", 1),
    ]
    for trace in traces:
        assert [note.message for note in trace.notes if note.code == "several_traces"] == [
            "the file holds 2 traces, one after another: each is read on its own"
        ]
    with pytest.raises(InputError, match="holds 2 traces, not one"):
        read_trace(path)


@pytest.mark.parametrize(
    "after", ["{}", '{"traceEvents": []}', "[[1]]", "\0" * 99, '{"traceEv']
)
def test_what_follows_a_trace_and_is_none_changes_nothing(tmp_path, after):
    path = write(tmp_path / "rank0.json", [kernel(1, 1)])
    alone = read_trace(path)
    path.write_text(path.read_text() + after)
    trace = read_trace(path)
    assert trace.tables == alone.tables
    assert _codes(trace) == _codes(alone)


def test_what_follows_a_trace_and_is_no_json_is_said(tmp_path):
    path = write(tmp_path / "rank0.json", [kernel(1, 1)])
    path.write_text(path.read_text() + ' "tail of": "another rank"}]}')
    assert "trailing_data" in _codes(read_trace(path))


def test_torn_events_of_several_processes_are_refused(tmp_path):
    events = [op(1, 1, pid=7), op(2, 1, "torn"), op(3, 1, pid=8)]
    path = write(tmp_path / "rank0.json", events)
    path.write_text(path.read_text().replace('"name": "torn"', '"name" ~'))
    with pytest.raises(InputError, match=r"\(events of processes 7, 8, 1 torn events\)"):
        read_trace(path)


def test_no_file_holds_more_traces_than_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(scan_module, "_MOST_DOCUMENTS", 3)
    path = write(tmp_path / "rank0.json", [kernel(1, 1)])
    one = path.read_text()
    path.write_text(one * 3)
    assert len(read_traces(path)) == 3
    path.write_text(one * 4)
    with pytest.raises(
        InputError, match=r"more than 3 traces in one file, which is past belief"
    ):
        read_traces(path)


def test_a_file_that_several_ranks_wrote_at_once_is_refused(tmp_path):
    whole = json.dumps(document([kernel(n, 1, f"k{n}") for n in range(1, 9)]), indent=2)
    path = tmp_path / "rank0.json"
    path.write_text(whole[: len(whole) // 2] + whole)
    with pytest.raises(
        InputError, match=r"several ranks wrote this file at the same time \(2 h"
    ):
        read_trace(path)


def test_repairs_are_counted_and_said(tmp_path):
    text = json.dumps(document([kernel(1, 1, "a"), kernel(2, 1, "b"), op(3, 1)]))
    path = tmp_path / "rank0.json"
    path.write_text(text.replace('"a"', '"a "x""').replace('"b"', '"b\\x"'))
    trace = read_trace(path)
    assert trace.health.repaired == {"backslash": 1, "quote_in_string": 1}
    assert trace.tables["device_events"]["name"].to_pylist() == ['a "x"', "b/x"]
    (said,) = [note.message for note in trace.notes if note.code == "events_repaired"]
    assert said == "repaired to be read: 1 backslash, 1 quote_in_string"


def test_unfinished_events_are_counted(tmp_path):
    path = write(tmp_path / "rank0.json", [op(1, 1, finished=False), op(2, 1)])
    assert read_trace(path).unfinished == 1


def test_many_small_traces_in_one_file(tmp_path):
    """GIVEN more documents than a window holds THEN each is read."""
    one = json.dumps(document([kernel(1, 1, "x" * 30_000)], trace="y" * 30_000)) + "\n"
    path = tmp_path / "rank0.json"
    path.write_text(one * 50)
    assert len(read_traces(path)) == 50


def test_an_argument_with_more_digits_than_python_reads(tmp_path):
    odd = json.dumps(document([kernel(1, 1, stream=["DIGITS"])]))
    path = tmp_path / "rank0.json"
    path.write_text(odd.replace('"DIGITS"', "9" * 5000))
    trace = read_trace(path)
    assert trace.health.repaired == {"odd_type": 1}
    assert trace.tables["device_events"]["stream"].to_pylist() == [None]


def test_blanks_before_and_in_a_trace_cost_nothing(tmp_path):
    path = tmp_path / "rank0.json"
    path.write_text(" " * (3 << 20) + json.dumps(document([kernel(1, 1)])) + "\n" * (3 << 20))
    assert _codes(read_trace(path)) == ["rank_from_file_name"]
