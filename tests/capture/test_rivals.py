from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.capture.loops import kept_names, loop, names_in, step_names, work
from traceparse.capture import profile
from traceparse.capture.rivals import RIVALS, Rivals

pytestmark = pytest.mark.usefixtures("packed_at_once")

RUNNING = (
    "traceparse: no trace was kept, training goes on: another profiler is running in this "
    "process, and torch can run only one: stop it before the first step that traceparse records"
)


def gave_way(path: Path, step: int) -> str:
    return (
        f"traceparse: {path}: another profiler begins in this process, and torch can run only "
        f"one: the recording ends in step {step}"
    )


@pytest.fixture(autouse=True)
def nothing_runs_afterwards() -> Iterator[None]:
    yield
    assert not torch.autograd._profiler_enabled()
    assert not RIVALS.is_busy
    assert RIVALS._give_way is None


def num_products(other: torch.profiler.profile) -> int:
    return sum(event.count for event in other.key_averages() if event.key == "aten::mm")


def theirs() -> torch.profiler.profile:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])


def test_ours_inside_theirs_is_refused_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with theirs() as other:
        assert loop(tmp_path, 3, steps=range(1)).path is None
    assert num_products(other) == 3
    assert caplog.messages == [RUNNING]
    assert names_in(tmp_path) == []


