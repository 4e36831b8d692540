from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.capture.loops import facts_beside
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


def test_the_loss_falls_and_is_the_same_every_time(tmp_path: Path) -> None:
    losses = [train(tmp_path / name, steps=range(1), num_steps=4) for name in ("a", "b")]
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
    assert not torch.distributed.is_initialized()


def test_the_command_line_says_what_is_captured(tmp_path: Path) -> None:
    main(["--out", str(tmp_path), "--steps", "1", "2", "--num-steps", "4"])
    trace = json.loads(gzip.decompress((tmp_path / "rank0_trace.json.gz").read_bytes()))
    names = [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]
    assert sorted(name for name in names if name.startswith("ProfilerStep")) == [
        "ProfilerStep#1",
        "ProfilerStep#2",
    ]
    assert {"gloo:all_reduce", "aten::addmm", "Optimizer.step#AdamW.step"} <= set(names)
    assert trace["distributedInfo"]["backend"] == "gloo"
    num_params = sum(param.numel() for param in build_model().parameters())
    told = trace["traceparse"]
    assert told["params"] == num_params - 4096 * 128  # without the embedding
    assert (told["tokens_per_step"], told["num_threads"]) == (8 * 64, 1)
    # and what is seen by itself, behind the recorded steps
    beside = facts_beside(tmp_path / "rank0_trace.json.gz")
    assert (beside["num_params"], beside["num_embedding_params"]) == (num_params, 4096 * 128)
    assert (beside["samples_per_rank_step"], beside["tokens_per_rank_step"]) == (8, 8 * 64)


def test_the_process_group_is_gone_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> float:
        raise ZeroDivisionError

    monkeypatch.setattr(demo_train, "_train_step", broken)
    with pytest.raises(ZeroDivisionError):
        train(tmp_path, steps=range(1), num_steps=1)
    assert not torch.distributed.is_initialized()


def test_it_trains_where_no_trace_can_be_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "rank0_trace.json.gz").touch()
    assert len(train(tmp_path, steps=range(1), num_steps=2)) == 2
    assert "there is a trace of rank 0 already" in caplog.text


def test_the_model_scores_every_word_at_every_position() -> None:
    scores = build_model()(torch.zeros(2, 5, dtype=torch.int64))
    assert scores.shape == (2, 5, 4096)
