from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import traceparse
from tests.capture.loops import facts_beside, nobody_listens, read, step_names
from traceparse.capture.optimizers import OPTIMIZERS, Leader


class Thing:
    """An optimizer, as the leader sees one."""


def ends(*steps: object) -> str:
    leader = Leader()
    return "".join("x" if leader.ends_step(it) else "." for it in steps)


def test_one_optimizer_ends_every_step() -> None:
    assert ends(*[Thing()] * 3) == "xxx"


def test_of_a_round_the_last_one_ends_the_step() -> None:
    """The very first step is short, as nobody knows what comes; then steps are rounds."""
    first, last = Thing(), Thing()
    assert ends(*[first, last] * 4) == "x..x.x.x"


def test_of_three_the_last_one_ends_the_step() -> None:
    one, two, three = Thing(), Thing(), Thing()
    assert ends(*[one, two, three] * 3) == "x....x..x"


def test_one_that_steps_less_often_leads() -> None:
    """As a generator does, of which a step comes behind five of the critic."""
    critic, generator = Thing(), Thing()
    assert ends(*[*[critic] * 5, generator] * 3) == "xxxxx......x.....x"


def test_one_that_comes_late_leads_nothing() -> None:
    often, seldom = Thing(), Thing()
    assert ends(*[often] * 12, seldom, *[often, seldom] * 3) == "x" * 12 + "." + "x." * 3


def test_one_that_takes_over_leads_after_a_while() -> None:
    old, new = Thing(), Thing()
    assert ends(*[old] * 20, *[new] * 53) == "x" * 20 + "." * 50 + "x" * 3


def test_one_that_is_gone_is_followed_at_once() -> None:
    leader = Leader()
    old = Thing()
    for _ in range(20):
        leader.ends_step(old)
    del old
    new = Thing()
    assert leader.ends_step(new)
    assert leader.ends_step(new)


# Optimizers of torch


class Steps:
    """Who has stepped."""

    def __init__(self) -> None:
        self.by: list[object] = []

    @property
    def num(self) -> int:
        return len(self.by)


@pytest.fixture
def steps() -> Iterator[Steps]:
    it = Steps()
    OPTIMIZERS.listen(it.by.append)
    yield it
    nobody_listens()


def param() -> nn.Parameter:
    it = nn.Parameter(torch.ones(3))
    it.grad = torch.ones(3)
    return it


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad])
def test_a_step_is_told_when_it_has_ended(steps: Steps, kind: Any) -> None:
    weight = param()
    optimizer = kind([weight], lr=0.5)
    optimizer.step()
    assert steps.by == [optimizer]
    assert not torch.equal(weight.detach(), torch.ones(3))


def test_what_was_made_before_is_heard() -> None:
    nobody_listens()
    optimizer = torch.optim.SGD([param()], lr=0.5)
    heard: list[object] = []
    OPTIMIZERS.listen(heard.append)
    optimizer.step()
    nobody_listens()
    optimizer.step()
    assert heard == [optimizer]


def test_a_subclass_that_calls_the_one_above_steps_once(steps: Steps) -> None:
    class Mine(torch.optim.SGD):  # type: ignore[misc]
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    optimizer = Mine([param()], lr=0.5)
    optimizer.step()
    assert steps.by == [optimizer]


def test_one_around_another_steps_once(steps: Steps) -> None:
    """As ZeroRedundancyOptimizer does, and some of bitsandbytes."""

    class Around(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})
            self.inner = torch.optim.SGD(params, lr=0.5)

        def step(self, closure: Any = None) -> Any:
            return self.inner.step(closure)

    optimizer = Around([param()])
    optimizer.step()
    assert steps.by == [optimizer]


def test_a_closure_that_is_called_often_is_one_step(steps: Steps) -> None:
    weight = param()
    optimizer = torch.optim.LBFGS([weight], max_iter=4)
    calls: list[int] = []

    def closure() -> Any:
        calls.append(1)
        optimizer.zero_grad()
        loss = (weight - 3).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert len(calls) > 1
    assert steps.num == 1


def test_a_scheduler_of_the_learning_rate_changes_nothing(steps: Steps) -> None:
    optimizer = torch.optim.SGD([param()], lr=0.5)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    for _ in range(3):
        optimizer.step()
        with warnings.catch_warnings():
            scheduler.step()
    assert steps.num == 3


