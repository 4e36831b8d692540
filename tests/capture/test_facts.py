from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.distributed import distributed_c10d

import traceparse
from traceparse.capture import facts
from traceparse.capture.facts import current_rank, process_facts
from traceparse.capture.said import Said
from traceparse.errors import UsageError


def test_a_process_alone_has_no_job() -> None:
    told = process_facts(Said(), with_host=False)
    assert told.keys() - {"device_name"} == {
        "facts_version",
        "num_threads",
        "traceparse_version",
        "python_version",
        "torch_version",
    }
    assert told["facts_version"] == 1
    assert told["traceparse_version"] == traceparse.__version__
    assert told["torch_version"] == torch.__version__
    assert told["python_version"] == platform.python_version()


def test_where_it_runs_is_told_when_asked_for() -> None:
    told = process_facts(Said(), with_host=True)
    assert told["host_name"] == platform.node()
    assert told["command"] == sys.argv
    assert told["folder"] == os.fspath(Path.cwd())


def test_process_groups_are_told_with_their_ranks(fake_group: Callable[..., None]) -> None:
    fake_group()
    torch.distributed.new_group([1, 2, 3, 6], group_desc='mp "é"\n')
    told = process_facts(Said(), with_host=False)
    assert (told["world_size"], told["backend"]) == (8, "fake")
    assert [(group["ranks"], group["description"]) for group in told["groups"]] == [
        ("0-7", "default_pg"),
        ("1-3,6", 'mp "é"\n'),
    ]
    names = [group["name"] for group in told["groups"]]
    assert len(set(names)) == 2
    assert "" not in names


def test_groups_without_members_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SimpleNamespace(pg_group_ranks={"a": {}, "b": {5: 0, 4: 1}}, pg_names={"b": 7})
    monkeypatch.setattr(distributed_c10d, "_world", world)
    assert list(facts._groups()) == [{"name": "7", "ranks": "4-5", "description": ""}]


def test_versions_of_a_gpu_are_told() -> None:
    torch_like: Any = SimpleNamespace(
        __version__="2.9",
        version=SimpleNamespace(cuda="12.8", hip=None),
        cuda=SimpleNamespace(
            is_available=lambda: True, nccl=SimpleNamespace(version=lambda: (2, 27, 3))
        ),
        distributed=SimpleNamespace(is_nccl_available=lambda: True),
    )
    told = facts._versions(torch_like)
    assert (told["cuda_version"], told["nccl_version"]) == ("12.8", "2.27.3")
    torch_like.distributed.is_nccl_available = lambda: False
    assert facts._versions(torch_like)["nccl_version"] is None


def test_a_fact_that_is_not_told_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise RuntimeError("no driver")

    monkeypatch.setattr(torch.cuda, "is_available", broken)
    told = process_facts(Said(), with_host=False)
    assert told == {"facts_version": 1, "num_threads": torch.get_num_threads()}
    assert caplog.messages == [
        f"traceparse: facts are missing ({name}), training goes on: RuntimeError: no driver"
        for name in ("versions", "device_facts", "limit_facts")
    ]


@pytest.mark.parametrize(("text", "rank"), [(None, 0), ("0", 0), ("12", 12)])
def test_the_rank_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str | None, rank: int
) -> None:
    if text is not None:
        monkeypatch.setenv("RANK", text)
    assert current_rank() == rank


@pytest.mark.parametrize("text", ["", "-1", "1.0", "one", "²"])
def test_an_environment_without_sense(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("RANK", text)
    with pytest.raises(UsageError) as caught:
        current_rank()
    assert str(caught.value) == (
        f"RANK={text!r} in the environment is no rank; set it, or pass rank="
    )
