from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.capture.loops import (
    facts_beside,
    kept_names,
    names_in,
    nobody_listens,
    step_names,
)
from traceparse.capture import hook
from traceparse.capture.environment import Told, with_capture
from traceparse.capture.hook import Following, install
from traceparse.capture.optimizers import OPTIMIZERS
from traceparse.capture.session import Session

pytestmark = pytest.mark.usefixtures("packed_at_once")


@pytest.fixture
def at_exit(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be called when the process ends."""
    registered: list[Any] = []

    def register(function: Any, *_: Any) -> Any:
        if getattr(function, "__func__", None) is Session.close:
            registered.append(function)
        return function

    monkeypatch.setattr(atexit, "register", register)
    return registered


@pytest.fixture(autouse=True)
def nobody_listens_afterwards() -> Iterator[None]:
    yield
    nobody_listens()


def told(monkeypatch: pytest.MonkeyPatch, out: Path, **options: Any) -> None:
    for name, value in with_capture({}, Told(str(out), (1, 2), **options)).items():
        if name.startswith("TRACEPARSE"):
            monkeypatch.setenv(name, value)


def trained(num_steps: int) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(num_steps):
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()


def end(at_exit: list[Any]) -> None:
    for each in reversed(at_exit):
        each()


def test_without_being_told_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch, at_exit: list[Any]
) -> None:
    monkeypatch.delenv("TRACEPARSE_CAPTURE", raising=False)
    nobody_listens()
    install()
    assert not OPTIMIZERS._listeners
    assert at_exit == []


def test_optimizers_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_exit: list[Any]
) -> None:
    told(monkeypatch, tmp_path, params=3, tokens_per_step=4, samples_per_step=5)
    install()
    trained(4)
    assert len(at_exit) == 1
    end(at_exit)
    assert names_in(tmp_path) == kept_names([0])
    path = tmp_path / "rank0_trace.json.gz"
    assert step_names(path) == ["ProfilerStep#1", "ProfilerStep#2"]
    facts = facts_beside(path)
    assert (facts["params"], facts["tokens_per_step"], facts["samples_per_step"]) == (3, 4, 5)
    assert facts["step_on"] == "optimizer"


def test_a_process_that_trains_nothing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_exit: list[Any]
) -> None:
    told(monkeypatch, tmp_path / "out")
    install()
    end(at_exit)
    assert names_in(tmp_path) == []


@pytest.fixture
def job() -> Iterator[Any]:
    it = ModuleType("job_that_is_followed")
    it.train_step = lambda: trained(2)  # type: ignore[attr-defined]
    sys.modules[it.__name__] = it
    yield it
    del sys.modules[it.__name__]


def test_a_function_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_exit: list[Any], job: Any
) -> None:
    told(monkeypatch, tmp_path, step_on="job_that_is_followed:train_step")
    install()
    for _ in range(4):
        job.train_step()
    end(at_exit)
    path = tmp_path / "rank0_trace.json.gz"
    assert step_names(path) == ["ProfilerStep#1", "ProfilerStep#2"]
    assert facts_beside(path)["step_on"] == "job_that_is_followed:train_step"


def test_a_function_of_the_main_module_is_found_when_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_exit: list[Any], job: Any
) -> None:
    """GIVEN a main module that makes its optimizer before it defines the function."""
    monkeypatch.setitem(sys.modules, "__main__", job)
    train_step = job.train_step
    del job.train_step
    told(monkeypatch, tmp_path, step_on="__main__:train_step")
    install()
    trained(1)
    job.train_step = train_step
    trained(1)
    for _ in range(4):
        job.train_step()
    end(at_exit)
    assert step_names(tmp_path / "rank0_trace.json.gz") == ["ProfilerStep#1", "ProfilerStep#2"]


class Own(torch.optim.SGD):  # type: ignore[misc]
    """An optimizer of a class that no other test makes."""

    def step(self, closure: Any = None) -> Any:
        return super().step(closure)


def test_a_function_that_there_is_not_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told(monkeypatch, tmp_path, step_on="__main__:none")
    install()
    for _ in range(2):
        Own([torch.ones(3, requires_grad=True)], lr=0.1).step()
    assert caplog.messages == [
        "traceparse: an optimizer has stepped, and __main__:none is not there yet: no step is "
        "counted before it is"
    ]


def test_a_function_that_cannot_be_replaced_stops_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_exit: list[Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """GIVEN one of a type that is written in C."""
    told(monkeypatch, tmp_path, step_on="builtins:list.append")
    install()
    (message,) = caplog.messages
    assert message.startswith("traceparse: no trace was kept, training goes on: TypeError: ")
    assert at_exit == []


def test_what_torch_refuses_stops_no_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("another torch")

    monkeypatch.setattr(OPTIMIZERS, "listen", broken)
    Following(Told(str(tmp_path), (1, 2))).follow_optimizers()
    assert caplog.messages == [
        "traceparse: no trace was kept, training goes on: RuntimeError: another torch"
    ]


def test_ranks_that_are_nonsense_stop_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told(monkeypatch, tmp_path, ranks="nobody")
    install()
    trained(3)
    assert len(caplog.messages) == 1
    assert "ranks='nobody': give 'all'" in caplog.text
    assert hook.__all__ == ["install"]
