from __future__ import annotations

import json
import logging
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import CancelledError
from queue import SimpleQueue
from typing import Any

import dask
import fsspec
import pytest
from distributed import LocalCluster

from tests.traces import kernel, write, write_rank
from traceparse.engine import analyze, dask_engine, local
from traceparse.engine.cache import source
from traceparse.engine.dask_engine import digest_there
from traceparse.engine.local import digest_files
from traceparse.errors import InputError, MissingExtraError, TraceparseError, UsageError
from traceparse.ingest import place_of

_QUIET: Any = {
    "silence_logs": logging.CRITICAL,
    "scheduler_kwargs": {"dashboard": False, "dashboard_address": "127.0.0.1:0"},
    "worker_dashboard_address": "127.0.0.1:0",
}
_KILLS = """
import os
from traceparse.engine import dask_engine
from traceparse.engine.local import digest_file as plain  # this is run twice

def digest_file(path, rank, on_bytes):
    if path.name == "rank0.json" and not path.with_name("was_killed").exists():
        path.with_name("was_killed").touch()
        os._exit(1)
    if path.name == "rank7.json":
        with path.with_name("kills").open("a") as file:
            file.write("x")
        os._exit(1)
    return plain(path, rank, on_bytes)

dask_engine.digest_file = digest_file
"""

_ENDS_SCHEDULER = """
import os, signal
from traceparse.engine import dask_engine

def digest_file(path, rank, on_bytes):
    os.kill(int(os.environ["SCHEDULER"]), signal.SIGKILL)

dask_engine.digest_file = digest_file
"""

_INTERRUPTED = """
import multiprocessing, os, signal, sys
from traceparse.engine import analyze

class Progress:
    def start(self, num_files, num_bytes): ...
    def advance(self, num_bytes): ...
    def file_done(self):
        os.killpg(0, signal.SIGINT)

if __name__ == "__main__":
    try:
        analyze(sys.argv[1], engine="dask", jobs=2, progress=Progress())
    except KeyboardInterrupt:
        print("interrupted", multiprocessing.active_children())
"""


class _Seen:
    def __init__(self) -> None:
        self.bytes = self.files = 0

    def start(self, num_files: int, num_bytes: int) -> None:
        self.expected = (num_files, num_bytes)

    def advance(self, num_bytes: int) -> None:
        self.bytes += num_bytes

    def file_done(self) -> None:
        self.files += 1


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in range(3):
        write_rank(folder, rank, 3)
    (folder / "rank9.json").write_text("nothing")
    return folder


@pytest.mark.slow
def test_workers_give_what_one_process_gives(run, monkeypatch):
    """GIVEN a job with a bad file WHEN workers read it THEN the report is the same."""
    total = sum(path.stat().st_size for path in run.iterdir())
    expected, seen = analyze(run), _Seen()
    cache = run.parent / "cache"
    assert analyze(run, engine="dask", jobs=2, progress=seen, cache=cache) == expected
    assert (seen.files, seen.bytes, seen.expected) == (4, total, (4, total))
    assert multiprocessing.active_children() == []
    assert len(list(cache.iterdir())) == 3
    monkeypatch.chdir(run.parent)
    expected = analyze("run")
    assert expected.files[0].path == "run/rank0.json"
    assert analyze("run", engine="dask") == expected


