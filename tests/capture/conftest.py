from __future__ import annotations

import gc
import json
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.distributed.fake_pg import FakeStore

from traceparse.capture import keeper
from traceparse.engine import pack
from traceparse.errors import TraceparseError, one_line

_OF_THE_JOB = ("RANK", "LOCAL_RANK", "SLURM_LOCALID", "WORLD_SIZE", "TRACEPARSE_PYTHON")


@pytest.fixture(autouse=True)
def no_rank_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _OF_THE_JOB:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what other tests have compiled in this process."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    for group in ("frames", "stats") if dynamo else ():
        monkeypatch.setitem(dynamo.counters, group, Counter())


@pytest.fixture
def alone() -> Iterator[None]:
    """Nothing but what the test makes, as other tests may have left models."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Finished:
    """A process that packs a trace, as if it had been quick: it ran here."""

    def __init__(self, keeping: keeper.Keeping) -> None:
        try:
            verdict = pack.keep(json.loads(keeping.request()))
        except (TraceparseError, OSError) as error:
            verdict = {"error": one_line(error)}
        self.returncode = 0
        self._answer = json.dumps(verdict).encode()

    def poll(self) -> int:
        return 0

    def wait(self, _timeout_s: float) -> int:
        return 0

    def communicate(self) -> tuple[bytes, None]:
        return self._answer, None


@pytest.fixture
def packed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process beside the job does is done in this one: a test starts none."""
    monkeypatch.setattr(keeper, "_started", Finished)


@pytest.fixture
def fake_group() -> Iterator[Callable[..., None]]:
    """Torch.distributed as rank 3 of 8, without the other seven."""
    groups = []

    def come_up(**options: Any) -> None:
        torch.distributed.init_process_group(
            "fake", rank=3, world_size=8, store=FakeStore(), **options
        )
        groups.append(1)

    yield come_up
    if groups:
        torch.distributed.destroy_process_group()


@pytest.fixture(scope="session", autouse=True)
def no_signal_is_ignored() -> Iterator[None]:
    """As with nohup, or behind a shell's ``&``: jobs and commands would inherit it."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
    ignored = [number for number in numbers if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        is_int = number == signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_int else signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
