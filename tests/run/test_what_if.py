"""Jobs replayed under other conditions: small ones, worked out by hand; and any job at all."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces import annotation, job, kernel, launch, op, span, step, write
from traceparse.engine import analyze
from traceparse.ingest import read_trace
from traceparse.rank import NEVER, DeviceDigest, digest
from traceparse.run import what_if as module
from traceparse.run.across import across
from traceparse.run.graph import CyclicError
from traceparse.run.replay import replay_of
from traceparse.run.what_if import Losses, what_if

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
TOLD = {
    "Collective name": "allreduce",
    "dtype": "Float",
    "In msg nelems": 1024,
    "Out msg nelems": 1024,
    "Group size": 2,
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1]",
}
HEADER = {
    "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl",
                   "pg_size": 2, "ranks": [0, 1]}]
}  # fmt: skip


def reduce(ts, dur, seq, **args):
    return kernel(ts, dur, REDUCE, stream=20, **TOLD, Seq=seq, **args)


def wait(ts):
    return span("cuda_runtime", "cudaStreamWaitEvent", ts, 1)


def one_step(number, start, work, transfer, waited):
    """One step: launch all at once, compute, reduce, and compute for 10 after it.

    The host then waits for the device for the whole of it.
    """
    done = start + 10 + work
    reduced = done + waited + transfer
    at = 10 * number
    return [
        step(number, start, reduced + 12 - start),
        launch(start + 1, correlation=at + 1),
        kernel(start + 10, work, correlation=at + 1),
        wait(start + 2),
        launch(start + 3, correlation=at + 2),
        reduce(done, waited + transfer, number, correlation=at + 2),
        wait(start + 4),
        launch(start + 5, correlation=at + 3),
        kernel(reduced, 10, "adam", correlation=at + 3),
        span("cuda_runtime", "cudaDeviceSynchronize", start + 6, reduced + 11 - start - 6),
    ], reduced + 12


def two_ranks(folder, works, transfer=20, steps=3):
    """Write two ranks that compute for as long as they are told, and reduce in every step."""
    last = max(works)
    for rank, work in enumerate(works):
        events, at = [], 100
        for number in range(1, steps + 1):
            more, at = one_step(number, at, work, transfer, last - work)
            events += more
        told = job(rank, 2) | HEADER
        write(folder / f"rank{rank}.json", events, distributedInfo=told)
    return folder


def report_of(path):
    return analyze(path).to_dict()


def changes(report):
    return {one["change"]: one for one in report["what_if"]["changes"]}


def test_a_network_that_takes_no_time(tmp_path):
    """A step takes 10 until the kernel, 100, the transfer of 20, 10, and 2 for the host."""
    report = report_of(two_ranks(tmp_path, (100, 60)))
    assert report["what_if"]["step_ns"] == 142_000
    assert report["what_if"]["unexplained_ratio"] == 0
    found = changes(report)
    assert found["network_2x"]["step_ns"] == 132_000
    assert found["network_free"] == {
        "change": "network_free",
        "ranks": None,
        "step_ns": 122_000,
        "between_ns": [122_000, 122_000],
        "won_ratio": pytest.approx(20 / 142),
        "subtracted_step_ns": 122_000,
    }


def test_hosts_that_take_no_time(tmp_path):
    """What is left is the kernels and the transfer, on the rank that is last."""
    found = changes(report_of(two_ranks(tmp_path, (100, 60))))["launch_gaps_gone"]
    assert found["step_ns"] == 130_000
    assert found["subtracted_step_ns"] == 130_000


def test_a_rank_like_the_median(tmp_path):
    """It computes for 50 more than the other, which then is as the step was: but for these."""
    report = report_of(two_ranks(tmp_path, (150, 100), transfer=5, steps=14))
    finding = next(one for one in report["findings"] if one["code"] == "straggler")
    assert (finding["severity"], finding["title"][:7]) == ("warning", "rank 0 ")
    found = changes(report)["straggler_median"]
    assert (found["ranks"], found["step_ns"]) == ([0], 127_000)


def test_one_rank_alone_tells_nothing(tmp_path):
    """How long it waits depends on ranks that nobody knows."""
    folder = two_ranks(tmp_path, (100, 60))
    (folder / "rank1.json").unlink()
    report = report_of(folder)
    found = changes(report)
    assert {change: row["step_ns"] for change, row in found.items()} == dict.fromkeys(
        ("network_2x", "network_free", "launch_gaps_gone")
    )
    assert "communication_unsplit" in {note["code"] for note in report["notes"]}


def test_traces_without_waits_are_not_replayed(tmp_path):
    folder = two_ranks(tmp_path, (100, 60))
    for path in folder.iterdir():
        trace = json.loads(path.read_text())
        trace["traceEvents"] = [
            event for event in trace["traceEvents"] if event["name"] != "cudaStreamWaitEvent"
        ]
        path.write_text(json.dumps(trace))
    report = report_of(folder)
    assert report["what_if"] is None
    assert "replay_impossible" in {note["code"] for note in report["notes"]}


def test_gaps_that_nothing_explains_are_kept_and_told(tmp_path):
    """Launched long before, and no wait: nobody knows what they waited for."""
    events = [
        one
        for number in range(1, 6)
        for one in (
            launch(number, correlation=number),
            kernel(100 * number, 50, correlation=number),
        )
    ]
    report = report_of(write(tmp_path / "rank0.json", events))
    assert report["what_if"]["unexplained_ratio"] == pytest.approx(200 / 450)
    (row,) = report["what_if"]["changes"]
    assert (row["change"], row["step_ns"]) == ("launch_gaps_gone", None)
    assert "replay_unexplained" in {note["code"] for note in report["notes"]}


def test_a_host_that_computes_has_no_launch_gaps(tmp_path):
    events = [op(10, 50), op(80, 20)]
    report = report_of(write(tmp_path / "rank0.json", events))
    assert report["what_if"] == {"step_ns": 90_000, "unexplained_ratio": 0.0, "changes": []}


def test_a_host_that_waits_for_a_call(tmp_path):
    """Gaps between its operators are 2; the one before the last is until the call ends."""
    for rank, late in enumerate((0, 30)):
        events = [
            *(op(10 + 12 * place, 10) for place in range(5)),
            annotation(
                40 + late, 60 - late, "gloo:all_reduce", tid=2,
                **{"Input Dims": [[1024]], "Input type": ["float"]},
            ),
            op(102, 10),
        ]  # fmt: skip
        write(tmp_path / f"rank{rank}.json", events, distributedInfo=job(rank, 2, "gloo"))
    found = changes(report_of(tmp_path))
    assert found["network_2x"]["step_ns"] == 102_000 - 15_000
    assert found["network_free"]["step_ns"] == 102_000 - 30_000


def test_kernels_are_slowed_for_as_long_as_a_call_runs_beside_them(tmp_path):
    """Beside a call they take twice as long: 30 of 40 are, so that alone it is 25 and 10."""
    for rank in (0, 1):
        events = [
            launch(1, correlation=1),
            kernel(10, 25, correlation=1),
            wait(2),
            launch(3, correlation=2),
            reduce(35, 30, 1, correlation=2),
            launch(4, correlation=3),
            kernel(35, 40, correlation=3),
        ]
        told = job(rank, 2) | HEADER
        write(tmp_path / f"rank{rank}.json", events, distributedInfo=told)
    report = report_of(tmp_path)
    assert report["scaling_loss"]["contention_ratio"] == pytest.approx(15 / 65)
    found = changes(report)
    assert found["network_free"]["step_ns"] == 50_000
    assert found["network_2x"]["step_ns"] == 65_000 - 7_500


def test_what_waits_for_itself_is_told(monkeypatch):
    def refuse(*_):
        raise CyclicError

    monkeypatch.setattr(module, "replay_of", refuse)
    found = what_if([], [], None, [], Losses(None, None, 0.0))
    (note,) = found.notes
    assert (found.field, note.code) == (None, "replay_impossible")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_with_nothing_changed_everything_happens_when_it_did(tmp_path_factory, data):
    """Whatever was recorded, however odd."""
    folder = tmp_path_factory.mktemp("any")
    instant = st.integers(1, 400)
    devices: list[DeviceDigest] = []
    for rank in (0, 1):
        events: list[dict[str, Any]] = []
        for number in range(1, data.draw(st.integers(2, 12))):
            launched, start, last = (data.draw(instant) for _ in range(3))
            if data.draw(st.booleans()):
                events.append(launch(min(launched, start), correlation=number))
            stream = data.draw(st.integers(7, 9))
            name = data.draw(st.sampled_from(["gemm", REDUCE]))
            told = TOLD if name == REDUCE else {}
            events.append(kernel(start, last, name, correlation=number, stream=stream, **told))
        events += [wait(at) for at in data.draw(st.lists(instant, max_size=4))]
        for at in data.draw(st.lists(instant, max_size=3)):
            events.append(span("cuda_runtime", "cudaDeviceSynchronize", at, data.draw(instant)))
        path = write(folder / f"rank{rank}.json", events, distributedInfo=job(rank, 2))
        devices += digest(read_trace(path)).devices
    windows = [[device.window] for device in devices]
    try:
        replay = replay_of(devices, windows, across(devices, [0, 1]))
    except CyclicError:
        return  # what overlaps on one stream may wait for itself
    assert replay is not None
    again = replay.graph.instants(replay.weights)
    known = replay.recorded_ns != NEVER
    assert np.array_equal(again[known], replay.recorded_ns[known])