@pytest.mark.slow
def test_killed_workers_lose_nothing_and_a_file_that_kills_fails_alone(run, tmp_path):
    expected = analyze(run)
    (run / "rank7.json").write_text("never read")
    preload = tmp_path / "preload.py"
    preload.write_text(_KILLS)
    settings = {
        "distributed.worker.preload": [str(preload)],
        "distributed.scheduler.allowed-failures": 1,
    }
    with dask.config.set(settings):
        report = analyze(run, engine="dask", jobs=2)
    assert (run / "was_killed").exists()
    assert len((run / "kills").read_text()) > 2, "among others, and twice by itself"
    found, plain = report.to_dict(), expected.to_dict()
    (killed,) = [note for note in found["notes"] if "killed" in note["message"]]
    assert killed["code"] == "file_unusable"
    assert killed["file"] == str(run / "rank7.json")
    assert killed["message"] == (
        "each Dask worker that read it was killed (out of memory?), until Dask gave it up; "
        "give workers more memory"
    )
    found["notes"].remove(killed)
    assert found == plain
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_an_interruption_ends_the_workers_without_a_word(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(_INTERRUPTED)
    done = subprocess.run(
        [sys.executable, str(script), str(run)],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.stdout, done.stderr) == ("interrupted []\n", "")


@pytest.mark.slow
def test_a_scheduler_that_is_named_is_used_and_left_running(run):
    with LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        host="127.0.0.1",
        protocol="tcp",
        processes=False,
        **_QUIET,
    ) as cluster:
        engine = f"dask://{cluster.scheduler_address.removeprefix('tcp://')}"
        words = [sys.executable, "-m", "traceparse", "analyze", str(run), "--json"]
        done = subprocess.run(
            [*words, "--no-cache", "--engine", engine],
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout) == json.loads(json.dumps(analyze(run).to_dict()))
        assert len(cluster.scheduler.workers) == 1
        assert cluster.scheduler.tasks == {}, "nothing is left there"


def test_a_scheduler_that_does_not_answer(run):
    patience = dask.config.set({"distributed.comm.timeouts.connect": "0.1s"})
    with patience, pytest.raises(TraceparseError) as caught:
        analyze(run, engine="dask://127.0.0.1:9")
    assert str(caught.value) == (
        "--engine dask://127.0.0.1:9: no Dask scheduler answers there (Timed out trying to "
        "connect to tcp://127.0.0.1:9 after 0.1 s); start one with `dask scheduler`, or check "
        "the address"
    )


def test_a_scheduler_without_workers(run, monkeypatch):
    monkeypatch.setattr(dask_engine, "_WORKERS_S", 0.1)
    with LocalCluster(n_workers=0, host="127.0.0.1", protocol="tcp", **_QUIET) as cluster:
        engine = f"dask://{cluster.scheduler_address.removeprefix('tcp://')}"
        with pytest.raises(TraceparseError) as caught:
            analyze(run, engine=engine)
    assert str(caught.value) == (
        f"--engine {engine}: its scheduler has had no worker for 0.1 s; start some with "
        f"`dask worker`"
    )


@pytest.mark.parametrize(
    "engine", ["spark", "dask:", "dask://host", "dask://me:secret@h:1", ""]
)
def test_what_names_no_engine(run, tmp_path, engine):
    with pytest.raises(UsageError) as caught:
        analyze(run, engine=engine, cache=tmp_path / "cache")
    name = engine.replace("me:secret", "***")
    assert str(caught.value) == f"--engine {name}: give local, dask or dask://HOST:PORT"


def test_dask_may_not_be_there(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError) as caught:
        analyze(run, engine="dask")
    assert str(caught.value) == (
        "--engine dask takes Dask, which is not installed: pip install 'traceparse[dask]'"
    )


def test_files_that_only_this_process_has():
    files = fsspec.filesystem("memory")
    files.pipe("/dask/rank0.json", b"{}")
    try:
        with pytest.raises(UsageError) as caught:
            analyze("memory://dask", engine="dask")
    finally:
        files.rm("/dask", recursive=True)
    assert str(caught.value) == (
        "memory://dask/rank0.json: is in the memory of this process, where Dask's workers do "
        "not see it; use --engine local"
    )


class _Future:
    """What a scheduler gives back, decided here."""

    def __init__(self, answer):
        self._answer = answer

    def result(self):
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


