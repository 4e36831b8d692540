from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.capture.loops import facts_beside, kept_names, loop, names_in, read, step_names, work
from traceparse.capture import profile
from traceparse.capture.asked import asked_for
from traceparse.capture.session import Session

pytestmark = pytest.mark.usefixtures("packed_at_once")


def test_a_schedule_that_repeats_leaves_a_folder_for_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    prof = loop(tmp_path, 12, steps=schedule)
    assert names_in(tmp_path) == ["iteration_2", "iteration_6"]
    for first in (2, 6):
        folder = tmp_path / f"iteration_{first}"
        path = folder / "rank0_trace.json.gz"
        assert names_in(folder) == kept_names([0])
        assert step_names(path) == [f"ProfilerStep#{first}", f"ProfilerStep#{first + 1}"]
        assert facts_beside(path)["steps"] == [first, first + 1]
    assert prof.path == tmp_path / "iteration_6" / "rank0_trace.json.gz"
    assert caplog.messages == []


def test_recordings_that_follow_one_another_are_apart(tmp_path: Path) -> None:
    actions = torch.profiler.ProfilerAction
    told = [actions.RECORD, actions.RECORD_AND_SAVE] * 2 + [actions.NONE]
    loop(tmp_path, 4, steps=told.__getitem__)
    assert names_in(tmp_path) == ["iteration_0", "iteration_2"]
    assert step_names(tmp_path / "iteration_2" / "rank0_trace.json.gz") == [
        "ProfilerStep#2",
        "ProfilerStep#3",
    ]


def test_a_recording_of_a_schedule_that_is_there_already_is_not_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "iteration_1" / "rank0_trace.json.gz"
    path.parent.mkdir()
    path.write_text("precious")
    loop(tmp_path, 4, steps=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1))
    assert path.read_text() == "precious"
    assert caplog.messages == [
        f"traceparse: no trace was kept, training goes on: {path}: there is a trace of rank 0 "
        "already; choose another directory, or pass overwrite=True to replace it"
    ]
    assert names_in(path.parent) == [path.name]


def test_a_schedule_that_forgets_to_save_is_kept_all_the_same(tmp_path: Path) -> None:
    actions = torch.profiler.ProfilerAction
    told = {0: actions.RECORD, 1: actions.RECORD}
    loop(tmp_path, 4, steps=lambda step: told.get(step, actions.NONE))
    assert step_names(tmp_path / "iteration_0" / "rank0_trace.json.gz") == [
        "ProfilerStep#0",
        "ProfilerStep#1",
    ]


def test_a_schedule_that_only_makes_ready_leaves_nothing(tmp_path: Path) -> None:
    actions = torch.profiler.ProfilerAction
    told = {0: actions.WARMUP, 1: actions.NONE, 2: actions.WARMUP}
    loop(tmp_path, 3, steps=lambda step: told.get(step, actions.WARMUP))
    assert not torch.autograd._profiler_enabled()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_schedule_that_fails_ends_the_capture(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def schedule(step: int) -> Any:
        return ([torch.profiler.ProfilerAction.NONE] * 4)[step]

    loop(tmp_path, 6, steps=schedule)
    assert caplog.messages == [
        "traceparse: no trace was kept, training goes on: IndexError: list index out of range"
    ]


@pytest.mark.parametrize(
    ("ranks", "rank", "local_rank", "records"),
    [
        ("node", 8, "0", True),
        ("node", 9, "1", False),
        ("1,3-4", 3, "3", True),
        ("1,3-4", 2, "2", False),
        (7, 7, "7", True),
    ],
)
def test_ranks_that_do_not_record_write_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    ranks: Any,
    rank: int,
    local_rank: str,
    records: bool,
) -> None:
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("LOCAL_RANK", local_rank)
    loop(tmp_path, 4, steps=range(1, 3), ranks=ranks)
    assert names_in(tmp_path) == (kept_names([rank]) if records else [])
    assert caplog.messages == []
    assert not torch.autograd._profiler_enabled()


def test_what_the_model_is_given_is_known_from_a_step_that_is_not_recorded(
    tmp_path: Path,
) -> None:
    model = torch.nn.Linear(5, 3)
    with profile(tmp_path, steps=range(3, 4), count_flop=True) as prof:
        for step in range(5):
            model(torch.ones(2 + step, 5)).sum().backward()
            prof.step()
    told = read(prof.path)["traceparse"]
    assert told["samples_per_rank_step"] == 2 + 1  # that is step 1
    assert told["num_params"] == 5 * 3 + 3
    assert told["model_flop_per_rank_step"] == 2 * (2 * 3 * 5 * 3)  # forward, and weights
    assert model._forward_pre_hooks == {}


def test_where_there_is_no_time_before_the_model_is_looked_at_behind(tmp_path: Path) -> None:
    model = torch.nn.Linear(5, 3)
    with profile(tmp_path, steps=range(1), model=model) as prof:
        for step in range(9):
            model(torch.ones(2 + step, 5)).sum().backward()
            prof.step()
    assert "num_params" not in read(prof.path)["traceparse"]
    assert facts_beside(prof.path)["samples_per_rank_step"] == 3
    assert facts_beside(prof.path)["num_unprofiled_steps"] == 5


