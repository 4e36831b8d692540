from __future__ import annotations

import inspect
import socket
from collections.abc import Iterator

import pytest
import torch

from traceparse.capture import demo_train
from traceparse.capture.demo_train import build_model, main, train


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Torchrun's environment, for a job of one rank."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    job = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in job.items():
        monkeypatch.setenv(name, str(value))
    num_threads = torch.get_num_threads()
    yield
    torch.set_num_threads(num_threads)


def test_the_loss_falls_and_is_the_same_every_time() -> None:
    losses = [train(num_steps=4) for _ in range(2)]
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
    assert not torch.distributed.is_initialized()


def test_the_command_line_says_how_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(demo_train, "train", lambda *, num_steps: asked.append(num_steps))
    main(["--num-steps", "3"])
    main([])
    assert asked == [3, 40]


def test_the_process_group_is_gone_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("no model")

    monkeypatch.setattr(demo_train, "build_model", broken)
    with pytest.raises(RuntimeError, match="no model"):
        train(num_steps=1)
    assert not torch.distributed.is_initialized()


def test_it_knows_nothing_of_traceparse() -> None:
    """It is the training script of anyone: whatever captures it comes from outside."""
    assert "import traceparse" not in inspect.getsource(demo_train)
    assert "from traceparse" not in inspect.getsource(demo_train)


def test_the_model_scores_every_word_at_every_position() -> None:
    scores = build_model()(torch.zeros(2, 5, dtype=torch.int64))
    assert scores.shape == (2, 5, 4096)
