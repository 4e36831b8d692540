from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState

from tests.capture.loops import facts_beside, names_in
from tests.capture.recorded import run_python, within_steps
from traceparse.capture.accelerate import profile
from traceparse.errors import MissingExtraError, UsageError

ACCUMULATED = 3
OPTIMIZER = "Optimizer.step#SGD.step"


@pytest.fixture(autouse=True)
def no_state_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


class Loop:
    """A training of one's own with Accelerate, of ``ACCUMULATED`` batches a step."""

    def __init__(self, *, scheduler: str = "none") -> None:
        torch.manual_seed(0)
        self.accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATED)
        model = torch.nn.Linear(4, 1)
        optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1)
        if scheduler == "before":
            self.scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
        data = torch.utils.data.TensorDataset(torch.arange(480.0).reshape(120, 4) / 480)
        loader = torch.utils.data.DataLoader(data, batch_size=2)
        prepared = self.accelerator.prepare(model, optimizer, loader)
        self.model, self.optimizer, self.loader = prepared
        if scheduler == "behind":
            self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 5)
        self.losses: list[float] = []

    def train(self, num_steps: int, *, fail_at: int | None = None) -> None:
        for batch, (inputs,) in enumerate(self.loader):
            if batch == num_steps * ACCUMULATED:
                break
            if batch == fail_at:
                raise ZeroDivisionError
            with self.accelerator.accumulate(self.model):
                loss = self.model(inputs).square().mean()
                self.accelerator.backward(loss)
                self.optimizer.step()
                self.optimizer.zero_grad()
            self.losses.append(loss.item())


@pytest.mark.parametrize("scheduler", ["before", "behind"])
def test_a_step_is_the_optimizers_with_all_batches_that_it_accumulates(
    tmp_path: Path, scheduler: str, caplog: pytest.LogCaptureFixture
) -> None:
    """GIVEN a scheduler, made before the optimizer is prepared or behind THEN no difference."""
    loop = Loop(scheduler=scheduler)
    with profile(loop.accelerator, tmp_path, steps=range(3, 6), samples_per_step=6) as prof:
        loop.train(8)
    assert prof.path == tmp_path / "rank0_trace.json.gz"
    steps = ("ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5")
    assert within_steps(prof.path, "aten::linear") == dict.fromkeys(steps, ACCUMULATED)
    assert within_steps(prof.path, OPTIMIZER) == dict.fromkeys(steps, 1)
    assert caplog.messages == []
    facts = facts_beside(prof.path)
    assert facts["step_on"] == "optimizer"
    assert facts["steps"] == [3, 5]
    assert facts["num_params"] == 5
    assert facts["samples_per_rank_step"] == facts["samples_per_step"] == 2 * ACCUMULATED


def test_losses_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    losses = {}
    for is_captured in (False, True):
        loop = Loop()
        captured = profile(loop.accelerator, tmp_path, steps=range(2, 4))
        with captured if is_captured else nullcontext():
            loop.train(8)
        losses[is_captured] = loop.losses
        assert "step" not in vars(loop.optimizer)
    assert names_in(tmp_path) == ["rank0_facts.json", "rank0_trace.json.gz"]
    assert losses[False] == losses[True]
    assert len(set(losses[True])) == 8 * ACCUMULATED