def test_flop_that_cannot_be_counted_are_said_and_cost_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with profile(tmp_path, steps=range(2, 3), count_flop=True) as prof:
        for _ in range(4):
            torch.ones(3).sum()
            prof.step()
    assert "model_flop_per_rank_step" not in read(prof.path)["traceparse"]
    assert caplog.messages == [
        "traceparse: FLOP of the model are not counted, training goes on: no matrix operation "
        "ran in the step that was counted"
    ]


def test_a_step_inside_of_a_backward_pass_is_not_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """GIVEN a hook of a gradient that says it."""
    weight = torch.ones(3, requires_grad=True)
    with profile(tmp_path, steps=range(1, 2)) as prof:
        weight.register_post_accumulate_grad_hook(lambda _: prof.step())
        for _ in range(3):
            (weight @ torch.ones(3)).backward()
    assert caplog.messages == [
        f"traceparse: {tmp_path}: a step that ends inside of a backward pass is not counted: "
        "no profiler can start or stop there",
        f"traceparse: {tmp_path}: no trace was written: step 1 was asked for, but the loop "
        "ended in step 0; ask for earlier steps (a step ends with step())",
    ]
    assert not torch.autograd._profiler_enabled()


def test_when_the_loop_has_gone_on_long_enough_nothing_is_left_to_do(tmp_path: Path) -> None:
    session = Session(asked_for(tmp_path, steps=range(1, 2), facts={}))
    session.begin()
    for _ in range(2):
        work()
        session.step()
    # a look at the model in step 2, and five steps more
    over = []
    for _ in range(6):
        session.step()
        over.append(session.is_over)
    assert over == [False] * 5 + [True]
    assert session.kept == [tmp_path / "rank0_trace.json.gz"]


def test_what_a_forked_child_does_is_nothing_of_ours(tmp_path: Path) -> None:
    session = Session(asked_for(tmp_path, steps=range(1), facts={}))
    session.begin()
    session._pid -= 1
    session.step()
    session.close()
    assert names_in(tmp_path) == []
    session._pid += 1
    work()
    session.close()
    assert names_in(tmp_path) == kept_names([0])


def test_whoever_interrupts_the_loop_has_a_trace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KeyboardInterrupt), profile(tmp_path, steps=range(1, 9)) as prof:
        for step in range(4):
            work()
            if step == 3:
                raise KeyboardInterrupt
            prof.step()
    assert names_in(tmp_path) == kept_names([0])
    (message,) = caplog.messages
    assert "the loop ended in step 3 before its step() was called" in message


def test_a_loop_that_ends_the_process_has_a_trace(tmp_path: Path) -> None:
    with pytest.raises(SystemExit), profile(tmp_path, steps=range(1, 9)) as prof:
        work()
        prof.step()
        work()
        raise SystemExit(3)
    assert step_names(tmp_path / "rank0_trace.json.gz") == ["ProfilerStep#1"]


def test_whoever_is_told_to_end_keeps_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    killed: list[int] = []
    monkeypatch.setattr("traceparse.capture.signals.os.kill", lambda *_: killed.append(1))
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with profile(tmp_path, steps=range(1, 9)) as prof:
            for step in range(4):
                work()
                if step == 2:
                    signal.raise_signal(signal.SIGTERM)
                    assert prof.path is not None
                prof.step()
    finally:
        signal.signal(signal.SIGTERM, before)
    path = tmp_path / "rank0_trace.json.gz"
    assert killed == [1]
    assert step_names(path) == ["ProfilerStep#1", "ProfilerStep#2"]
    assert caplog.messages == [
        f"traceparse: {path}: the job is told to end (SIGTERM) in step 2: what is recorded "
        "until now is kept",
        f"traceparse: {path}: steps 1-8 were asked for, but the loop ended in step 2 before "
        "its step() was called: the trace has that step cut short or empty",
    ]


def test_a_device_that_stopped_recording_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch.autograd, "_is_kineto_stopped", lambda: True, raising=False)
    with profile(tmp_path, steps=range(1)) as prof:
        work()
        assert prof._session is not None
        assert prof._session._recorder is not None
        prof._session._recorder._session.use_device = "cuda"
        prof.step()
    assert caplog.messages == [
        f"traceparse: {tmp_path / 'rank0_trace.json.gz'}: the device's tracer stopped before "
        "the recording did: kernels are missing at its end; record fewer steps"
    ]


def test_a_rank_that_is_known_late_is_asked_late(
    tmp_path: Path, fake_group: Callable[[], None]
) -> None:
    """GIVEN rank 3, whose environment says nothing of it WHEN the loop begins."""
    with profile(tmp_path, steps=range(2, 3), ranks="3") as prof:
        fake_group()
        for _ in range(3):
            work()
            prof.step()
    assert names_in(tmp_path) == kept_names([3])
    assert facts_beside(prof.path)["world_size"] == 8


def test_the_directory_may_be_taken_away_before_the_trace_is_written(tmp_path: Path) -> None:
    with profile(tmp_path / "there", steps=range(1)) as prof:
        (tmp_path / "there").rmdir()
        work()
        prof.step()
    assert names_in(tmp_path / "there") == kept_names([0])
