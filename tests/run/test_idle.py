"""What hosts did while devices idled, added up over the device-steps of the summary."""

from __future__ import annotations

from dataclasses import replace

from traceparse.rank import IdleTimes


def with_idle(step, *parts):
    return replace(step, idle=IdleTimes(*parts) if parts else None)


def test_the_steps_of_the_summary_add_up(make):
    first = with_idle(make.step(1, make.times(compute=5, idle=10)), 1, 2, 3, 4)
    again = with_idle(make.step(2, make.times(compute=5, idle=7)), 0, 0, 7, 0)
    last = with_idle(make.step(3, make.times(compute=5, idle=50), open_ended=True), 50, 0, 0, 0)
    other = with_idle(make.step(1, make.times(compute=5, idle=20)), 20, 0, 0, 0)
    report = make.report(
        make.digest(0, make.device(first, again, last), world_size=2),
        make.digest(1, make.device(other), world_size=2),
    )
    assert report.summary.basis == "complete_steps"
    assert report.host == {
        "idle_ns": report.summary.times.idle_ns,
        "data_loader_ns": 21,
        "sync_ns": 2,
        "launch_ns": 3,
        "unknown_ns": 4,
    }
    assert [device.host["idle_ns"] for device in report.devices if device.host] == [10, 20]
    assert [device.host["data_loader_ns"] for device in report.devices if device.host] == [
        1,
        20,
    ]


def test_what_one_step_does_not_tell_the_sum_does_not(make):
    told = with_idle(make.step(1, make.times(compute=5, idle=10)), 1, 2, 3, 4)
    silent = with_idle(make.step(1, make.times(compute=5, idle=10)))
    report = make.report(
        make.digest(0, make.device(told), world_size=2),
        make.digest(1, make.device(silent), world_size=2),
    )
    assert report.host is None
    assert [device.host and device.host["idle_ns"] for device in report.devices] == [10, None]


def test_a_device_without_any_of_the_steps_tells_nothing(make):
    steps = [with_idle(make.step(n, make.times(compute=5)), 0, 0, 0, 0) for n in (1, 2)]
    report = make.report(
        make.digest(0, make.device(*steps), make.device(steps[0], device=1)),
        make.digest(1, make.device(steps[0]), world_size=2),
        steps=[2],
    )
    assert [device.host and device.host["idle_ns"] for device in report.devices] == [
        0,
        None,
        None,
    ]
