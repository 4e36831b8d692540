"""Whatever operators and kernels there are: what is counted is what a search finds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import work_oracle
from tests.traces import kernel, launch, op, span, write
from traceparse import ordered
from traceparse.ingest import read_trace
from traceparse.rank import digest, public_tables, tree

DIMS = ([[2, 3], [3, 5]], [[4, 4], [4, 4]])
ENGINES = ("AddmmBackward0", "CheckpointFunctionBackward")


def mm(ts, dur, *, dims=DIMS[0], **args):
    types = {"Input type": ["c10::BFloat16"] * 2, "Concrete Inputs": ["", ""]}
    return op(ts, dur, "aten::mm", **{"Input Dims": dims}, **types, **args)


def engine(ts, dur, node=ENGINES[0], **args):
    return op(ts, dur, f"autograd::engine::evaluate_function: {node}", **args)


def found_in(path: Path):
    """Return what the digest says, in the reference's words; times in us."""
    made = digest(read_trace(path))
    (device,) = made.devices
    (step,) = device.steps
    if step.work is None:
        return None
    return {
        "flop": sum(work.flop for work in step.work.by_dtype),
        "recompute_flop": sum(work.recompute_flop for work in step.work.by_dtype),
        "rows": {
            (row.shapes, row.is_recompute): (row.count, row.time_ns // 1000)
            for row in made.operators
        },
        "unattributed": device.kernels.unattributed_count,
        "counted_ns": (step.work.counted_ns or 0) // 1000,
    }


def wanted(events):
    truth = work_oracle.summary(events)
    rows = {
        (", ".join("x".join(map(str, sizes)) for sizes in json.loads(dims)), again): row
        for (dims, again), row in truth["rows"].items()
    }
    return truth | {"rows": rows}


def agree(tmp_path, events):
    path = write(tmp_path / "rank0.json", events, baseTimeNanoseconds=0)
    found = found_in(path)
    assert found == wanted(events)
    return found


def test_a_name_inside_another_counts_once(tmp_path):
    events = [
        op(10, 20, "aten::matmul"),
        mm(11, 18),
        mm(12, 10),
        launch(13, correlation=1),
        launch(14, correlation=2),
        kernel(50, 5, correlation=1),
        kernel(53, 7, "splitKreduce", correlation=2),
    ]
    found = agree(tmp_path, events)
    assert found["flop"] == 2 * 2 * 3 * 5
    assert found["rows"] == {("2x3, 3x5", False): (1, 12)}
    assert found["counted_ns"] == 10


def test_around_a_counted_one_nothing_counts_and_inside_all_is_its(tmp_path):
    events = [
        mm(10, 20, dims=DIMS[1]),
        mm(11, 5),
        launch(12, correlation=1),
        op(20, 5, "aten::add_"),  # in the outer one only, which does not count
        launch(21, correlation=2),
        mm(40, 20),
        op(41, 5, "aten::copy_"),
        launch(42, correlation=3),
        *(kernel(100 + 10 * n, n, correlation=n) for n in (1, 2, 3)),
    ]
    found = agree(tmp_path, events)
    assert found["rows"] == {("2x3, 3x5", False): (2, 4)}


def test_only_the_innermost_of_three_that_own_events_counts(tmp_path):
    events = [
        mm(10, 30),
        mm(11, 20),  # owns nothing itself
        mm(12, 5, dims=DIMS[1]),
        launch(13, correlation=1),
        launch(35, correlation=2),
        kernel(50, 5, correlation=1),
        kernel(60, 5, correlation=2),
    ]
    assert agree(tmp_path, events)["rows"] == {("4x4, 4x4", False): (1, 5)}


def test_an_operator_that_is_not_counted_owns_kernels_too(tmp_path):
    events = [
        mm(1, 1),
        op(10, 9, "aten::relu"),
        op(11, 5, "aten::clamp_min"),
        launch(12, correlation=1),
        launch(20, correlation=2),
        kernel(50, 5, correlation=1),
        kernel(60, 5, correlation=2),
    ]
    assert agree(tmp_path, events)["unattributed"] == 1


def test_without_a_device_event_an_operator_did_not_run(tmp_path):
    events = [mm(10, 9), mm(20, 9), launch(21, correlation=1), kernel(50, 5, correlation=1)]
    assert agree(tmp_path, events)["rows"] == {("2x3, 3x5", False): (1, 5)}


def test_a_copy_is_no_work(tmp_path):
    """As the memset before a product whose kernel is missing: it would take no time at all."""
    copy = span("gpu_memcpy", "Memcpy DtoD", 60, 9, device=0, stream=7, correlation=2)
    launches = [launch(11, correlation=2), launch(31, correlation=1)]
    events = [mm(10, 9), mm(30, 9), *launches, copy, kernel(50, 5, correlation=1)]
    found = agree(tmp_path, events)
    assert found["rows"] == {("2x3, 3x5", False): (1, 5)}


def test_what_a_graph_replays_belongs_to_no_operator(tmp_path):
    events = [
        mm(10, 9),
        launch(11, correlation=1, name="cudaGraphLaunch"),
        *(kernel(50 + 5 * n, 5, correlation=1) for n in range(3)),
    ]
    assert agree(tmp_path, events)["unattributed"] == 3


def test_without_correlation_an_external_id_shared_with_a_launch_links(tmp_path):
    """As in some traces of ROCm; operators with the same number are coincidence."""
    call = {"External id": 7}
    events = [
        mm(10, 9, **call),
        mm(30, 9, dims=DIMS[1]),
        span("cuda_runtime", "hipExtModuleLaunchKernel", 31, 1, **call),
        span("kernel", "Cijk", 60, 4, device=0, stream=0, **call),
    ]
    assert agree(tmp_path, events)["rows"] == {("4x4, 4x4", False): (1, 4)}


def test_another_thread_owns_nothing(tmp_path):
    call = launch(12, correlation=1)
    call["tid"] = 2
    events = [mm(10, 9), call, kernel(50, 5, correlation=1)]
    found = agree(tmp_path, events)
    assert (found["flop"], found["unattributed"]) == (0, 1)


FORWARD = {"Sequence number": 9, "Fwd thread id": 0}


@pytest.mark.parametrize(
    ("around", "args", "again"),
    [
        (engine(40, 30), FORWARD, True),
        (engine(40, 30), {}, False),  # backward proper
        (engine(40, 30), {"Sequence number": 9, "Fwd thread id": 1}, False),
        (engine(40, 30, ENGINES[1]), FORWARD, True),
        (engine(40, 30, "torch::_CheckpointFunctionBackward"), {}, True),
        (op(40, 30, "CheckpointFunctionBackward"), FORWARD, False),  # no node of a graph
    ],
)
def test_forward_inside_backward_repeats(tmp_path, around, args, again):
    events = [
        mm(10, 9, **FORWARD),
        launch(11, correlation=1),
        around,
        mm(45, 9, **args),
        launch(46, correlation=2),
        kernel(50, 5, correlation=1),
        kernel(60, 5, correlation=2),
    ]
    found = agree(tmp_path, events)
    assert found["flop"] == 2 * 60
    assert found["recompute_flop"] == (60 if again else 0)


def test_backward_proper_inside_a_reentrant_checkpoint_does_not_repeat(tmp_path):
    events = [
        mm(10, 9, **FORWARD),
        launch(11, correlation=1),
        engine(40, 50, ENGINES[1]),
        mm(42, 5, **FORWARD),
        launch(43, correlation=2),
        engine(60, 20),
        mm(62, 5),
        launch(63, correlation=3),
        *(kernel(100 + 10 * n, 5, correlation=n) for n in (1, 2, 3)),
    ]
    found = agree(tmp_path, events)
    assert (found["flop"], found["recompute_flop"]) == (3 * 60, 60)


def test_forward_inside_backward_without_one_to_repeat_is_said(tmp_path):
    """As in a gradient of a gradient, which runs backward's products under autograd."""
    events = [
        engine(40, 30),
        mm(45, 9, **FORWARD),
        launch(46, correlation=2),
        kernel(60, 5, correlation=2),
    ]
    path = write(tmp_path / "rank0.json", events)
    made = digest(read_trace(path))
    assert [row.recompute_flop for row in made.operators] == [0]
    (said,) = [note for note in made.notes if note.code == "recompute_unconfirmed"]
    assert said.message == (
        "1 operators run forward inside of backward, but none before does the same: they do "
        "not count as recomputed"
    )


FRAME = "torch/utils/checkpoint.py(1500): recompute_fn"


@pytest.mark.parametrize(
    ("frame", "around", "again"),
    [
        ((41, 20), (40, 30), True),
        ((41, 20), None, True),
        ((41, 2), (40, 30), False),
        ((40, 40), (42, 20), False),  # a node of the graph inside it runs backward
    ],
)
def test_pythons_stack_says_what_repeats(tmp_path, frame, around, again):
    """Without a number of autograd's, or a forward to compare it with."""
    events = [
        span("python_function", FRAME, *frame),
        *([engine(*around)] if around else []),
        mm(45, 9),
        launch(46, correlation=2),
        kernel(60, 5, correlation=2),
        launch(58, correlation=3),  # in the frame, and in no operator
        kernel(70, 5, correlation=3),
    ]
    made = digest(read_trace(write(tmp_path / "rank0.json", events)))
    assert [row.recompute_flop for row in made.operators] == [60 if again else 0]
    inside = bool(around and around[0] + around[1] > 58)
    assert made.devices[0].kernels.unattributed_count == (0 if inside else 1)


def test_what_tells_too_little_is_said_once(tmp_path):
    blind = [op(10, 20), op(11, 9), op(40, 5), op(50, 5)]  # the last launches nothing
    calls = [launch(12, correlation=1), launch(25, correlation=2), launch(41, correlation=3)]
    kernels = [kernel(100 + n, 1, correlation=n) for n in (1, 2, 3)]
    counted = [mm(70, 9), op(71, 5), launch(72, correlation=4), kernel(120, 1, correlation=4)]
    made = digest(
        read_trace(write(tmp_path / "rank0.json", [*blind, *calls, *kernels, *counted]))
    )
    (said,) = [note for note in made.notes if note.code == "work_unknown"]
    assert said.message == (
        "2 of aten::mm are not counted, so FLOP are a lower bound: no shapes were recorded: "
        "profile with record_shapes=True"
    )


@pytest.mark.parametrize("names", [("aten::bmm", "aten::mm"), ("aten::mm", "aten::bmm")])
def test_what_tells_too_little_is_said_in_one_order(tmp_path, names):
    """Not in that of the parts that a trace is read in, which depends on memory."""
    blind = [op(10 * n, 9, name) for n, name in enumerate(names, 1)]
    calls = [launch(10 * n + 1, correlation=n) for n in (1, 2)]
    kernels = [kernel(100 + n, 1, correlation=n) for n in (1, 2)]
    counted = [mm(70, 9), op(71, 5), launch(72, correlation=4), kernel(120, 1, correlation=4)]
    made = digest(
        read_trace(write(tmp_path / "rank0.json", [*blind, *calls, *kernels, *counted]))
    )
    (said,) = [note for note in made.notes if note.code == "work_unknown"]
    assert said.message.startswith("1 of aten::bmm, 1 of aten::mm are not counted")


times = st.tuples(st.integers(1, 40), st.integers(0, 20), st.integers(1, 2))
ops = st.builds(
    lambda when, kind, node, dims, args: {
        "mm": lambda: mm(when[0], when[1], dims=dims, tid=when[2], **args),
        "blind": lambda: op(when[0], when[1], tid=when[2], **args),
        "other": lambda: op(when[0], when[1], "aten::linear", tid=when[2], **args),
        "engine": lambda: engine(when[0], when[1], node, tid=when[2], **args),
    }[kind](),
    times,
    st.sampled_from(["mm", "mm", "mm", "blind", "other", "other", "engine"]),
    st.sampled_from(ENGINES),
    st.sampled_from(DIMS),
    st.sampled_from([{}, {}, FORWARD, {"Sequence number": 3, "Fwd thread id": 1}]),
)
calls = st.builds(
    lambda ts, tid, key, at, name: span("cuda_runtime", name, ts, 1, tid=tid, **{key: at}),
    st.integers(1, 45),
    st.integers(1, 2),
    st.sampled_from(["correlation", "correlation", "External id"]),
    st.integers(1, 6),
    st.sampled_from(["cudaLaunchKernel"] * 5 + ["hipGraphLaunch"]),
)
kernels = st.builds(
    lambda ts, dur, key, at, cat: span(cat, "k", ts, dur, device=0, stream=7, **{key: at}),
    st.integers(50, 90),
    st.integers(0, 9),
    st.sampled_from(["correlation", "correlation", "External id"]),
    st.integers(1, 6),
    st.sampled_from(["kernel"] * 4 + ["gpu_memcpy"]),
)


@settings(max_examples=300)
@given(
    st.lists(ops, max_size=12),
    st.lists(calls, max_size=10),
    st.lists(kernels, min_size=1, max_size=8),
    st.sampled_from([2, 3, 5, 1 << 16]),
)
def test_any_trace_agrees_with_the_reference(tmp_path_factory, ops, calls, kernels, run):
    """However little is in memory at a time."""
    launched = [(call["ts"], *call["args"].items()) for call in calls]
    assume(len(launched) == len(set(launched)))  # of two at once, either may have launched
    events = [mm(1, 1, tid=9), *ops, *calls, *kernels]  # shapes are known in any case
    path = write(tmp_path_factory.mktemp("any") / "rank0.json", events, baseTimeNanoseconds=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_RUN", run)
        patch.setattr(ordered, "_LEAST", 1)
        found = found_in(path)
    assert found == wanted(events)


def test_rows_that_stay_open_are_bounded(tmp_path, monkeypatch):
    """No calls nest as deep as a file may claim; what is innermost is kept."""
    monkeypatch.setattr(ordered, "_RUN", 4)
    monkeypatch.setattr(ordered, "_LEAST", 1)
    monkeypatch.setattr(tree, "_MOST_OPEN", 3)
    deep = [op(n, 100, "aten::linear") for n in range(1, 20)]
    events = [*deep, mm(30, 9), launch(31, correlation=1), kernel(200, 5, correlation=1)]
    found = found_in(write(tmp_path / "rank0.json", events))
    assert found is not None
    assert found["rows"] == {("2x3, 3x5", False): (1, 5)}


def test_tables_say_who_owns_a_kernel_and_its_work_once(tmp_path):
    events = [
        op(5, 40, "aten::linear", **{"Input Dims": [[2, 3], [5, 3]]}),
        mm(10, 9),
        launch(11, correlation=1),
        launch(12, correlation=2),
        launch(25, correlation=3),
        kernel(100, 5, correlation=1),
        kernel(90, 5, correlation=2),
        kernel(110, 5, correlation=3),
        kernel(120, 5, correlation=4),
    ]
    tables = public_tables(read_trace(write(tmp_path / "rank0.json", events)))
    columns = ["op", "shapes", "dtype", "flop", "bytes"]
    rows = [tuple(row.values()) for row in tables["kernels"].select(columns).to_pylist()]
    work = (60, 2 * (6 + 15 + 10))
    assert rows == [
        ("aten::mm", "2x3, 3x5", "bf16", *work),
        ("aten::mm", "2x3, 3x5", "bf16", None, None),
        ("aten::linear", "2x3, 5x3", None, None, None),
        (None, None, None, None, None),
    ]