def test_an_exception_goes_on_and_what_was_recorded_is_kept_as_the_rank_that_is_given(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop = Loop()
    captured = profile(loop.accelerator, tmp_path, steps=range(2, 6), rank=7)
    with pytest.raises(ZeroDivisionError), captured as prof:
        loop.train(8, fail_at=4 * ACCUMULATED + 1)
    assert prof.path == tmp_path / "rank7_trace.json.gz"
    steps = {"ProfilerStep#2": 1, "ProfilerStep#3": 1, "ProfilerStep#4": 0}
    assert within_steps(prof.path, OPTIMIZER) == steps
    assert "the loop ended in step 4" in caplog.text


def test_a_scheduler_that_is_made_meanwhile_keeps_its_step(tmp_path: Path) -> None:
    loop = Loop()
    with profile(loop.accelerator, tmp_path, steps=range(1, 2)) as prof:
        scheduler = torch.optim.lr_scheduler.StepLR(loop.optimizer, 1, gamma=0.5)
        loop.train(3)
    assert prof.path is not None
    loop.train(2)
    scheduler.step()
    assert scheduler.get_last_lr() == [0.05]


def test_of_two_optimizers_the_last_of_a_round_ends_the_step(tmp_path: Path) -> None:
    loop = Loop()
    first = loop.accelerator.prepare(torch.optim.SGD([torch.ones(2)], lr=0.1))
    with profile(loop.accelerator, tmp_path, steps=range(2, 4)) as prof:
        for _ in range(6):
            loop.model(torch.ones(2, 4)).sum().backward()
            first.step()
            loop.optimizer.step()
    steps = ("ProfilerStep#2", "ProfilerStep#3")
    assert within_steps(prof.path, OPTIMIZER) == dict.fromkeys(steps, 2)


def test_ranks_that_are_not_asked_for_record_nothing(tmp_path: Path) -> None:
    loop = Loop()
    with profile(loop.accelerator, tmp_path, steps=range(2, 4), ranks="1-3") as prof:
        loop.train(8)
    assert prof.path is None
    assert names_in(tmp_path) == []


def test_a_capture_that_cannot_keep_anything_does_not_reach_the_loop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    loop = Loop()
    with profile(loop.accelerator, tmp_path / "file", steps=range(2, 4)) as prof:
        loop.train(8)
    assert prof.path is None
    assert len(loop.losses) == 8 * ACCUMULATED
    assert "training goes on" in caplog.text


def test_wrong_steps_and_no_optimizer_are_refused_on_entering(tmp_path: Path) -> None:
    loop = Loop()
    with (
        pytest.raises(UsageError, match="needs one contiguous range"),
        profile(loop.accelerator, tmp_path, steps=[3, 5]),
    ):
        pass
    with pytest.raises(UsageError) as caught, profile(Accelerator(cpu=True), tmp_path):
        pass
    assert str(caught.value) == (
        "the accelerator has no optimizer whose steps could be counted: prepare one first, "
        "with accelerator.prepare(...)"
    )


def test_without_accelerate_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "accelerate", None)
    monkeypatch.delitem(sys.modules, "traceparse.capture.accelerate")
    with pytest.raises(MissingExtraError) as caught:
        import_module("traceparse.capture.accelerate")
    assert str(caught.value) == (
        "traceparse.capture.accelerate needs accelerate: pip install accelerate"
    )


TWO_RANKS = """
import sys, torch
from accelerate import Accelerator
from traceparse.capture.accelerate import profile

torch.set_num_threads(1)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.ones(80, 4), batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
with profile(accelerator, sys.argv[1], steps=range(2, 4)):
    for inputs in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(inputs).sum())
            optimizer.step()
            optimizer.zero_grad()
accelerator.end_training()
"""


@pytest.mark.slow
def test_two_ranks_leave_a_trace_each(tmp_path: Path) -> None:
    """GIVEN 20 batches of two ranks, two a step THEN steps 2 and 3 of 5 reduce once each."""
    script = tmp_path / "train.py"
    script.write_text(TWO_RANKS)
    traces = tmp_path / "traces"
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    run = run_python(*torchrun, str(script), str(traces))
    assert run.returncode == 0, run.stderr
    for rank in range(2):
        trace = traces / f"rank{rank}_trace.json.gz"
        steps = ("ProfilerStep#2", "ProfilerStep#3")
        assert within_steps(trace, OPTIMIZER) == dict.fromkeys(steps, 1)
        assert within_steps(trace, "gloo:all_reduce") == dict.fromkeys(steps, 1)
        facts = facts_beside(trace)
        assert (facts["rank"], facts["world_size"], facts["backend"]) == (rank, 2, "gloo")
        assert facts["samples_per_rank_step"] == 8
