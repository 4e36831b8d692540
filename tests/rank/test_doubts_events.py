from __future__ import annotations

import pytest

from tests.rank.said import said
from tests.traces import annotation, kernel, launch, op, overhead, step


def _device_events(same: int, other: int):
    """So many kernels whose external id is their correlation, so many where it is not."""
    return [
        kernel(1000 + n, 1, correlation=n, **{"External id": n if n <= same else n + 5000})
        for n in range(1, same + other + 1)
    ]


def test_external_ids_that_are_correlations(tmp_path):
    events = [*_device_events(96, 4), kernel(1, 1, correlation=7), op(1, 1)]
    assert said(tmp_path, events, "external_id_is_correlation") == [
        "External id equals correlation on 96 of 100 device events, as profilers before torch "
        "2.3 write it: it names no operator, and is not used to find one"
    ]


def test_external_ids_that_meet_a_correlation_by_chance(tmp_path):
    assert said(tmp_path, _device_events(95, 5), "external_id_is_correlation") == []
    without = [kernel(1, 1, correlation=7), kernel(2, 1, **{"External id": 7})]
    assert said(tmp_path, without, "external_id_is_correlation") == []


@pytest.mark.parametrize(("right", "codes"), [(5, 0), (4, 1)])
def test_external_ids_are_right_where_their_operators_launch(tmp_path, right, codes):
    """A loop of operators with a kernel each counts both numbers from 1."""
    events = _device_events(10, 0)
    for n in range(1, 11):
        events.append(launch(100 * n + 10, correlation=n))
        # the operator holds the launch, or ends right before it
        events.append(op(100 * n, 50 if n <= right else 10, "aten::add", **{"External id": n}))
    assert len(said(tmp_path, events, "external_id_is_correlation")) == codes


@pytest.mark.parametrize(
    ("start", "external_id", "doubts"), [(100, 1, 0), (101, 1, 1), (90, 2, 1)]
)
def test_which_operator_holds_a_launch(tmp_path, start, external_id, doubts):
    it = op(start, 50, "aten::add", **{"External id": external_id})
    events = [*_device_events(1, 0), launch(100, correlation=1), it]
    assert len(said(tmp_path, events, "external_id_is_correlation")) == doubts


def test_several_processes_in_one_file(tmp_path):
    events = [
        kernel(9, 1),
        op(1, 1, pid=20),
        annotation(1, 1, "forward", pid=20),
        launch(2, correlation=1) | {"pid": 20},
        op(2, 1, pid=30),
    ]
    assert said(tmp_path, events, "several_processes") == [
        "host events of 2 processes (20: 3 events, 30: 1 event) in one file: all count as one "
        "rank's, and work of one may fall into the steps of another"
    ]
    assert said(tmp_path, events[:-1], "several_processes") == []


def test_many_processes_are_only_counted(tmp_path):
    four = [kernel(9, 1), *(op(1, 1, pid=pid) for pid in range(20, 24))]
    (message,) = said(tmp_path, four, "several_processes")
    assert message.startswith("host events of 4 processes (20: 1 event, 21: 1 event, ")
    (message,) = said(tmp_path, [*four, step(1, 1, 1) | {"pid": 5}], "several_processes")
    assert message.startswith("host events of 5 processes in one file: ")


def test_rows_that_are_no_process(tmp_path):
    mtia = launch(2, correlation=1) | {"pid": 17}
    nobody = op(1, 1)
    del nobody["pid"]
    events = [step(1, 1, 1), kernel(9, 1, device=17), mtia, nobody, overhead(1, 1)]
    assert said(tmp_path, events, "several_processes") == []


def test_a_process_may_have_the_number_of_a_device(tmp_path):
    """In a container the process is number 1, as is the second device."""
    events = [kernel(9, 1, device=1), op(1, 1), launch(2, correlation=1), op(1, 1, pid=2)]
    (message,) = said(tmp_path, events, "several_processes")
    assert "(1: 2 events, 2: 1 event)" in message


def test_names_that_the_profiler_hides(tmp_path):
    events = [
        kernel(9, 1, "unknown"),
        launch(1, correlation=1, name="unknown"),
        op(1, 1, "unknown"),
        annotation(1, 1, "unknown"),
        op(1, 1, "unknown_op"),
        op(1, 1, "Unknown"),
    ]
    hidden = (
        "named `unknown`: the profiler hides names with characters it cannot print; steps and "
        "collectives among them are not recognized"
    )
    assert said(tmp_path, events, "names_unknown") == [f"4 events {hidden}"]
    assert said(tmp_path, events[3:], "names_unknown") == [f"1 event {hidden}"]
    assert said(tmp_path, events[4:], "names_unknown") == []


def test_events_that_had_not_ended(tmp_path):
    events = [op(1, 1, finished=True), annotation(1, 1, "forward", finished=None), op(1, 1)]
    assert said(tmp_path, events, "events_unfinished") == []
    open_ones = [op(1, 1, finished=False), step(1, 1, 1)]
    open_ones[1]["args"] = {"finished": False}
    assert said(tmp_path, [*events, *open_ones], "events_unfinished") == [
        "2 events unfinished when the profiler stopped: their ends are not their own, which "
        "matters to times of the host and to the last step"
    ]