def test_ours_that_begins_later_is_refused_then(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with theirs() as other:
        assert loop(tmp_path, 5, steps=range(3, 4)).path is None
    assert num_products(other) == 5
    assert caplog.messages == [RUNNING]


def test_theirs_that_is_only_made_ready_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
    RIVALS.watch()
    with torch.profiler.profile(schedule=schedule) as other:
        with profile(tmp_path, steps=range(2)) as ours:
            for _ in range(3):
                work()
                ours.step()
                other.step()
        assert num_products(other) == 2
    assert caplog.messages == [RUNNING]


def loop_beside(other: Any, folder: Path, steps: range) -> profile:
    """Run a loop whose step 1 has a profiler of its own."""
    with profile(folder, steps=steps) as ours:
        for step in range(6):
            if step == 1:
                with other:
                    work()
            work()
            ours.step()
    return ours


def test_theirs_that_ended_before_is_no_rival(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = theirs()
    ours = loop_beside(other, tmp_path, range(3, 5))
    assert num_products(other) == 1
    assert step_names(ours.path) == ["ProfilerStep#3", "ProfilerStep#4"]
    assert caplog.messages == []


@pytest.mark.parametrize("cycles", [1, 3])
def test_ours_gives_way_while_it_records_and_keeps_what_it_has(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cycles: int
) -> None:
    others = [theirs() for _ in range(cycles)]
    with profile(tmp_path, steps=range(1, 9)) as ours:
        for step in range(5):
            work()
            for other in others if step == 3 else []:
                with other:
                    work()
            ours.step()
    assert list(map(num_products, others)) == [1] * cycles
    assert step_names(ours.path) == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"]
    assert names_in(tmp_path) == kept_names([0])
    assert caplog.messages == [gave_way(tmp_path / "rank0_trace.json.gz", 3)]


def test_ours_gives_way_while_it_is_made_ready(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = theirs()
    ours = loop_beside(other, tmp_path, range(2, 4))
    assert num_products(other) == 1
    assert ours.path is None
    assert names_in(tmp_path) == []
    assert caplog.messages == [gave_way(tmp_path / "rank0_trace.json.gz", 1)]


def test_theirs_may_outlive_ours(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = theirs()
    with profile(tmp_path, steps=range(1, 9)) as ours:
        for step in range(4):
            work()
            if step == 2:
                other.start()
            ours.step()
    work()
    other.stop()
    assert num_products(other) == 2
    assert step_names(ours.path) == ["ProfilerStep#1", "ProfilerStep#2"]
    assert len(caplog.messages) == 1


def test_two_captures_one_after_the_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = loop(tmp_path / "a", 3, steps=range(1, 2))
    second = loop(tmp_path / "b", 3, steps=range(1, 2))
    assert step_names(first.path) == step_names(second.path) == ["ProfilerStep#1"]
    assert caplog.messages == []


def test_of_two_captures_inside_one_another_the_first_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        profile(tmp_path / "a", steps=range(1, 3)) as outer,
        profile(tmp_path / "b", steps=range(1, 3)) as inner,
    ):
        for _ in range(4):
            work()
            outer.step()
            inner.step()
    assert step_names(outer.path) == ["ProfilerStep#1", "ProfilerStep#2"]
    assert inner.path is None
    assert len(caplog.messages) == 1


def test_of_two_captures_that_record_in_turn_both_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        profile(tmp_path / "a", steps=range(1, 2)) as early,
        profile(tmp_path / "b", steps=range(4, 5)) as late,
    ):
        for _ in range(6):
            work()
            early.step()
            late.step()
    assert step_names(early.path) == ["ProfilerStep#1"]
    assert step_names(late.path) == ["ProfilerStep#4"]
    assert caplog.messages == []


def test_watching_twice_is_watching_once() -> None:
    RIVALS.watch()
    before = torch.autograd.profiler._enable_profiler
    Rivals().watch()
    assert torch.autograd.profiler._enable_profiler is before


MANY = """
    import sys, torch, traceparse, logging
    from pathlib import Path
    logging.basicConfig(format="%(message)s")
    out = Path(sys.argv[1])

    def work():
        torch.mm(torch.ones(4, 8), torch.ones(8, 2))

    def products(other):
        return sum(event.count for event in other.key_averages() if event.key == "aten::mm")

    found = []
    for number in range(3):
        # theirs starts in the middle of ours, and ends behind it
        other = torch.profiler.profile()
        with traceparse.profile(out / f"{number}a", steps=range(1, 5)) as ours:
            for step in range(4):
                work()
                if step == 2:
                    other.start()
                ours.step()
        other.export_chrome_trace(str(out / "theirs.json")) if other.stop() else None
        found.append((products(other), ours.path is not None))
        # ours begins in the middle of theirs, and ends behind it
        schedule = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=2)
        ready = []
        with torch.profiler.profile(schedule=schedule, on_trace_ready=ready.append) as other:
            ours = traceparse.profile(out / f"{number}b", steps=range(4, 6))
            ours.__enter__()
            for step in range(6):
                work()
                ours.step()
                other.step()
        ours.__exit__(None, None, None)
        found.append((len(ready), ours.path is not None))
    print(found)
"""


@pytest.mark.slow
def ran(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, which may crash."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_two_profilers_that_interleave_do_not_end_the_process(tmp_path: Path) -> None:
    """GIVEN torch 2.13, which crashes where two do."""
    done = ran(MANY, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[(1, True), (2, False)] * 3}\n"
    assert done.stderr.count("another profiler begins in this process") == 3


SPANS = """
    import contextlib, pathlib, sys, torch
    from traceparse.capture.recorder import Recorder
    from traceparse.capture.rivals import RIVALS

    def work():
        with contextlib.ExitStack() as stack:
            for number in range(300):  # each of them writes
                stack.enter_context(torch.profiler.record_function(f"span {number}"))
            begin()
            network(torch.ones(16, 64)).sum().backward()

    def begin():
        if recorder.is_recording:
            other.start()

    def give_way():
        recorder.stop()
        recorder.write(raw, raw)

    RIVALS.watch()
    raw = pathlib.Path(sys.argv[1], "raw")
    network = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(12)])
    for _ in range(12):
        recorder = Recorder(stacks=False, memory=False, give_way=give_way)
        recorder.start()
        other = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        work()
        work()
        other.stop()
        other.key_averages()
    print(raw.read_text().count('"name": "span '))
"""


def test_spans_that_are_open_when_ours_gives_way_do_not_end_the_process(tmp_path: Path) -> None:
    """GIVEN torch 2.13, which writes to what it has freed when such a span ends."""
    done = ran(SPANS, tmp_path)
    assert (done.returncode, done.stdout) == (0, "300\n"), done.stderr
