from __future__ import annotations

import numpy as np

from tests.traces import annotation, kernel, span, step, write
from traceparse.ingest import read_trace
from traceparse.rank.link import UNLINKED
from traceparse.rank.steps import Bounds, Marker, bounds_of, markers, members_of


def _array(*values: int):
    return np.array(values, np.int64)


def test_markers_are_host_ranges_in_order_of_start(tmp_path):
    events = [
        kernel(1, 1),
        step(12, 300, 100),
        step(11, 200, 100),
        annotation(100, 50, "ProfilerStep#not a number"),
        annotation(100, 50, "Optimizer.step#SGD.step"),
        span("gpu_user_annotation", "ProfilerStep#11", 250, 9),
    ]
    trace = read_trace(write(tmp_path / "rank0.json", events, baseTimeNanoseconds=0))
    assert markers(trace.tables["annotations"], "t.json") == [
        Marker(None, "ProfilerStep#not a number", 100_000, 150_000),
        Marker(11, "ProfilerStep#11", 200_000, 300_000),
        Marker(12, "ProfilerStep#12", 300_000, 400_000),
    ]


def test_an_event_belongs_to_the_steps_that_contain_its_launch():
    steps = [Marker(1, "a", 0, 10), Marker(2, "b", 10, 20), Marker(3, "c", 15, 30)]
    launched = _array(9, UNLINKED, 10, 17, 30, 0)
    members = [sorted(own.tolist()) for own in members_of(steps, launched)]
    assert members == [[0, 5], [2, 3], [3]]


def test_a_step_runs_from_its_first_compute_kernel_to_the_next_ones():
    """Event 0 is a copy ahead of step 1's compute, event 3 one ahead of step 2's."""
    steps = [Marker(1, "a", 0, 10), Marker(2, "b", 10, 20), Marker(3, "c", 20, 90)]
    members = [_array(0, 1), _array(2, 3), _array(4)]
    found = bounds_of(
        steps,
        members,
        starts=_array(5, 8, 30, 25, 50),
        ends=_array(6, 20, 40, 26, 60),
        is_compute=np.array([False, True, True, False, False]),
    )
    assert found == [Bounds(8, 30, False), Bounds(30, 50, False), Bounds(50, 90, True)]


def test_a_step_without_events_has_no_interval_and_ends_none():
    steps = [Marker(1, "a", 0, 10), Marker(2, "b", 10, 20), Marker(3, "c", 20, 30)]
    members = [_array(0), _array(), _array(1)]
    options = {"starts": _array(5, 25), "ends": _array(9, 70), "is_compute": np.ones(2, bool)}
    assert bounds_of(steps, members, **options) == [
        Bounds(5, 25, False),
        None,
        Bounds(25, 70, True),
    ]
    assert bounds_of(steps[:2], members[:2], **options) == [Bounds(5, 10, True), None]


def test_steps_that_begin_out_of_order_are_never_negative():
    steps = [Marker(1, "a", 0, 10), Marker(2, "b", 10, 20)]
    found = bounds_of(
        steps,
        [_array(0), _array(1)],
        starts=_array(50, 40),
        ends=_array(60, 45),
        is_compute=np.ones(2, bool),
    )
    assert found == [Bounds(50, 50, False), Bounds(40, 45, True)]


def test_names_of_steps_have_an_end(tmp_path):
    """Found by fuzzing: the note on a step without work quoted 27,000 brackets."""
    mark = annotation(100, 50, "ProfilerStep" + "[" * 27_000)
    trace = read_trace(write(tmp_path / "rank0.json", [kernel(1, 1), mark]))
    (found,) = markers(trace.tables["annotations"], "t.json")
    assert found.name == ("ProfilerStep" + "[" * 27_000)[:256]