def test_what_a_worker_does(tmp_path, monkeypatch):
    """Run here, as coverage does not see into other processes."""
    path = write(tmp_path / "rank0.json", [kernel(1, 1)])
    expected = source()
    answer = digest_there(os.fsencode(path), 2, expected)
    assert isinstance(answer, bytes)
    assert local.unpacked(answer) == digest_files([path], jobs=1, rank=2, progress=None)[0]
    monkeypatch.setattr("socket.gethostname", lambda: "node7")
    gone = local.unpacked(digest_there(os.fsencode(tmp_path / "gone.json"), None, expected))
    assert type(gone) is InputError
    assert str(gone) == (
        f"{tmp_path}/gone.json: is not there for the Dask worker on node7; put traces where "
        f"all workers see them: a shared folder, or s3://"
    )


def test_a_worker_of_another_version_is_refused(tmp_path):
    answer = digest_there(os.fsencode(tmp_path), None, b"other code")
    with pytest.raises(TraceparseError, match=r"^--engine dask: a worker has another tracepar"):
        dask_engine._outcome(_Future(answer), place_of("x"), "dask")


def test_a_scheduler_that_ends_is_said():
    with pytest.raises(TraceparseError, match=r"^--engine dask: the Dask scheduler is gone or"):
        dask_engine._outcome(_Future(CancelledError()), place_of("x"), "dask")


@pytest.mark.slow
def test_a_scheduler_that_is_killed_is_one_line(run, tmp_path):
    """GIVEN a scheduler that dies meanwhile THEN Dask's client logs nothing beside our line."""
    preload = tmp_path / "preload.py"
    preload.write_text(_ENDS_SCHEDULER)
    python = [sys.executable, "-m"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = ["dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    with subprocess.Popen([*python, *words], env=env, stderr=subprocess.PIPE, text=True) as one:
        assert one.stderr is not None
        line = next(line for line in one.stderr if "Scheduler at:" in line)
        address = line.split()[-1]
        words = ["dask", "worker", address, "--no-nanny", "--no-dashboard"]
        worker = subprocess.Popen(
            [*python, *words, "--preload", str(preload), "--local-directory", str(tmp_path)],
            env={**env, "SCHEDULER": str(one.pid)},
            stderr=subprocess.DEVNULL,
        )
        engine = address.replace("tcp://", "dask://")
        done = subprocess.run(
            [*python, "traceparse", "analyze", str(run), "--engine", engine, "--no-cache"],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        worker.terminate()
        worker.wait()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"traceparse: --engine {engine}: the Dask scheduler is gone or has dropped the work, "
        f"so there is no report; look at its log, and try again\n"
    )


def test_workers_that_all_end_are_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(dask_engine, "_WORKERS_S", 0.02)
    seen: list[dict[str, object]] = [{"tcp://a": {}}, {"tcp://a": {}}]

    class _Client:
        def scheduler_info(self):
            return {"workers": seen.pop() if seen else {}}

    with pytest.raises(TraceparseError) as caught:
        dask_engine._next(SimpleQueue(), _Client(), "dask://h:1")
    assert seen == [], "as long as there are some, it waits"
    assert str(caught.value) == (
        "--engine dask://h:1: its scheduler has had no worker for 0.02 s; start some with "
        "`dask worker`"
    )


def test_what_is_wrong_in_our_code_is_not_hidden(tmp_path, monkeypatch, capsys):
    path = write(tmp_path / "rank0.json", [])

    def failing(*_args):
        raise RecursionError("too deep")

    monkeypatch.setattr(dask_engine, "digest_file", failing)
    answer = digest_there(os.fsencode(path), None, source())
    with pytest.raises(TraceparseError) as caught:
        dask_engine._outcome(_Future(answer), path, "dask")
    assert str(caught.value) == (
        f"{path}: a Dask worker that read it failed, as it says above, so there is no report"
    )
    assert "in failing" in (said := capsys.readouterr().err)
    assert said.rstrip().endswith("RecursionError: too deep")
