from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import copy, kernel, launch, span, write
from traceparse import ordered
from traceparse.ingest import read_trace
from traceparse.rank.link import UNLINKED, Links
from traceparse.rank.rows import numbers_of
from traceparse.rank.threads import Threads

MAX = 2**64 - 1


def _kept(tmp_path, events):
    return read_trace(write(tmp_path / "rank0.json", events, baseTimeNanoseconds=0)).kept


def _links(tmp_path, events) -> Links:
    """Fill in all events; their threads count from 0."""
    kept = _kept(tmp_path, events)
    links = Links()
    num = 0
    for part in kept["device_events"].parts("correlation"):
        rows = np.arange(num, num + part.num_rows)
        links.add_events(numbers_of(part, "correlation"), row=rows)
        num += part.num_rows
    threads = Threads()
    columns = ("correlation", "start_ns", "end_ns", "name", "pid", "tid")
    for part in kept["launches"].parts(*columns):
        links.add_calls(numbers_of(part, "correlation"), part, threads.of(part))
    return links


def _linked(tmp_path, events) -> list[tuple[int | None, int, bool]]:
    """Return when each event was launched, by which thread, and whether in a graph."""
    num = sum(event["cat"] != "cuda_runtime" for event in events)
    found: list[tuple[int | None, int, bool]] = [(None, -1, False)] * num
    for linked in _links(tmp_path, events).parts():
        told = (column.tolist() for column in linked[1:4])
        for row, (at, thread, is_graph) in zip(
            linked.events["row"].tolist(), zip(*told, strict=True), strict=True
        ):
            if at != UNLINKED:
                found[row] = (at, thread, is_graph)
    return found


def _launched(tmp_path, events) -> list[int | None]:
    return [at for at, _, _ in _linked(tmp_path, events)]


def _num_unanswered(tmp_path, events) -> int:
    links = _links(tmp_path, events)
    nums = []
    for _ in range(2):  # as often as one likes
        for _ in links.parts():
            pass
        nums.append(links.num_unanswered)
    assert nums[0] == nums[1]
    return nums[0]


def test_the_earliest_call_of_the_same_correlation_launches(tmp_path):
    events = [
        kernel(100, 1, correlation=5),
        kernel(101, 1, correlation=MAX),
        copy(102, 1, correlation=9),
        kernel(103, 1, correlation=0),
        launch(9, correlation=5),
        launch(7, correlation=5),
        launch(8, correlation=MAX),
        launch(3, correlation=0),
    ]
    assert _launched(tmp_path, events) == [7000, 8000, None, None]


def test_rows_are_linked_and_counted_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(ordered, "_RUN", 2)
    monkeypatch.setattr(ordered, "_LEAST", 1)
    events = [kernel(100 + n, 1, correlation=n + 1) for n in range(5)]
    events += [launch(50 - n, correlation=9 - n) for n in range(8)]
    assert _launched(tmp_path, events) == [None, *(1000 * n for n in (43, 44, 45, 46))]
    assert _num_unanswered(tmp_path, events) == 4


def test_the_thread_is_that_of_the_earliest_call(tmp_path, monkeypatch):
    calls = [launch(9, correlation=5), launch(7, correlation=5), launch(8, correlation=6)]
    for call, tid in zip(calls, (3, 4, 3), strict=True):
        call["tid"] = tid
    kernels = [kernel(100 + n, 1, correlation=5 + n % 2) for n in range(6)]
    wanted = [(7000, 1, False), (8000, 0, False)] * 3
    assert _linked(tmp_path, [*kernels, *calls]) == wanted
    monkeypatch.setattr(ordered, "_RUN", 2)
    monkeypatch.setattr(ordered, "_LEAST", 1)
    assert _linked(tmp_path, [*kernels, *calls]) == wanted


def test_what_a_graph_replays_says_so(tmp_path, monkeypatch):
    events = [kernel(100 + n, 1, correlation=1 + n % 3) for n in range(6)]
    names = ("hipGraphLaunch", "cuGraphLaunch", "cudaGraphInstantiate")
    events += [launch(n, correlation=n, name=name) for n, name in enumerate(names, 1)]
    wanted = [True, True, False] * 2
    assert [is_graph for _, _, is_graph in _linked(tmp_path, events)] == wanted
    monkeypatch.setattr(ordered, "_RUN", 2)
    monkeypatch.setattr(ordered, "_LEAST", 1)
    assert [is_graph for _, _, is_graph in _linked(tmp_path, events)] == wanted


def test_a_launch_lasts_until_the_last_of_its_calls_returns(tmp_path, monkeypatch):
    calls = [span("cuda_runtime", "cudaLaunchKernel", 5, 9, correlation=1)]
    calls += [launch(6, correlation=1, name="cuLaunchKernel"), launch(20, correlation=2)]
    links = _links(
        tmp_path, [kernel(100 + n, 1, correlation=1 + n % 2) for n in range(4)] + calls
    )
    for rows in (9, 2):
        monkeypatch.setattr(ordered, "_RUN", rows)
        monkeypatch.setattr(ordered, "_LEAST", 1)
        found = {
            (row, until_ns)
            for linked in links.parts()
            for row, until_ns in zip(linked.events["row"], linked.until_ns, strict=True)
        }
        assert found == {(0, 14_000), (2, 14_000), (1, 21_000), (3, 21_000)}


def test_many_kernels_of_one_graph_launch_share_it(tmp_path):
    graph = launch(4, correlation=2, name="cudaGraphLaunch")
    events = [graph, *(kernel(100 + n, 1, correlation=2) for n in range(3))]
    assert _launched(tmp_path, events) == [4000] * 3


def test_without_launches_nothing_is_linked(tmp_path):
    assert _launched(tmp_path, [kernel(1, 1, correlation=5)]) == [None]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cudaLaunchKernel", True),
        ("cudaLaunchKernelExC", True),
        ("cuLaunchKernel", True),
        ("hipExtModuleLaunchKernel", True),
        ("hipModuleLaunchKernel", True),
        ("cudaGraphLaunch", True),
        ("cudaMemcpyAsync", True),
        ("cudaMemsetAsync", False),
        ("cudaLaunchHostFunc", False),
        ("cudaStreamSynchronize", False),
        ("cudaEventRecord", False),
    ],
)
def test_calls_that_launch_work_and_left_none(tmp_path, name, counts):
    events = [
        kernel(100, 1, correlation=1),
        launch(1, correlation=1, name=name),
        launch(2, correlation=2, name=name),
        launch(3, correlation=0, name=name),
    ]
    assert _num_unanswered(tmp_path, events) == (1 if counts else 0)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=12))
def test_calls_and_events_agree_with_a_search_by_hand(rows):
    """However many go to disk: a row is a correlation and what it is, a call twice as often."""
    calls = [(key, 10 + n) for n, (key, what) in enumerate(rows) if what < 2]
    events = [(key, 10 + n) for n, (key, what) in enumerate(rows) if what == 2]
    made = [launch(at, correlation=key) for key, at in calls]
    made += [kernel(at, 1, correlation=key) for key, at in events]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_RUN", 2)
        patch.setattr(ordered, "_LEAST", 1)
        launched = _launched(Path(folder), [kernel(1, 1), *made])[1:]
        num = _num_unanswered(Path(folder), [kernel(1, 1), *made])
    first = {key: min(at for other, at in calls if other == key) for key, _ in calls if key}
    assert launched == [1000 * first[key] if key in first else None for key, _ in events]
    keys = {key for key, _ in events}
    assert num == sum(key != 0 and key not in keys for key, _ in calls)
