"""What a device did, cut into tasks: by hand, and against every kernel by itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces import BASE_NS, annotation, kernel, launch, op, span, step, write
from traceparse import ordered
from traceparse.ingest import read_trace
from traceparse.rank import NEVER, digest, tasks

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
TIMES = ("start_ns", "end_ns", "launched_ns", "ready_ns", "arrival_ns")


def device_of(path):
    (device,) = digest(read_trace(path)).devices
    return device


def plain(table):
    """Return rows of tasks in microseconds since the base; ``None`` for what is not known."""
    rows = table.to_pylist()
    for row in rows:
        for name in TIMES:
            at = row[name]
            row[name] = None if at == NEVER else (at - BASE_NS) // 1000
        for name in ("work_ns", "gaps_ns", "tail_ns"):
            row[name] //= 1000
    return rows


def columns(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def run(at, last, correlation, launched, name="gemm", stream=7):
    return [
        launch(launched, correlation=correlation),
        kernel(at, last, name, correlation=correlation, stream=stream),
    ]


def call(name, ts, dur=1):
    return span("cuda_runtime", name, ts, dur)


def test_kernels_that_nothing_comes_between_are_one_task(tmp_path):
    events = [
        *run(10, 5, 1, 5),
        *run(15, 5, 2, 6),  # right after it
        *run(22, 5, 3, 7),  # launched long before: nothing explains the gap of 2
        *run(40, 5, 4, 35),  # its launch arrives at 40
        *run(45, 5, 5, 36),
    ]
    found = plain(device_of(write(tmp_path / "rank0.json", events)).tasks)
    assert found == [
        {
            "start_ns": 10,
            "end_ns": 50,
            "stream": 0,
            "call": -1,
            "work_ns": 27,
            "gaps_ns": 2,
            "launched_ns": 5,
            "ready_ns": 10,
            "arrival_ns": 40,
            "tail_ns": 10,
            "waits": 0,
        }
    ]


@pytest.mark.parametrize(
    "between",
    [
        call("cudaStreamWaitEvent", 30),
        call("hipStreamWaitEvent", 30),
        call("cuStreamWaitEvent", 30),
        call("cudaStreamSynchronize", 30, 2),
        call("cuCtxSynchronize", 30, 2),
        call("cudaMemcpy", 30, 2),
    ],
    ids=lambda event: event["name"],
)
def test_what_makes_a_stream_or_the_host_wait_cuts(tmp_path, between):
    events = [*run(10, 5, 1, 5), between, *run(40, 5, 2, 35)]
    device = device_of(write(tmp_path / "rank0.json", events))
    is_wait = "WaitEvent" in between["name"]
    assert columns(plain(device.tasks), "start_ns", "waits") == [(10, 0), (40, int(is_wait))]
    assert device.syncs.num_rows == int(not is_wait)


@pytest.mark.parametrize(
    "name", ["cudaEventRecord", "cudaMemcpyAsync", "cuMemcpyDtoHAsync_v2", "cudaGetDevice"]
)
def test_what_makes_nothing_wait_does_not_cut(tmp_path, name):
    events = [*run(10, 5, 1, 5), call(name, 30), *run(40, 5, 2, 35)]
    assert device_of(write(tmp_path / "rank0.json", events)).tasks.num_rows == 1


def test_calls_streams_and_steps_cut(tmp_path):
    events = [
        step(1, 0, 50),
        step(2, 50, 50),
        *run(10, 5, 1, 5),
        *run(15, 9, 2, 6, REDUCE, stream=20),
        *run(15, 5, 3, 7),
        *run(20, 5, 4, 8, stream=9),
        *run(25, 5, 5, 9),
        *run(60, 5, 6, 55),
    ]
    found = plain(device_of(write(tmp_path / "rank0.json", events)).tasks)
    assert columns(found, "start_ns", "stream", "call") == [
        (10, 0, -1),
        (15, 2, 0),
        (15, 0, -1),
        (20, 1, -1),
        (25, 0, -1),
        (60, 0, -1),
    ]


def test_a_graph_is_cut_where_a_call_begins(tmp_path):
    launched = launch(5, correlation=1, name="cudaGraphLaunch")
    kernels = [
        kernel(10, 5, correlation=1),
        kernel(15, 5, correlation=1),
        kernel(20, 5, correlation=1),
        kernel(20, 9, REDUCE, correlation=1, stream=20),  # after the second
    ]
    found = plain(device_of(write(tmp_path / "rank0.json", [launched, *kernels])).tasks)
    assert columns(found, "start_ns", "end_ns", "call") == [
        (10, 20, -1),
        (20, 29, 0),
        (20, 25, -1),
    ]


def test_what_has_no_launch_keeps_its_place_on_its_stream(tmp_path):
    """The host was far ahead: what it launched at 6 and 7 ran long after other things."""
    events = [
        *run(10, 5, 1, 5),
        kernel(20, 5, stream=7),
        *run(30, 5, 2, 6),
        kernel(8, 2, stream=9),
        *run(12, 5, 3, 7, stream=9),
    ]
    found = plain(device_of(write(tmp_path / "rank0.json", events)).tasks)
    assert columns(found, "start_ns", "end_ns", "launched_ns", "ready_ns") == [
        (8, 10, None, None),
        (10, 35, 5, 10),
        (12, 17, 7, 12),
    ]


def test_kernels_that_overlap_on_one_stream_start_with_the_earliest(tmp_path):
    events = [
        *run(30, 5, 1, 20, stream=8),
        kernel(12, 2, correlation=2, stream=7),
        kernel(10, 9, correlation=3, stream=7),  # around the one before, which ends first
    ]
    found = plain(device_of(write(tmp_path / "rank0.json", events)).tasks)
    assert columns(found, "start_ns", "end_ns") == [(10, 19), (30, 35)]


def test_a_host_is_cut_where_calls_begin_and_where_it_may_have_waited(tmp_path):
    events = [
        step(1, 0, 100),
        op(2, 8),
        op(12, 8),
        annotation(15, 30, "gloo:all_reduce", tid=2),
        op(22, 8),
        op(50, 10),  # the call ended at 45, while nothing was done
        annotation(55, 3, "gloo:all_reduce", tid=2),  # ends inside of it
        op(62, 8),
    ]
    found = plain(device_of(write(tmp_path / "rank0.json", events)).tasks)
    assert columns(found, "start_ns", "end_ns", "stream", "call", "waits") == [
        (2, 20, 0, -1, 0),
        (15, 45, 1, 0, 0),
        (22, 30, 0, -1, 0),
        (50, 60, 0, -1, 1),
        (55, 58, 1, 1, 0),
        (62, 70, 0, -1, 0),
    ]


@pytest.mark.parametrize("most", ["MOST_TASKS", "_MOST_MARKS"])
def test_too_many_are_none(tmp_path, monkeypatch, most):
    monkeypatch.setattr(tasks, most, 2)
    marks = [call("cudaStreamWaitEvent", at) for at in (40, 41, 42)]
    events = [*run(10, 5, 1, 5), *run(20, 5, 2, 6, stream=9), *run(30, 5, 3, 7), *marks]
    path = write(tmp_path / "rank0.json", events)
    assert device_of(path).tasks.num_rows == 0


def kernels_of(draws, latency=4):
    """Run kernels one after the other, each as soon as its launch arrives."""
    launched, done, made = 1000, 0, []
    for number, (pause, last) in enumerate(draws, 1):
        launched += pause
        start = max(done, launched + latency)
        done = start + last
        made.append((launched, start, last, number))
    return made


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=40),
    st.integers(0, 300),
    st.integers(1, 7),
)
def test_a_task_ends_as_its_kernels_would(tmp_path_factory, draws, later, at_once):
    """Let the first begin later: kernel by kernel, and by the three numbers of its task."""
    made = kernels_of(draws)
    events = [
        one for launched, start, last, at in made for one in run(start, last, at, launched)
    ]
    path = write(tmp_path_factory.mktemp("task") / "rank0.json", events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_RUN", at_once)
        (found,) = plain(device_of(path).tasks)
    done = begin = made[0][1] + later
    for launched, _, last, _ in made:
        done = max(done, launched + 4) + last
    held_up = NEVER if found["arrival_ns"] is None else found["arrival_ns"] + found["tail_ns"]
    assert max(begin + found["work_ns"], held_up) == done
    assert found["end_ns"] == made[-1][1] + made[-1][2]
