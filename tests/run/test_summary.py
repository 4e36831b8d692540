from __future__ import annotations

import pytest

from traceparse.rank import KernelCounts, Times
from traceparse.run import DeviceReport, StepReport
from traceparse.run import summary as summaries
from traceparse.run.basis import choose
from traceparse.run.bound import Bound


def _times(
    start: int, *, compute: int = 0, comm: int = 0, copy: int = 0, idle: int = 0
) -> Times:
    busy = compute + comm + copy
    span = busy + idle
    return Times(start, start + span, span, busy, compute, comm, copy, 0, comm, copy, idle)


def summarize(devices):
    basis = choose(devices)
    return summaries.summarize(devices, basis), list(basis.notes)


def _device(rank, *steps: StepReport) -> DeviceReport:
    return DeviceReport(rank, 0, _times(0, compute=1), steps, KernelCounts(0, 0, 0, 0, 0, 0))


def _step(number, times, *, open_ended=False) -> StepReport:
    return StepReport(number, f"ProfilerStep#{number}", open_ended, times)


def test_steps_that_are_complete_on_every_rank_are_added_up():
    devices = [
        _device(
            0,
            _step(1, _times(0, compute=50, comm=30, copy=5, idle=15)),
            _step(2, _times(100, compute=10, idle=90), open_ended=True),
        ),
        _device(
            1,
            _step(1, _times(7, compute=70, comm=30)),
            _step(2, _times(107, compute=1)),
            _step(3, None),
        ),
    ]
    summary, notes = summarize(devices)
    assert notes == []
    assert (summary.basis, summary.num_device_steps) == ("complete_steps", 3)
    assert (summary.times.start_ns, summary.times.end_ns) == (0, 108)
    assert summary.times.span_ns == 201
    assert summary.compute_ratio == 121 / 201
    assert summary.verdict == (
        "Compute takes 60.2% of a mean step of 0.000067 ms; exposed comm 29.9%, "
        "exposed copy 2.5%, idle 7.5% (2 ranks, 3 device-steps)"
    )
    assert summary.detail == summary.verdict


def test_without_a_complete_step_all_steps_count_and_a_note_says_so():
    devices = [
        _device(0, _step(1, _times(0, idle=10, compute=1), open_ended=True)),
        _device(1, _step(2, _times(0, idle=10, compute=1))),
    ]
    summary, notes = summarize(devices)
    assert [note.code for note in notes] == ["no_complete_step"]
    assert (summary.basis, summary.num_device_steps) == ("all_steps", 2)
    assert summary.verdict.startswith("Idle takes 90.9% of a mean step")


def test_without_markers_windows_are_added_up():
    window = StepReport(None, None, open_ended=False, times=_times(0, comm=10))
    summary, notes = summarize([_device(None, window), _device(None, window)])
    assert (summary.basis, notes) == ("windows", [])
    assert summary.verdict.startswith("Exposed comm takes 100.0% of a mean window")
    assert summary.verdict.endswith("(2 device-windows)")


@pytest.mark.parametrize("steps", [(), (_step(1, None),), (_step(1, _times(5)),)])
def test_no_time_at_all(steps):
    summary, _ = summarize([_device(0, *steps)])
    assert summary.verdict == "no time to account for: every step is empty"
    assert summary.compute_ratio is None


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("compute", "Compute-bound: matrix products and the like take 34.0% of"),
        ("memory", "Memory-bound: kernels that wait for memory take 34.0% of"),
        (
            "communication",
            "Communication-bound: communication beside which nothing computes takes 34.0% of",
        ),
        ("host", "Host-bound: waiting for hosts takes 34.0% of"),
    ],
)
def test_the_verdict_names_what_bounds_a_run(by, words):
    summary, _ = summarize([_device(0, _step(1, _times(0, compute=60, idle=40)))])
    told = summaries.judged(summary, Bound(by, 0.34), 0.31)
    assert told.verdict == f"{words} the device-steps; HFU 31.0%"
    assert told.bound == {"by": by, "ratio": 0.34}
    assert told.detail == summary.verdict
    assert summaries.judged(summary, Bound(by, 0.34), None).verdict.endswith("device-steps")


def test_where_nobody_knows_the_verdict_is_what_was_measured():
    summary, _ = summarize([_device(0, _step(1, _times(0, compute=60, idle=40)))])
    told = summaries.judged(summary, Bound(None, None), 0.31)
    assert told.verdict == summary.verdict
    assert told.bound == {"by": None, "ratio": None}
