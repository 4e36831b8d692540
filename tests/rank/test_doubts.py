"""Doubts about devices and launches; those about events, steps, times have their own files."""

from __future__ import annotations

from tests.rank.said import said
from tests.traces import kernel, launch, write
from traceparse.errors import Note
from traceparse.ingest import read_trace
from traceparse.rank import digest


def test_a_doubt_names_its_rank_and_file(tmp_path):
    path = write(tmp_path / "rank3.json", [kernel("1.5", 1, correlation=1)])
    note = digest(read_trace(path)).notes[-1]
    assert note == Note(
        "no_step_markers",
        "no ProfilerStep marks: the whole window counts as one step",
        3,
        str(path),
    )


def test_several_devices_in_one_file(tmp_path):
    events = [kernel(5, 1, device=n) for n in (1, 0)]
    assert said(tmp_path, events, "several_devices") == [
        "device events of 2 devices (0, 1) in one file: each is accounted for on its own, all "
        "as one rank's"
    ]
    assert said(tmp_path, events[:1], "several_devices") == []


def test_many_devices_are_only_counted(tmp_path):
    four = [kernel(1, 1, device=n) for n in range(4)]
    (message,) = said(tmp_path, four, "several_devices")
    assert message.startswith("device events of 4 devices (0, 1, 2, 3) in one file")
    (message,) = said(tmp_path, [*four, kernel(1, 1, device=4)], "several_devices")
    assert message.startswith("device events of 5 devices in one file")


def test_launches_without_a_device_event_are_said_from_one_percent_on(tmp_path):
    events = [
        kernel(1000, 1, correlation=1),
        *(launch(n, correlation=1) for n in range(1, 99)),
        launch(99, correlation=2),
    ]
    enough = launch(100, correlation=1)
    assert said(tmp_path, [*events, enough], "launches_without_device_event") == []
    assert said(tmp_path, events, "launches_without_device_event") == [
        "1 launches left no device event: recorded into a graph, or dropped by the tracer, in "
        "which case the device looks idler than it was"
    ]


def test_device_events_without_a_launch(tmp_path):
    events = [kernel(9, 1, correlation=1), launch(1, correlation=1)]
    assert said(tmp_path, events, "device_events_unlinked") == []
    assert said(tmp_path, [*events, kernel(9, 1)], "device_events_unlinked") == [
        "1 of 2 device events have no launch in the file: their time counts, but they belong "
        "to no step"
    ]
