"""Device events by name, operator and shapes: by hand, by search, and beyond all bounds."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rank.test_attribute import mm
from tests.traces import annotation, copy, kernel, launch, op, write
from traceparse import ordered
from traceparse.ingest import read_trace
from traceparse.rank import KernelWork, digest, kernel_groups

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
# of a product of 2x3 by 3x5 in bf16: 6 + 15 + 10 elements of 2 bytes
PRODUCT_BYTES = 62


def kernels(path) -> tuple[KernelWork, ...]:
    return digest(read_trace(path)).kernels


def told(tmp_path, events):
    """Return rows as tuples, times in us, in the order of the digest."""
    return [
        (one.name, one.op, one.shapes, one.kind, one.is_counted, one.count, one.time_ns / 1000)
        for one in kernels(write(tmp_path / "rank0.json", events, baseTimeNanoseconds=0))
    ]


def add(ts, last, size=8, kind="float"):
    types = {"Input Dims": [[size], [size], []], "Input type": [kind, kind, "Scalar"]}
    return op(ts, last, "aten::add", **types)


def test_all_kinds_of_device_events_by_hand(tmp_path):
    events = [
        op(5, 30, "aten::linear"),  # around both, owner of none
        mm(10, 9),
        launch(11, correlation=1),
        kernel(100, 50, "gemm", correlation=1),
        mm(20, 9),
        launch(21, correlation=2),
        kernel(160, 40, "gemm", correlation=2),
        add(40, 9),
        launch(41, correlation=3),
        kernel(210, 7, "add", correlation=3),
        launch(60, correlation=4),  # of no operator
        kernel(220, 6, "add", correlation=4),
        copy(230, 5),  # nothing is known of its launch
        op(70, 9, "record_param_comms"),
        launch(71, correlation=5),
        kernel(240, 3, REDUCE, correlation=5),
        launch(80, correlation=6, name="cudaGraphLaunch"),
        *(kernel(250 + n, 1, "gemm", correlation=6) for n in range(2)),
    ]
    assert told(tmp_path, events) == [
        ("gemm", "aten::mm", "2x3, 3x5", "compute", True, 2, 90),
        ("add", "aten::add", "8, 8", "compute", False, 1, 7),
        ("add", None, None, "compute", False, 1, 6),
        ("Memcpy HtoD", None, None, "copy", False, 1, 5),
        (REDUCE, "record_param_comms", None, "comm", False, 1, 3),
        ("gemm", None, None, "compute", False, 2, 2),
    ]


def test_an_operator_deep_inside_of_others_launches(tmp_path):
    """Also where nothing else needs it: no communication, no formula."""
    events = [
        op(1, 90, "autograd::engine::evaluate_function: AddBackward0"),
        op(2, 80, "AddBackward0"),
        op(3, 70, "aten::to"),
        add(10, 9),
        launch(11, correlation=1),
        kernel(100, 5, "add", correlation=1),
    ]
    assert [one[:3] for one in told(tmp_path, events)] == [("add", "aten::add", "8, 8")]


def test_least_bytes_are_those_of_runs_with_one_kernel(tmp_path):
    events = [
        mm(10, 9),
        launch(11, correlation=1),
        kernel(100, 5, "gemm", correlation=1),
        mm(20, 9),  # split: nobody knows which of both reads what
        launch(21, correlation=2),
        launch(22, correlation=3),
        kernel(110, 5, "split", correlation=2),
        kernel(120, 5, "reduce", correlation=3),
        *(one for n in (4, 5) for one in (add(10 * n, 9), launch(10 * n + 1, correlation=n))),
        *(kernel(100 + 10 * n, 5, "add", correlation=n) for n in (4, 5)),
        add(60, 9, kind="double"),
        launch(61, correlation=6),
        kernel(160, 5, "add", correlation=6),
        op(70, 9, "aten::embedding", **{"Input Dims": [[9, 9], [1]], "Input type": ["float"]}),
        launch(71, correlation=7),
        kernel(170, 5, "look up", correlation=7),
    ]
    path = write(tmp_path / "rank0.json", events, baseTimeNanoseconds=0)
    found = {one.name: (one.count, one.least_bytes) for one in kernels(path)}
    assert found == {
        "gemm": (1, PRODUCT_BYTES),
        "split": (1, None),
        "reduce": (1, None),
        "add": (3, 2 * 64 + 128),
        "look up": (1, None),
    }


def test_a_memset_before_a_kernel_leaves_it_alone(tmp_path):
    clear = copy(90, 2, correlation=2)
    events = [add(10, 9), launch(11, correlation=2), launch(12, correlation=1), clear]
    events.append(kernel(100, 5, "add", correlation=1))
    path = write(tmp_path / "rank0.json", events, baseTimeNanoseconds=0)
    found = {(one.name, one.op): one.least_bytes for one in kernels(path)}
    assert found == {("add", "aten::add"): 64, ("Memcpy HtoD", "aten::add"): None}


def test_operators_of_the_host_take_what_others_inside_them_do_not(tmp_path):
    events = [
        op(100, 50, "aten::linear"),
        mm(110, 20),
        op(112, 5, "aten::empty"),
        op(140, 5, "c10d::allreduce_"),  # only launches
        mm(200, 10),
        op(130, 9, "aten::empty", tid=2),  # on another thread: inside of nothing
        annotation(300, 30, "gloo:all_reduce", tid=3),
        annotation(10, 900, "mine"),
    ]
    assert told(tmp_path, events) == [
        ("gloo:all_reduce", None, None, "comm", False, 1, 30),
        ("aten::linear", "aten::linear", None, "compute", False, 1, 25),
        ("aten::mm", "aten::mm", "2x3, 3x5", "compute", True, 2, 25),
        ("aten::empty", "aten::empty", None, "compute", False, 2, 14),
    ]


def test_more_groups_than_are_told_apart_are_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_groups, "MOST_GROUPS", 2)
    events = [kernel(100 * n, n, f"k{n}") for n in range(1, 6)]
    events += [kernel(1000, 1, REDUCE), copy(1100, 2)]
    assert told(tmp_path, events) == [
        ("k5", None, None, "compute", False, 1, 5),
        ("k4", None, None, "compute", False, 1, 4),
        (None, None, None, "compute", False, 3, 6),
        (None, None, None, "comm", False, 1, 1),
        (None, None, None, "copy", False, 1, 2),
    ]


def test_groups_that_cannot_be_held_are_not_lost(tmp_path, monkeypatch):
    """Small ones become the rest while events pass by, and begin anew."""
    monkeypatch.setattr(kernel_groups, "_MOST_HELD", 4)
    monkeypatch.setattr(ordered, "_RUN", 3)
    monkeypatch.setattr(ordered, "_LEAST", 1)
    events = [kernel(100 * n, 1 + n % 7, f"k{n}", correlation=n) for n in range(1, 41)]
    events.append(kernel(9000, 900, "large"))
    found = kernels(write(tmp_path / "rank0.json", events))
    assert sum(one.count for one in found) == 41
    assert sum(one.time_ns for one in found) == 1000 * sum(one["dur"] for one in events)
    assert len(found) <= 5
    assert found[0].name == "large"
    assert found[-1].name is None


def test_names_of_any_length_are_cut(tmp_path):
    events = [kernel(1, 1, "k" * 9999), add(10, 9), launch(11, correlation=1)]
    events.append(kernel(100, 5, "a", correlation=1))
    assert [len(one.name or "") for one in kernels(write(tmp_path / "rank0.json", events))] == [
        1,
        512,
    ]


runs = st.tuples(
    st.sampled_from(["gemm", "add", REDUCE]),
    st.sampled_from(["aten::add", "aten::mul", None]),
    st.integers(1, 3),  # size
    st.integers(0, 9),  # us
    st.sampled_from(["launched", "unlinked", "graph", "loose"]),
)


def events_of(runs):
    """Return events, and what rows they make: by name, operator and shapes, in us."""
    events = []
    expected: dict[tuple[str | None, ...], Counter[str]] = defaultdict(Counter)
    for number, (name, operator, size, last, how) in enumerate(runs, 1):
        ts = 20 * number
        is_owned = operator is not None and how == "launched"
        if operator:
            events.append(op(ts, 9, "aten::to"))
            events.append(op(ts + 1, 5, operator, **{"Input Dims": [[size]]}))
        if how != "unlinked":
            call = "cudaGraphLaunch" if how == "graph" else "cudaLaunchKernel"
            events.append(launch(ts + 2, correlation=number, name=call))
        correlation = 0 if how == "loose" else number
        events.append(kernel(5000 + ts, last, name, correlation=correlation))
        key = (name, operator, str(size)) if is_owned else (name, None, None)
        expected[key].update(count=1, time=last)
    return events, {key: (one["count"], one["time"]) for key, one in expected.items()}


@settings(max_examples=100)
@given(st.lists(runs, min_size=1, max_size=12), st.integers(2, 9))
def test_it_agrees_with_a_count(tmp_path_factory, runs, rows):
    events, expected = events_of(runs)
    path = write(tmp_path_factory.mktemp("any") / "rank0.json", events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_RUN", rows)
        patch.setattr(ordered, "_LEAST", 1)
        found = kernels(path)
    assert {
        (one.name, one.op, one.shapes): (one.count, one.time_ns // 1000) for one in found
    } == expected
    assert len(found) == len(expected)


spans = st.tuples(st.integers(0, 40), st.integers(1, 20), st.sampled_from("ab"))


def nested(spans):
    """Return those that lie in one another or apart, in order: what a thread can do."""
    kept: list[tuple[int, int, str]] = []
    for start, last, name in sorted(spans, key=lambda one: (one[0], -one[1])):
        if all(start >= s + w or start + last <= s + w for s, w, _ in kept):
            kept.append((start, last, name))
    return kept


@settings(max_examples=100)
@given(st.lists(spans, min_size=1, max_size=10), st.integers(2, 9))
def test_time_of_the_host_is_that_of_the_innermost_operator(tmp_path_factory, spans, rows):
    spans = nested(spans)
    events = [op(100 + start, last, f"aten::{name}") for start, last, name in spans]
    path = write(tmp_path_factory.mktemp("any") / "rank0.json", events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_RUN", rows)
        patch.setattr(ordered, "_LEAST", 1)
        found = kernels(path)
    expected: Counter[str] = Counter()
    for at in range(60):  # the last of those around an instant that began is innermost
        around = [name for start, last, name in spans if start <= at < start + last]
        expected.update(around[-1:])
    times = {(one.name or "")[-1:]: one.time_ns // 1000 for one in found if one.time_ns}
    assert times == dict(expected)
    assert sum(one.count for one in found) == len(spans)
