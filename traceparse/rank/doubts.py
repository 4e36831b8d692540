"""What in a trace may not be as it seems, each said with its count.

A doubt is a :class:`~traceparse.errors.Note`: a code for programs, and one line that says what
was seen and what it means for the numbers. Those on steps, on events and on times have
modules of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceparse.errors import Note
from traceparse.ingest import FileHealth, RankTrace
from traceparse.rank.doubts_events import about_events
from traceparse.rank.doubts_steps import about_steps
from traceparse.rank.doubts_times import about_times
from traceparse.rank.steps import Marker
from traceparse.rank.times import DeviceDigest

__all__ = ["doubts"]

# launches without device event that are worth a note (Kineto issue 996 loses whole buffers)
_DROPPED_SHARE = 0.01
_MOST_NAMED = 4  # devices that are named; more are only counted


def doubts(
    trace: RankTrace, health: FileHealth, steps: list[Marker], devices: Sequence[DeviceDigest]
) -> list[Note]:
    """Say what the reader of a rank's numbers has to know about its trace."""
    said = [
        *_about_devices(trace, health, devices),
        *_about_launches(trace, health),
        *about_events(trace),
        *about_steps(steps, devices),
        *about_times(trace, health, steps, devices),
    ]
    return [Note(code, message, health.rank, health.path) for code, message in said]


def _about_devices(
    trace: RankTrace, health: FileHealth, devices: Sequence[DeviceDigest]
) -> Iterator[tuple[str, str]]:
    if len(devices) > 1:
        names = ", ".join(str(device.device) for device in devices)
        which = f" ({names})" if len(devices) <= _MOST_NAMED else ""
        yield (
            "several_devices",
            f"device events of {len(devices):,} devices{which} in one file: each is accounted "
            f"for on its own, all as one rank's",
        )
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
    launches = trace.kept["launches"].num_rows
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