@pytest.mark.parametrize("overflows", [False, True])
def test_a_step_that_the_scaler_skips_is_none(steps: Steps, overflows: bool) -> None:
    weight = param()
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale((weight * (float("inf") if overflows else 1)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert steps.num == (0 if overflows else 1)


def test_a_step_that_fails_is_none(steps: Steps) -> None:
    class Broken(torch.optim.SGD):  # type: ignore[misc]
        def step(self, closure: Any = None) -> Any:  # noqa: ARG002
            raise ZeroDivisionError

    optimizer = Broken([param()], lr=0.5)
    with pytest.raises(ZeroDivisionError):
        optimizer.step()
    assert steps.num == 0
    torch.optim.SGD([param()], lr=0.5).step()
    assert steps.num == 1


def test_a_listener_that_fails_stops_no_step(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("weak references to it are not allowed")

    OPTIMIZERS._said._texts.clear()
    OPTIMIZERS.listen(broken)
    weight = param()
    optimizer = torch.optim.SGD([weight], lr=0.5)
    for _ in range(2):
        optimizer.step()
    nobody_listens()
    assert torch.equal(weight.detach(), torch.zeros(3))
    assert caplog.messages == [
        "traceparse: no trace was kept, training goes on: RuntimeError: weak references to it "
        "are not allowed"
    ]


def test_the_first_of_a_class_that_is_made_is_told() -> None:
    made: list[int] = []

    class New(torch.optim.SGD):  # type: ignore[misc]
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    OPTIMIZERS.listen(lambda _: None, on_made=lambda: made.append(1))
    for _ in range(2):
        New([param()], lr=0.5)
    nobody_listens()
    assert made == [1]


# Loops whose steps the optimizers tell


@pytest.mark.usefixtures("packed_at_once")
class TestFollowed:
    """A capture around a function that trains."""

    @staticmethod
    def captured(out: Path, train: Callable[[], None], steps: range) -> list[str]:
        traceparse.profile(out, steps=steps)(train)()
        path = out / "rank0_trace.json.gz"
        assert facts_beside(path)["step_on"] == "optimizer"
        return step_names(path)

    def test_accumulated_gradients_are_one_step(self, tmp_path: Path) -> None:
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def train() -> None:
            for number in range(12):
                model(torch.ones(2, 3)).sum().backward()
                if number % 4 == 3:
                    optimizer.step()
                    optimizer.zero_grad()

        assert self.captured(tmp_path, train, range(1, 3)) == [
            "ProfilerStep#1",
            "ProfilerStep#2",
        ]

    def test_of_two_that_take_turns_a_round_is_a_step(self, tmp_path: Path) -> None:
        """The numbers of steps are those of rounds, from the second on."""
        models = [nn.Linear(3, 2), nn.Linear(2, 3)]
        optimizers = [torch.optim.SGD(it.parameters(), lr=0.1) for it in models]

        def train() -> None:
            for _ in range(5):
                for model, optimizer in zip(models, optimizers, strict=True):
                    model(torch.ones(1, model.in_features)).sum().backward()
                    optimizer.step()

        assert self.captured(tmp_path, train, range(3, 4)) == ["ProfilerStep#3"]
        names = [
            event["name"]
            for event in _events(tmp_path)
            if event["name"].startswith("Optimizer.step#")
        ]
        assert len(names) == 2

    def test_one_for_each_parameter_is_a_step_of_all(self, tmp_path: Path) -> None:
        """As where an optimizer steps in the backward pass, to save memory."""
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
        for weight in model.parameters():
            own = torch.optim.SGD([weight], lr=0.1)

            def step(it: Any, own: Any = own) -> None:
                own.step()
                it.grad = None

            weight.register_post_accumulate_grad_hook(step)

        def train() -> None:
            for _ in range(6):
                model(torch.ones(2, 3)).sum().backward()

        self.captured(tmp_path, train, range(4, 5))
        names = [event["name"] for event in _events(tmp_path)]
        assert names.count("Optimizer.step#SGD.step") == 4

    def test_steps_end_outside_of_the_span_of_the_optimizer(self, tmp_path: Path) -> None:
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def train() -> None:
            for _ in range(3):
                model(torch.ones(2, 3)).sum().backward()
                optimizer.step()

        self.captured(tmp_path, train, range(1, 2))
        spans = {event["name"]: event for event in _events(tmp_path) if event["ph"] == "X"}
        step, own = spans["ProfilerStep#1"], spans["Optimizer.step#SGD.step"]
        assert own["ts"] + own["dur"] <= step["ts"] + step["dur"]

    def test_nobody_is_heard_when_the_function_has_ended(self, tmp_path: Path) -> None:
        @traceparse.profile(tmp_path, steps=range(1))
        def train() -> int:
            torch.optim.SGD([param()], lr=0.1).step()
            return 7

        assert train() == 7
        assert not OPTIMIZERS._listeners

    def test_its_errors_are_its_own(self, tmp_path: Path) -> None:
        @traceparse.profile(tmp_path, steps=range(1))
        def train() -> None:
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            train()
        assert not OPTIMIZERS._listeners
        assert not torch.autograd._profiler_enabled()


def _events(folder: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = read(folder / "rank0_trace.json.gz")["traceEvents"]
    return events


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_step_that_is_compiled_is_not_counted_nor_changed() -> None:
    """GIVEN torch.compile around optimizer.step(), which nobody can see from outside."""
    heard: list[object] = []
    weight = param()
    optimizer = torch.optim.SGD([weight], lr=0.5)
    OPTIMIZERS.listen(heard.append)

    @torch.compile(backend="eager")  # type: ignore[untyped-decorator]
    def step() -> None:
        optimizer.step()

    step()
    nobody_listens()
    assert torch.equal(weight.detach(), torch.full((3,), 0.5))
