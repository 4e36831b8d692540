"""What in a trace may not be as it seems, each said with its count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from traceparse.errors import Note
from traceparse.ingest import FileHealth, RankTrace
from traceparse.rank.steps import Marker
from traceparse.rank.times import DeviceDigest

__all__ = ["doubts"]

# launches without device event that are worth a note (Kineto issue 996 loses whole buffers)
_DROPPED_SHARE = 0.01


def doubts(
    trace: RankTrace, health: FileHealth, steps: list[Marker], devices: Sequence[DeviceDigest]
) -> list[Note]:
    """Say what the reader of a rank's numbers has to know about its trace."""
    said = [
        *_about_devices(trace, health),
        *_about_launches(trace, health),
        *_about_steps(steps, devices),
    ]
    return [Note(code, message, health.rank, health.path) for code, message in said]


def _about_devices(trace: RankTrace, health: FileHealth) -> Iterator[tuple[str, str]]:
    if health.gpu_events:
        return
    if health.truncated and trace.header.device_names:
        yield (
            "device_events_missing",
            "no device events before the file breaks off, but it names a device: what is "
            "accounted for is the host's part, as device cpu",
        )
        return
    yield (
        "no_device_events",
        "no device events: the host's operators are accounted for, as device cpu",
    )
    if health.launches_without_gpu_event:
        yield (
            "device_events_missing",
            f"{health.launches_without_gpu_event} launches but no device event at all: was "
            f"another tool using the device's tracer?",
        )


def _about_launches(trace: RankTrace, health: FileHealth) -> Iterator[tuple[str, str]]:
    dropped, unlinked = health.launches_without_gpu_event, health.gpu_events_without_launch
    launches = trace.tables["launches"].num_rows
    if health.gpu_events and dropped and dropped > _DROPPED_SHARE * launches:
        yield (
            "launches_without_device_event",
            f"{dropped} launches left no device event: recorded into a graph, or dropped by "
            f"the tracer, in which case the device looks idler than it was",
        )
    if unlinked:
        yield (
            "device_events_unlinked",
            f"{unlinked} of {health.gpu_events} device events have no launch in the file: "
            f"their time counts, but they belong to no step",
        )


def _about_steps(
    steps: list[Marker], devices: Sequence[DeviceDigest]
) -> Iterator[tuple[str, str]]:
    if not steps:
        yield "no_step_markers", "no ProfilerStep marks: the whole window counts as one step"
    if any(one.end_ns > other.start_ns for one, other in pairwise(steps)):
        yield "steps_overlap", "ProfilerStep marks overlap: work in two of them belongs to both"
    for device in devices:
        empty = [step.name or "a step" for step in device.steps if step.times is None]
        if empty:
            yield (
                "step_without_work",
                f"{_some(empty)} launched nothing on device {device.device}: no interval",
            )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
