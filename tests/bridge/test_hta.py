"""HTA's frames of small traces, worked out by hand; which HTA is there; what is refused."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from importlib import metadata

import pytest

import traceparse
from tests.traces import document, job, kernel, launch, op, span, step, write
from traceparse.bridge.hta import ANALYSES, Hta, installed, results, with_hta
from traceparse.errors import InputError, MissingExtraError, UsageError

pytest.importorskip("hta")
pytestmark = pytest.mark.hta


def frame_of(path, rank=0, **options):
    analysis = traceparse.to_hta(traceparse.read(path), **options)
    frame = analysis.t.get_trace(rank).sort_index()
    names = analysis.t.symbol_table.get_sym_table()
    return analysis, frame.assign(name=[names[number] for number in frame["name"]])


def two_steps():
    """Two steps of one launch each, the second launched on stream 0."""
    return [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 1},
        step(3, 100, 50),
        launch(110, correlation=5),
        step(4, 200, 50),
        launch(210, correlation=6),
        op(220, 5),
        kernel(120, 20, correlation=5),
        kernel(215, 10, correlation=6, stream=0),
        span("cuda_sync", "Stream Sync", 230, 5, stream=7, correlation=9, wait_on_stream=7),
        span("gpu_user_annotation", "part", 120, 20, pid=0, tid=7, stream=7),
        span("python_function", "train.py(3): main", 100, 150),
        {"ph": "i", "name": "mark", "pid": 1, "tid": 1, "ts": 300, "s": "g"},
    ]


def test_every_event_that_lasted_is_there_at_its_place_in_the_file(tmp_path):
    _, frame = frame_of(
        write(tmp_path / "t.json", two_steps(), distributedInfo=job(0)),
        include_last_profiler_step=True,
    )
    assert set(frame.index) == {1, 2, 3, 4, 5, 6, 7, 9, 10}
    assert frame.index.tolist() == frame["index"].tolist()
    assert frame.loc[10, "name"] == "train.py(3): main"


def test_launches_and_their_kernels_name_each_other(tmp_path):
    _, frame = frame_of(
        write(tmp_path / "t.json", two_steps(), distributedInfo=job(0)),
        include_last_profiler_step=True,
    )
    assert frame["index_correlation"][[2, 6, 4, 7]].tolist() == [6, 2, 7, 4]
    assert frame["index_correlation"][[1, 5, 9]].tolist() == [-1, -1, -1]


def test_steps_are_those_of_the_host_and_kernels_have_their_launchs(tmp_path):
    _, frame = frame_of(
        write(tmp_path / "t.json", two_steps(), distributedInfo=job(0)),
        include_last_profiler_step=True,
    )
    assert frame["iteration"][[1, 2, 3, 4, 5, 6]].tolist() == [3, 3, 4, 4, 4, 3]
    assert frame["iteration"][[7]].isna().all()  # as HTA leaves stream 0


def test_what_the_last_step_launched_is_left_out_unless_wanted(tmp_path):
    path = write(tmp_path / "t.json", two_steps(), distributedInfo=job(0))
    _, frame = frame_of(path)
    assert 6 in frame.index
    assert 7 not in frame.index
    assert 7 in frame_of(path, include_last_profiler_step=True)[1].index


def test_times_with_fractions_shrink_to_whole_microseconds(tmp_path):
    events = [op(10.0, 5.0), op(20.001, 4.998), op(30.999, 2.002)]
    _, frame = frame_of(write(tmp_path / "t.json", events))
    # up, and down: 10..15, 21..24 (of 24.999), 31..33 (of 33.001)
    assert frame["ts"].tolist() == [0, 11, 21]
    assert frame["dur"].tolist() == [5, 3, 2]


def test_times_in_whole_microseconds_stay_as_they_are(tmp_path):
    analysis, frame = frame_of(write(tmp_path / "t.json", [op(10, 5), op(21, 4.5)]))
    assert frame["ts"].tolist() == [0, 11]
    assert frame["dur"].tolist() == [5, 4.5]
    assert analysis.t.min_ts == 10


def test_ranks_share_one_table_of_symbols_and_one_origin(tmp_path):
    for rank, name in enumerate(("aten::mm", "aten::add")):
        events = [op(100 * (rank + 1), 5, name), op(900, 5, "aten::sum")]
        write(tmp_path / f"rank{rank}.json", events, distributedInfo=job(rank, 2))
    analysis, frame = frame_of(tmp_path)
    assert analysis.t.get_ranks() == [0, 1]
    names = analysis.t.symbol_table.get_sym_table()
    assert sorted(names) == ["aten::add", "aten::mm", "aten::sum", "cpu_op"]
    other = analysis.t.get_trace(1)
    assert frame["ts"].tolist() == [0, 800]
    assert other["ts"].tolist() == [100, 800]
    assert names[other["name"].iloc[1]] == frame["name"].iloc[1] == "aten::sum"


def test_what_hta_changes_does_not_reach_the_run(tmp_path):
    run = traceparse.read(write(tmp_path / "t.json", two_steps(), distributedInfo=job(0)))
    before = dict(run.tables)
    frame = traceparse.to_hta(run).t.get_trace(0)
    frame.loc[:, "ts"] = -1
    assert all(run.tables[name].equals(table) for name, table in before.items())
    assert (traceparse.to_hta(run).t.get_trace(0)["ts"] >= 0).all()


def test_a_report_will_do(tmp_path):
    path = write(tmp_path / "t.json", two_steps(), distributedInfo=job(0))
    frame = traceparse.to_hta(traceparse.analyze(path)).t.get_trace(0)
    assert frame.equals(traceparse.to_hta(traceparse.read(path)).t.get_trace(0))


def test_counters_of_cupti_are_columns(tmp_path):
    counted = span("cuda_profiler_range", "gemm", 10, 5, smsp__cycles=42)
    _, frame = frame_of(write(tmp_path / "t.json", [op(9, 9), counted]))
    assert frame["smsp__cycles"].tolist() == [-1, 42]


def test_the_second_trace_of_a_file_is_read_where_it_stands(tmp_path):
    path = tmp_path / "two.json"
    path.write_text(
        "\n".join(
            json.dumps(document([op(10, 5, name)], distributedInfo=job(rank, 2)))
            for rank, name in enumerate(("first", "second"))
        )
    )
    assert frame_of(path)[1]["name"].tolist() == ["first"]
    assert frame_of(path, rank=1)[1]["name"].tolist() == ["second"]


def test_arguments_that_are_odd_count_as_absent_alone(tmp_path):
    events = [op(10, 5), kernel(20, 5, correlation=1), kernel(30, 5, correlation=2)]
    events[1]["args"] = [1, 2]
    events[2]["args"]["stream"] = "default"
    _, frame = frame_of(write(tmp_path / "t.json", events))
    assert frame["stream"].tolist() == [-1, -1, -1]
    assert frame["correlation"].tolist() == [-1, -1, 2]


def test_a_rank_that_is_not_known_is_asked_for_among_several(tmp_path):
    for name in ("a.json", "b.json"):
        write(tmp_path / name, [op(10, 5)])
    with pytest.raises(UsageError, match=r"a\.json: HTA needs its rank"):
        traceparse.to_hta(traceparse.read(tmp_path))


def test_two_traces_of_a_rank_are_refused(tmp_path):
    for name in ("a.json", "b.json"):
        write(tmp_path / name, [op(10, 5)], distributedInfo=job(4, 8))
    with pytest.raises(UsageError, match=r"one trace a rank, and .*a\.json is of rank 4 too"):
        traceparse.to_hta(traceparse.read(tmp_path))


def test_a_file_that_changed_is_refused(tmp_path):
    path = write(tmp_path / "t.json", [op(10, 5)])
    run = traceparse.read(path)
    write(path, [op(10, 5), op(20, 5)])
    with pytest.raises(InputError, match="has changed since it was read; read it again"):
        traceparse.to_hta(run)


def versions(monkeypatch, **known):
    def version(name):
        if name not in known:
            raise metadata.PackageNotFoundError(name)
        return known[name]

    monkeypatch.setattr(metadata, "version", version)


def test_both_distributions_at_once_are_refused(monkeypatch):
    versions(monkeypatch, traceinsight="0.6.1", HolisticTraceAnalysis="0.5.0", pandas="2.3.3")
    with pytest.raises(UsageError, match="are both installed, and each owns the package hta"):
        installed()


def test_none_is_a_missing_extra(monkeypatch):
    versions(monkeypatch, pandas="2.3.3")
    with pytest.raises(MissingExtraError, match=r"pip install 'traceparse\[hta\]'"):
        installed()


@pytest.mark.parametrize(
    ("name", "version", "pandas", "lacks"),
    [
        ("traceinsight", "0.6.1", "3.1.1", ()),
        ("HolisticTraceAnalysis", "0.5.0", "2.3.3", ()),
        ("HolisticTraceAnalysis", "0.5.0", "3.0.0", ("critical_path", "call_graph")),
    ],
)
def test_what_a_version_can_do_is_said(monkeypatch, name, version, pandas, lacks):
    versions(monkeypatch, **{name: version, "pandas": pandas})
    hta = installed()
    assert (hta.distribution, hta.version) == (name, version)
    assert tuple(hta.unavailable) == lacks
    assert set(hta.available) == set(ANALYSES) - set(lacks)
    assert all("needs pandas < 3" in reason for reason in hta.unavailable.values())


def test_the_report_has_queue_lengths(tmp_path):
    """Worked out by hand: two launches wait at once, then their kernels run one by one."""
    events = [
        launch(100, correlation=5),
        launch(102, correlation=6),
        kernel(110, 20, correlation=5),
        kernel(130, 30, correlation=6),
    ]
    report = with_hta(traceparse.analyze(write(tmp_path / "t.json", events)))
    assert report.hta is not None
    assert report.hta["queue_length"] == [
        {"rank": 0, "stream": 7, "num_changes": 4, "mean": 1.0, "median": 1.0, "max": 2}
    ]


def test_the_report_has_the_critical_path_of_the_second_step(tmp_path):
    """Worked out by hand: 8 us from the launch to its kernel, which runs for 40."""
    events = [
        *(step(3, 90, 50), launch(100, correlation=5), kernel(110, 20, correlation=5)),
        *(step(4, 190, 60), launch(200, correlation=6), kernel(208, 40, correlation=6)),
        *(step(5, 290, 50), launch(300, correlation=7), kernel(310, 20, correlation=7)),
    ]
    report = with_hta(traceparse.analyze(write(tmp_path / "t.json", events)))
    assert report.hta is not None
    (path,) = report.hta["critical_path"]
    assert (path["rank"], path["step"]) == (0, 4)
    assert path["bound_by_ns"] == {
        "gpu_compute_bound": 40_000,
        "gpu_kernel_launch_overhead": 8_000,
    }
    assert path["duration_ns"] == 48_000


def test_what_hta_cannot_is_null_and_a_note(tmp_path):
    report = with_hta(traceparse.analyze(write(tmp_path / "t.json", [op(10, 5)])))
    assert report.hta is not None
    assert report.hta["queue_length"] is report.hta["critical_path"] is None
    said = [note.message for note in report.notes if note.code == "hta_unavailable"]
    assert said[0] == "HTA's queue length: no launch in the trace has a device event"
    assert said[1].startswith("HTA's critical path could not be computed: it raised ")


def test_what_the_bridge_refuses_is_null_and_a_note(tmp_path):
    for name in ("a.json", "b.json"):
        write(tmp_path / name, [op(10, 5)])
    report = with_hta(traceparse.analyze(tmp_path))
    assert report.hta is not None
    assert report.hta["queue_length"] is report.hta["critical_path"] is None
    (note,) = [note for note in report.notes if note.code == "hta_unavailable"]
    assert "HTA needs its rank" in note.message


def test_what_a_version_cannot_is_null_and_its_reason(tmp_path, monkeypatch):
    old = Hta("HolisticTraceAnalysis", "0.5.0", {"critical_path": "it is too old"})
    monkeypatch.setattr(results, "installed", lambda: replace(old, version="0.6.0"))
    report = with_hta(traceparse.analyze(write(tmp_path / "t.json", two_steps())))
    assert report.hta is not None
    assert report.hta["critical_path"] is None
    assert report.hta["queue_length"]
    assert "HTA's critical path: it is too old" in [note.message for note in report.notes]


def test_of_many_ranks_the_first_are_asked_and_a_note_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "MOST_RANKS", 1)
    for rank in range(2):
        events = [launch(100, correlation=5), kernel(110, 20, correlation=5)]
        write(tmp_path / f"{rank}.json", events, distributedInfo=job(rank, 2))
    report = with_hta(traceparse.analyze(tmp_path))
    assert report.hta is not None
    assert [row["rank"] for row in report.hta["queue_length"]] == [0]
    assert "HTA was asked about the first 1 of 2 ranks" in [n.message for n in report.notes]


def test_hta_says_nothing_meanwhile(tmp_path, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with_hta(traceparse.analyze(write(tmp_path / "t.json", two_steps())))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_the_name_is_lazy_and_public():
    assert "to_hta" in traceparse.__all__
    assert traceparse.to_hta.__module__ == "traceparse.bridge.hta.trace"
