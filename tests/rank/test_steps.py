from __future__ import annotations

import numpy as np

from tests.traces import annotation, kernel, span, step, write
from traceparse.ingest import read_trace
from traceparse.rank.link import UNLINKED
from traceparse.rank.steps import (
    Bounds,
    Marker,
    Segments,
    StepBounds,
    first_steps,
    markers,
)


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
    assert markers(trace.kept["annotations"], "t.json") == [
        Marker(None, "ProfilerStep#not a number", 100_000, 150_000),
        Marker(11, "ProfilerStep#11", 200_000, 300_000),
        Marker(12, "ProfilerStep#12", 300_000, 400_000),
    ]


def _bounds(steps, events):
    """Return the intervals of steps: an event is (launch, start, end, is_compute)."""
    found = StepBounds(steps, Segments(steps), 1)
    for event in events:  # each on its own: the order in which they come must not matter
        launched, start, end, is_compute = ([value] for value in event)
        found.add(
            _array(*launched),
            devices=np.zeros(1, np.int16),
            starts=_array(*start),
            ends=_array(*end),
            is_compute=np.array(is_compute),
        )
    return found.of(0)


def test_an_event_belongs_to_the_steps_that_contain_its_launch():
    steps = [Marker(1, "a", 0, 10), Marker(2, "b", 10, 20), Marker(3, "c", 15, 30)]
    launched = _array(9, UNLINKED, 10, 17, 30, 0)
    assert first_steps(steps, launched).tolist() == [0, -1, 1, 1, -1, 0]
    events = [(int(at), 100 + n, 101 + n, True) for n, at in enumerate(launched)]
    # the one launched at 17 is of both the second and the third
    assert _bounds(steps, events) == [
        Bounds(100, 102, False),
        Bounds(102, 103, False),
        Bounds(103, 104, True),
    ]


def test_steps_inside_others_keep_their_own():
    steps = [Marker(1, "a", 0, 100), Marker(2, "b", 20, 30), Marker(3, "c", 50, 50)]
    launched = _array(19, 20, 29, 30, 50, 99, 100)
    assert first_steps(steps, launched).tolist() == [0] * 6 + [-1]
    assert first_steps(steps[1:], launched).tolist() == [-1, 0, 0, -1, -1, -1, -1]
    assert first_steps([], launched).tolist() == [-1] * 7
    assert _bounds(steps, [(25, 40, 45, True), (60, 70, 75, True)]) == [
        Bounds(40, 40, False),
        Bounds(40, 45, True),
        None,
    ]


def test_a_step_runs_from_its_first_compute_kernel_to_the_next_ones():
    """The first event is a copy ahead of step 1's compute, the fourth one ahead of step 2's."""
    steps = [Marker(1, "a", 0, 10), Marker(2, "b", 10, 20), Marker(3, "c", 20, 90)]
    events = [
        (1, 5, 6, False),
        (2, 8, 20, True),
        (11, 30, 40, True),
        (12, 25, 26, False),
        (21, 50, 60, False),
    ]
    found = [Bounds(8, 30, False), Bounds(30, 50, False), Bounds(50, 90, True)]
    assert _bounds(steps, events) == _bounds(steps, reversed(events)) == found


def test_a_step_without_events_has_no_interval_and_ends_none():
    steps = [Marker(1, "a", 0, 10), Marker(2, "b", 10, 20), Marker(3, "c", 20, 30)]
    events = [(1, 5, 9, True), (21, 25, 70, True)]
    assert _bounds(steps, events) == [Bounds(5, 25, False), None, Bounds(25, 70, True)]
    assert _bounds(steps[:2], events) == [Bounds(5, 10, True), None]


def test_steps_that_begin_out_of_order_are_never_negative():
    steps = [Marker(1, "a", 0, 10), Marker(2, "b", 10, 20)]
    found = _bounds(steps, [(1, 50, 60, True), (11, 40, 45, True)])
    assert found == [Bounds(50, 50, False), Bounds(40, 45, True)]


def test_names_of_steps_have_an_end(tmp_path):
    """Found by fuzzing: the note on a step without work quoted 27,000 brackets."""
    mark = annotation(100, 50, "ProfilerStep" + "[" * 27_000)
    trace = read_trace(write(tmp_path / "rank0.json", [kernel(1, 1), mark]))
    (found,) = markers(trace.kept["annotations"], "t.json")
    assert found.name == ("ProfilerStep" + "[" * 27_000)[:256]
