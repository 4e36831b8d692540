from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from traceparse.capture.demo_train import build_model, main, train
from traceparse.errors import CaptureError


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
    main(["--out", str(tmp_path), "--steps", "1", "2", "--num-steps", "3"])
    trace = json.loads(gzip.decompress((tmp_path / "rank0_trace.json.gz").read_bytes()))
    names = [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]
    assert sorted(name for name in names if name.startswith("ProfilerStep")) == [
        "ProfilerStep#1",
        "ProfilerStep#2",
    ]
    assert {"gloo:all_reduce", "aten::addmm", "Optimizer.step#AdamW.step"} <= set(names)
    assert trace["distributedInfo"]["backend"] == "gloo"
    assert trace["traceparse"] == {
        # without 4096 x 128 of the embedding
        "params": sum(param.numel() for param in build_model().parameters()) - 4096 * 128,
        "tokens_per_step": 8 * 64,
        "num_threads": 1,
    }


def test_the_process_group_is_gone_after_a_failure(tmp_path: Path) -> None:
    (tmp_path / "rank0_trace.json.gz").touch()
    with pytest.raises(CaptureError, match="there is a trace of rank 0 already"):
        train(tmp_path, steps=range(1), num_steps=1)
    assert not torch.distributed.is_initialized()


def test_the_model_scores_every_word_at_every_position() -> None:
    scores = build_model()(torch.zeros(2, 5, dtype=torch.int64))
    assert scores.shape == (2, 5, 4096)
