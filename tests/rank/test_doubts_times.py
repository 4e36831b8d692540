from __future__ import annotations

import pytest

from tests.rank.said import said
from tests.traces import copy, kernel, op, overhead, step, window

WHOLE_US = (
    "times are whole microseconds: each is up to 1 us off, and time in short kernels or "
    "operators comes out low"
)
OUTSIDE = "they count, and stretch the device's window beyond what was recorded of the host"
OVERLAP = (
    "a stream runs one kernel at a time, so these durations, and busy time with them, may be "
    "too long"
)


# -- resolution


def test_times_in_whole_microseconds(tmp_path):
    events = [kernel(1, 0), kernel(2, 3), copy(9, 0)]
    assert said(tmp_path, events, "time_resolution_us") == [
        f"{WHOLE_US}; 2 of 3 device events last 0"
    ]
    assert said(tmp_path, [op(1, 1)], "time_resolution_us") == [WHOLE_US]
    assert said(tmp_path, [*events, kernel("20.5", 1)], "time_resolution_us") == []


# -- the profiler's own work


def test_overhead_inside_steps(tmp_path):
    events = [
        kernel(1, 1),
        step(1, 1000, 400),
        step(2, 2000, 600),
        overhead(900, 110),  # 10 in the first step
        overhead(1005, 10, "Buffer Flush"),  # 5 more
        overhead(1300, 800),  # 100 in each
        overhead(1400, 50),  # in none
        overhead(1990, 10),
    ]
    assert said(tmp_path, events, "profiler_overhead") == [
        "the profiler's own work on the host takes 21.5% of the steps (3 ranges, 0.215 ms): "
        "launches wait for it, so some idle time is the profiler's"
    ]


@pytest.mark.parametrize(("us", "said_so"), [(1, 0), (2, 1)])
def test_overhead_is_said_above_a_thousandth(tmp_path, us, said_so):
    events = [kernel(1, 1), step(1, 1000, 1000), overhead(1500, us)]
    assert len(said(tmp_path, events, "profiler_overhead")) == said_so


def test_overhead_without_steps_is_that_inside_the_window(tmp_path):
    events = [kernel(100, 10), kernel(190, 10), overhead(50, 60)]
    (message,) = said(tmp_path, events, "profiler_overhead")
    assert "takes 10.0% of the window (1 range, 0.010000 ms)" in message
    assert said(tmp_path, [*events[:2], overhead(50, 50)], "profiler_overhead") == []


@pytest.mark.parametrize(
    "name",
    [
        "Command Buffer Full",
        "Driver Compiler",
        "Lazy Function Loading",
        "Runtime Triggered Module Loading",
    ],
)
def test_what_the_program_would_pay_anyway_is_no_overhead(tmp_path, name):
    events = [kernel(1, 1), step(1, 1000, 1000), overhead(1500, 100, name)]
    assert said(tmp_path, events, "profiler_overhead") == []


# -- the recorded window


def test_device_events_before_the_window(tmp_path):
    events = [kernel(100, 10), window(100, 50)]
    assert said(tmp_path, events, "device_events_outside_window") == []
    events += [kernel("99.999", 10), copy(40, 1)]
    assert said(tmp_path, events, "device_events_outside_window") == [
        "2 of 3 device events outside the profiler's recorded window, by up to 0.060000 ms: "
        + OUTSIDE
    ]


def test_device_events_long_after_the_window(tmp_path):
    """A queue may still be full when the recording ends: a second is left for it to drain."""
    events = [kernel(100, 10), window(100, 50), kernel(1_000_100, 50)]
    assert said(tmp_path, events, "device_events_outside_window") == []
    (message,) = said(
        tmp_path, [*events, kernel(100, 1_000_051)], "device_events_outside_window"
    )
    assert message == (
        "1 of 3 device events outside the profiler's recorded window, by up to 1,000.0 ms: "
        + OUTSIDE
    )


def test_several_windows_reach_from_the_first_to_the_last(tmp_path):
    windows = [window(2_000_000, 50, "PyTorch Profiler (1)"), window(100, 50)]
    events = [kernel(99, 1), kernel(1_500_000, 1), *windows]
    (message,) = said(tmp_path, events, "device_events_outside_window")
    assert message.startswith("1 of 2 device events")


def test_no_window_no_doubt(tmp_path):
    other = window(100, 50, "__cupti_profiler__ (-1)")
    named_alike = window(100, 50) | {"cat": "user_annotation"}
    events = [kernel(1, 1), other, named_alike]
    assert said(tmp_path, events, "device_events_outside_window") == []


# -- overlaps on a stream


def test_kernels_that_run_into_the_next(tmp_path):
    events = [
        kernel(100, 1000, correlation=1),  # runs into two, far beyond
        kernel(150, 100, correlation=2),
        kernel(300, 100, correlation=3),
        kernel(2000, 40, correlation=4),  # half of it
        kernel(2020, 40, correlation=5),
    ]
    assert said(tmp_path, events, "kernels_overlap_on_stream") == [
        "2 kernels running into the next on the same stream by more than 10 us and half the "
        f"duration, 0.970 ms in all: {OVERLAP}"
    ]


@pytest.mark.parametrize(
    "second",
    [
        kernel(121, 40, correlation=2),  # less than half of the first
        kernel(120, 40, correlation=1),  # a graph: one launch, branches side by side
        kernel(120, 40, correlation=2, stream=8),
        kernel(120, 40, correlation=2, device=1),
        copy(120, 40, correlation=2),
    ],
)
def test_overlaps_that_may_be(tmp_path, second):
    first = kernel(100, 40, correlation=1)
    assert said(tmp_path, [first, second], "kernels_overlap_on_stream") == []


def test_a_graph_that_runs_into_the_next_launch(tmp_path):
    graph = [kernel(at, 40, correlation=1) for at in (100, 110, 120)]
    events = [*graph, kernel(130, 40, correlation=2)]
    (message,) = said(tmp_path, events, "kernels_overlap_on_stream")
    assert message.startswith("2 kernels running into the next")
    assert "0.030000 ms in all" in message


def test_small_overlaps_may_be(tmp_path):
    events = [kernel(100, 11, correlation=1), kernel(101, 11, correlation=2)]
    assert said(tmp_path, events, "kernels_overlap_on_stream") == []
    events[0]["dur"] = 12
    (message,) = said(tmp_path, events, "kernels_overlap_on_stream")
    assert message.startswith("1 kernel running into the next")


def test_kernels_without_a_stream_are_not_judged(tmp_path):
    streams = [None, None, 2**64 - 1, 2**64 - 2]
    events = [kernel(100 + n, 40, stream=stream) for n, stream in enumerate(streams)]
    assert said(tmp_path, events, "kernels_overlap_on_stream") == []


def test_kernels_without_correlation_are_each_a_launch(tmp_path):
    (message,) = said(tmp_path, [kernel(100, 40), kernel(110, 40)], "kernels_overlap_on_stream")
    assert message.startswith("1 kernel running into the next")
