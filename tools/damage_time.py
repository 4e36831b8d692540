"""Times that cannot be, or can hardly be (rows 30 to 34, 41, 47 to 49)."""

from __future__ import annotations

from tools.damage_base import EVENTS, Damaged, Trace, damaged, kind, write
from tools.damage_clean import at, clean, device_event, host_event, micro
from tools.layouts import Num

__all__: list[str] = []

INT64 = 2**63


@kind(30, "times of zero, and before zero", EVENTS)
def time_zero(layout: str) -> Damaged:
    """Leave a record unfilled, and let one come out below zero."""
    bad = clean(layout).edit("gemm1", ts=micro(0), dur=micro(0))
    bad = bad.edit("relu2", ts=micro(-5_500)).edit("op3", ts=Num("0"))
    return damaged(
        write(bad, layout),
        clean(layout).without("gemm1", "relu2", "op3"),
        lost={"time_zero": 2, "time_negative": 1},
        notes=["launches_without_device_event"],
    )


@kind(30, "an end before the beginning", EVENTS)
def end_before_begin(layout: str) -> Damaged:
    """Give durations below zero: such events are lost, not shortened."""
    bad = clean(layout).edit("gemm1", dur=micro(-300_125)).edit("copy3", dur=micro(-1_000))
    return damaged(
        write(bad, layout),
        clean(layout).without("gemm1", "copy3"),
        lost={"duration_negative": 2},
        notes=["launches_without_device_event"],
    )


@kind(30, "a time just above zero among times of months later", EVENTS)
def time_small(layout: str) -> Damaged:
    """Give a time that may be wrong, but can be: it counts, and is said to be far off."""
    trace = clean(layout).edit("gemm1", ts=micro(12_500))
    return damaged(write(trace, layout), trace, notes=["device_events_outside_window"])


@kind(31, "durations from an end that was never set", EVENTS)
def duration_overflow(layout: str) -> Damaged:
    """Give what an unset end leads to: far below zero, minus one, beyond 64 bits."""
    values = {
        "gemm1": micro(-INT64),
        "op1": Num("-1"),
        "relu2": micro(INT64 - 1),
        "copy3": micro(2 * INT64 - 1),
    }
    bad = clean(layout)
    for handle, value in values.items():
        bad = bad.edit(handle, dur=value)
    return damaged(
        write(bad, layout),
        clean(layout).without(*values),
        lost={"duration_negative": 2, "time_too_large": 2},
        notes=["launches_without_device_event"],
    )


@kind(31, "a duration of 24 days", EVENTS)
def duration_huge(layout: str) -> Damaged:
    """Give what fits: it is not cut, but said to leave the recorded window."""
    trace = clean(layout).edit("relu3", dur=micro(2**31 * 1_000_000))
    return damaged(write(trace, layout), trace, notes=["device_events_outside_window"])


@kind(32, "a duration that runs over the next kernels of its stream", EVENTS)
def duration_over_next(layout: str) -> Damaged:
    """Nothing is cut: the union of intervals is right whatever the overlap is."""
    trace = clean(layout).edit("gemm1", dur=micro(1_600_000))
    return damaged(write(trace, layout), trace, notes=["kernels_overlap_on_stream"])


@kind(33, "kernels that overlap on a stream by a microsecond", EVENTS)
def overlap_small(layout: str) -> Damaged:
    """Programmatic launches begin before the kernel before them has ended: that is real."""
    trace = clean(layout).edit("relu1", ts=at(399_000))
    return damaged(write(trace, layout), trace)


@kind(33, "kernels that overlap on a stream by 220 microseconds", EVENTS)
def overlap_large(layout: str) -> Damaged:
    """Overlap by most of a kernel: that is no longer how streams work."""
    trace = clean(layout).edit("relu1", ts=at(180_250))
    return damaged(write(trace, layout), trace, notes=["kernels_overlap_on_stream"])


@kind(34, "events that had not ended when the profiler stopped", EVENTS)
def unfinished(layout: str) -> Damaged:
    """They say so, and end where the recording does; times of devices do not depend on it."""
    trace = clean(layout)
    for handle in ("op3", "python3", "forward3"):
        trace = trace.edit(handle, dur=micro(900_000)).args(handle, finished=False)
    return damaged(
        write(trace, layout), trace.args("op1", finished=True), notes=["events_unfinished"]
    )


@kind(41, "kernels of the warm-up, 45 s before the first step", EVENTS)
def warm_up(layout: str) -> Damaged:
    """They ran, so they count; the note says that they are outside what was recorded."""
    early = device_event("warm_up", -45_000_000_000, -44_999_000_000, None)
    trace = clean(layout).add(early=early)
    return damaged(
        write(trace, layout),
        trace,
        notes=["device_events_outside_window", "device_events_unlinked"],
    )


@kind(47, "the profiler at work inside a step", EVENTS)
def overhead(layout: str) -> Damaged:
    """Draw a request for a buffer: no time of the device, but it delays launches."""
    request = host_event("overhead", "Activity Buffer Request", 1_010_000, 1_090_000, pid=-1)
    trace = clean(layout).add(overhead=request | {"tid": 0})
    return damaged(write(trace, layout), trace, notes=["profiler_overhead"])


@kind(48, "a collective of seconds", EVENTS)
def long_collective(layout: str) -> Damaged:
    """Wait or transfer: one rank alone cannot tell, and nothing is claimed."""
    trace = _longer(clean(layout), 2_600_000_000)
    trace = trace.edit("reduce3", dur=micro(2_500_000_000))
    return damaged(write(trace, layout), trace)


def _longer(trace: Trace, last: int) -> Trace:
    """Let the recording end later."""
    return trace.edit("span", dur=micro(last)).edit("end", ts=at(last))


@kind(49, "times in whole microseconds", EVENTS)
def whole_microseconds(layout: str) -> Damaged:
    """As until torch 2.3: short kernels last nothing."""
    trace = clean(layout)
    for handle, event in trace.events.items():
        times = {key: event[key].partition(".")[0] for key in ("ts", "dur") if key in event}
        trace = trace.edit(handle, **{key: Num(value) for key, value in times.items()})
    return damaged(write(trace, layout), trace, notes=["time_resolution_us"])
