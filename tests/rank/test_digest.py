from __future__ import annotations

import sys

import pytest

from tests.traces import annotation, copy, kernel, launch, op, span, step, write
from traceparse.errors import EmptyTraceError, InputError
from traceparse.ingest import read_trace
from traceparse.rank import digest, works
from traceparse.rank import steps as steps_module

digest_module = sys.modules["traceparse.rank.digest"]  # the room has a function of that name

GIGA_US = 4_000_000_000_000_000


def _digest(tmp_path, events):
    return digest(read_trace(write(tmp_path / "rank0.json", events, baseTimeNanoseconds=0)))


def _codes(found) -> list[str]:
    return [note.code for note in found.notes if note.code != "rank_from_file_name"]


def test_a_device_without_steps(tmp_path):
    found = _digest(tmp_path, [kernel(10, 6), kernel(14, 4, "nccl"), copy(30, 2)])
    (device,) = found.devices
    assert (device.device, device.window.span_ns, device.window.idle_ns) == (0, 22_000, 12_000)
    assert device.window.exposed_comm_ns == 2000
    (only,) = device.steps
    assert (only.step, only.name, only.open_ended, only.times) == (
        None,
        None,
        False,
        device.window,
    )
    assert (device.kernels.count, device.kernels.time_ns) == (2, 10_000)
    assert _codes(found) == [
        "device_events_unlinked",
        "no_step_markers",
        "time_resolution_us",
    ]
    assert found.health.gpu_events_without_launch == 3


def test_steps_of_a_device(tmp_path):
    events = [
        step(1, 100, 100),
        step(2, 200, 100),
        step(3, 300, 100),
        launch(110, correlation=1),
        launch(210, correlation=2),
        kernel(150, 20, correlation=1),
        kernel(260, 20, correlation=2),
    ]
    found = _digest(tmp_path, events)
    (device,) = found.devices
    intervals = [
        (s.step, s.open_ended, s.times and (s.times.start_ns, s.times.end_ns))
        for s in device.steps
    ]
    assert intervals == [
        (1, False, (150_000, 260_000)),
        (2, True, (260_000, 300_000)),
        (3, False, None),
    ]
    assert [note.message for note in found.notes if note.code == "step_without_work"] == [
        "ProfilerStep#3 launched nothing on device 0: no interval"
    ]


def test_many_steps_without_work_are_said_briefly(tmp_path):
    events = [kernel(1, 1), *(step(n, 100 * n, 50) for n in range(1, 9))]
    (said,) = [
        n.message for n in _digest(tmp_path, events).notes if n.code == "step_without_work"
    ]
    assert "ProfilerStep#5 and 3 more launched nothing" in said


def test_steps_that_overlap_are_said(tmp_path):
    found = _digest(tmp_path, [kernel(1, 1), step(1, 100, 60), step(2, 150, 60)])
    assert "steps_overlap" in _codes(found)


def test_devices_stand_in_order_of_their_number(tmp_path):
    events = [kernel(1, 1, device=n) for n in (10, 2, "GPU 0", 0)]
    assert [d.device for d in _digest(tmp_path, events).devices] == [0, 2, 10, "GPU 0"]


def test_the_host_is_the_device_where_there_is_no_other(tmp_path):
    events = [
        op(100, 50),
        op(110, 10),  # nested: no time of its own
        annotation(140, 30, "gloo:all_reduce", tid=2),
        op(200, 10, "c10d::allreduce_"),
        op(200, 10, "record_param_comms"),
        annotation(10, 500, "a range of the user's"),
        launch(5, correlation=3),
    ]
    found = _digest(tmp_path, events)
    (device,) = found.devices
    assert device.device == "cpu"
    window = device.window
    assert (window.start_ns, window.end_ns) == (100_000, 170_000)
    assert (window.compute_ns, window.comm_ns, window.exposed_comm_ns) == (
        50_000,
        30_000,
        20_000,
    )
    assert device.kernels.count == 0
    assert _codes(found) == [
        "no_device_events",
        "device_events_missing",
        "no_step_markers",
        "time_resolution_us",
    ]
    assert found.health.launches_without_gpu_event == 1
    assert found.health.gpu_events_without_launch == 0


def test_a_file_that_breaks_off_before_its_kernels_is_no_cpu_job(tmp_path):
    """libkineto writes host events first, so a cut file may hold nothing of the device."""
    path = tmp_path / "rank0.json"
    whole = write(path, [op(1, 5)], deviceProperties=[{"id": 0, "name": "NVIDIA H100"}])
    path.write_text(whole.read_text()[:-2])
    codes = _codes(digest(read_trace(path)))
    assert codes == [
        "truncated",
        "device_events_missing",
        "no_step_markers",
        "time_resolution_us",
    ]


def test_dropped_records_are_said_when_there_are_many(tmp_path):
    events = [kernel(100, 1, correlation=1), *(launch(n, correlation=n) for n in range(1, 5))]
    found = _digest(tmp_path, events)
    assert found.health.launches_without_gpu_event == 3
    assert "launches_without_device_event" in _codes(found)


def test_a_trace_without_any_work_is_refused(tmp_path):
    events = [span("cuda_runtime", "cudaFree", 1, 1), annotation(1, 1, "x")]
    with pytest.raises(EmptyTraceError, match="has no kernel, copy or operator, only 2 other"):
        _digest(tmp_path, events)


def test_durations_past_belief_add_up_without_overflow(tmp_path):
    found = _digest(tmp_path, [kernel(1, GIGA_US) for _ in range(5)])
    assert found.devices[0].kernels.time_ns == 5 * GIGA_US * 1000
    assert found.devices[0].window.busy_ns == GIGA_US * 1000


def test_more_devices_than_there_can_be_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(works, "_MOST_DEVICES", 3)
    events = [kernel(1, 1, device=n) for n in range(4)]
    with pytest.raises(InputError, match=r"4 devices in one file, which is past belief"):
        _digest(tmp_path, events)


def test_more_steps_than_there_can_be_are_refused(tmp_path, monkeypatch):
    for module in (digest_module, steps_module):
        monkeypatch.setattr(module, "MOST_DEVICE_STEPS", 3)
    steps = [step(n, 100 * n, 90) for n in range(1, 5)]
    with pytest.raises(InputError, match=r"4 steps in one file, which is past belief"):
        _digest(tmp_path, [kernel(1, 1), *steps])
    two_devices = [kernel(1, 1, device=0), kernel(1, 1, device=1)]
    with pytest.raises(InputError, match=r"4 steps of devices in one file"):
        _digest(tmp_path, [*two_devices, *steps[:2]])
