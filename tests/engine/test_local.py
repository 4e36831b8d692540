from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

from tests.traces import kernel, write, write_rank
from traceparse.engine import analyze, local
from traceparse.engine.local import digest_files
from traceparse.errors import InputError


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
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    alone, together, cached = _Seen(), _Seen(), _Seen()
    one = analyze(tmp_path, jobs=1, progress=alone)
    many = analyze(tmp_path, jobs=2, progress=together, cache=tmp_path / "cache")
    again = analyze(tmp_path, jobs=2, progress=cached, cache=tmp_path / "cache")
    assert one == many == again
    for seen in (alone, together, cached):
        assert (seen.started, seen.bytes, seen.files) == ([(4, total)], total, 4)


def test_a_file_that_vanishes_fails_alone(tmp_path):
    path = write_rank(tmp_path, 0, 1)
    outcomes = digest_files([tmp_path / "gone.json", path], jobs=1, rank=None, progress=None)
    assert isinstance(outcomes[0], InputError)
    assert not isinstance(outcomes[1], InputError)


def test_what_a_process_does(tmp_path):
    """Run here, as coverage does not see into other processes."""
    path = write(tmp_path / "rank0.json", [kernel(1, 1)])
    told: list[bytes] = []
    found = local.unpacked(local._work(2, os.fsencode(path), told.append))
    assert found == digest_files([path], jobs=1, rank=2, progress=None)[0]
    assert sum(map(int, told)) == path.stat().st_size
    gone = tmp_path / os.fsdecode(b"\xff gone.json")
    refused = local.unpacked(local._work(2, os.fsencode(gone), told.append))
    assert type(refused) is InputError
    assert str(refused) == f"{gone}: cannot be read: No such file or directory; " + (
        "check its permissions"
    )


def test_a_process_has_the_variables_of_who_asked(tmp_path, monkeypatch):
    path = write(tmp_path / "rank0.json", [kernel(1, 1)])
    monkeypatch.setenv("AWS_PROFILE", "before")
    told: list[bytes] = []
    packed = local._work_in({"AWS_PROFILE": "now"}, None, os.fsencode(path), told.append)
    assert local.unpacked(packed) == digest_files([path], jobs=1, rank=None, progress=None)[0]
    assert os.environ["AWS_PROFILE"] == "now"


def test_bytes_are_told_now_and_then(monkeypatch):
    told: list[bytes] = []
    count = local._Count(told.append)
    for _ in range(100):
        count.add(7)
    monkeypatch.setattr(local, "_TELL_S", -1.0)
    count.add(7)
    assert told[-1] != b"7", "what was read before is told as well"
    count.tell()
    assert sum(map(int, told)) == 707


class _InterruptedByBytes(_Seen):
    def advance(self, num_bytes: int) -> None:  # noqa: ARG002 - the protocol's name
        raise KeyboardInterrupt


class _InterruptedByFile(_Seen):
    def file_done(self) -> None:
        raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("progress", [_InterruptedByBytes(), _InterruptedByFile()])
def test_an_interruption_ends_the_processes(tmp_path, progress):
    paths = [write_rank(tmp_path, rank, 2) for rank in range(2)]
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as caught:
        digest_files(paths, jobs=2, rank=None, progress=progress)
    assert multiprocessing.active_children() == [], "while the error is still there"
    assert caught.value is not None
    assert signal.getsignal(signal.SIGINT) is handler
