from __future__ import annotations

import multiprocessing
import signal
import threading
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from tests.traces import kernel, write, write_rank
from traceparse.engine import analyze
from traceparse.engine import local as local_module
from traceparse.engine.local import digest_files
from traceparse.errors import InputError, TraceparseError


class _Seen:
    def __init__(self) -> None:
        self.started: list[tuple[int, int]] = []
        self.bytes = self.files = 0

    def start(self, num_files: int, num_bytes: int) -> None:
        self.started.append((num_files, num_bytes))

    def advance(self, num_bytes: int) -> None:
        self.bytes += num_bytes

    def file_done(self) -> None:
        self.files += 1


@pytest.mark.slow
def test_processes_give_what_one_gives_and_count_the_same(tmp_path):
    for rank in range(3):
        write_rank(tmp_path, rank, 3)
    (tmp_path / "rank9.json").write_text("nothing")
    alone, together = _Seen(), _Seen()
    one = analyze(tmp_path, jobs=1, progress=alone)
    many = analyze(tmp_path, jobs=2, progress=together)
    assert one == many
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    for seen in (alone, together):
        assert (seen.started, seen.bytes, seen.files) == ([(4, total)], total, 4)


def test_a_file_that_vanishes_fails_alone(tmp_path):
    path = write_rank(tmp_path, 0, 1)
    outcomes = digest_files([tmp_path / "gone.json", path], jobs=1, rank=None, progress=None)
    assert isinstance(outcomes[0], InputError)
    assert not isinstance(outcomes[1], InputError)


def test_a_worker_counts_into_its_parents_number(tmp_path, monkeypatch):
    """What runs in worker processes, run here: coverage does not see into those."""
    path = write(tmp_path / "rank0.json", [kernel(1, 1)])
    context = multiprocessing.get_context("spawn")
    monkeypatch.setattr(local_module, "_bytes_read", [])
    number = context.Value("q", 5)
    local_module._share(number)
    outcome = local_module._digest_counted(path, 2)
    assert number.value == 5 + path.stat().st_size
    assert not isinstance(outcome, InputError)


@pytest.mark.slow
def test_an_interruption_ends_the_processes(tmp_path):
    class Interrupting(_Seen):
        def advance(self, num_bytes: int) -> None:  # noqa: ARG002 - the protocol's name
            raise KeyboardInterrupt

    paths = [write_rank(tmp_path, rank, 2) for rank in range(2)]
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        digest_files(paths, jobs=2, rank=None, progress=Interrupting())
    assert multiprocessing.active_children() == []
    assert signal.getsignal(signal.SIGINT) is handler


class _DyingPool:
    """A pool whose workers are killed; with real ones the kernel's memory would have to end."""

    def __init__(self, *_: object, **__: object) -> None:
        self.is_shut = False

    def submit(self, *_: object) -> Future[object]:
        future: Future[object] = Future()
        future.set_exception(BrokenProcessPool("gone"))
        return future

    def shutdown(self, **_: object) -> None:
        self.is_shut = True


def test_a_killed_process_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(local_module, "ProcessPoolExecutor", _DyingPool)
    paths = [write_rank(tmp_path, rank, 2) for rank in range(2)]
    with pytest.raises(TraceparseError, match=r"was killed .*; try again with --jobs 1"):
        digest_files(paths, jobs=2, rank=None, progress=None)


def test_other_threads_leave_signals_alone():
    seen: list[object] = []

    def work() -> None:
        with local_module._workers_ignore_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
    with local_module._workers_ignore_interrupts():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
