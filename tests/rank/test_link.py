from __future__ import annotations

import pytest

from tests.traces import copy, kernel, launch, write
from traceparse.ingest import read_trace
from traceparse.rank import rows
from traceparse.rank.link import UNLINKED, launches_of, num_without_device_event

MAX = 2**64 - 1


def _tables(tmp_path, events):
    return read_trace(write(tmp_path / "rank0.json", events, baseTimeNanoseconds=0)).tables


def _launched(tmp_path, events) -> list[int | None]:
    tables = _tables(tmp_path, events)
    found = launches_of(tables["device_events"], tables["launches"]).tolist()
    return [None if at == UNLINKED else at for at in found]


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
    monkeypatch.setattr(rows, "_ROWS", 2)
    events = [kernel(100 + n, 1, correlation=n + 1) for n in range(5)]
    events += [launch(50 - n, correlation=9 - n) for n in range(8)]
    assert _launched(tmp_path, events) == [None, *(1000 * n for n in (43, 44, 45, 46))]
    tables = _tables(tmp_path, events)
    assert num_without_device_event(tables["launches"], tables["device_events"]) == 4


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
    tables = _tables(
        tmp_path,
        [
            kernel(100, 1, correlation=1),
            launch(1, correlation=1, name=name),
            launch(2, correlation=2, name=name),
            launch(3, correlation=0, name=name),
        ],
    )
    found = num_without_device_event(tables["launches"], tables["device_events"])
    assert found == (1 if counts else 0)
