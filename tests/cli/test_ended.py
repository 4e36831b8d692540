"""A run that is ended from outside leaves no process, no half of a file and no traceback."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.traces import kernel, write
from traceparse.engine.cache import Cache

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/environ").exists(), reason="processes are in /proc"
    ),
]
_DEADLINE_S = 60
_NUM_FILES = 300
_PROGRAM = (
    "import signal, sys\n"
    # who runs the tests may have it ignored, and that is inherited
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from traceparse.cli import main\n"
    "sys.argv[0] = 'traceparse'\n"
    "main()"
)
_MARK = "TRACEPARSE_TEST_RUN"  # in the environment of all that a run starts


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """A job of many files: enough for a signal to find it at work."""
    folder = tmp_path_factory.mktemp("traces")
    events = [kernel(1 + 2 * n, 1, f"k{n % 50}") for n in range(10_000)]
    one = write(folder / "rank0.json", events)
    for rank in range(1, _NUM_FILES):
        os.link(one, folder / f"rank{rank}.json")
    return folder


class _Run:
    """One `traceparse analyze`, in a session of its own, as a terminal has it."""

    def __init__(self, traces: Path, folder: Path, *words: str, engine: str) -> None:
        self.cache, self.out = folder / "cache", folder / "out"
        self._mark = str(folder)
        command = ["analyze", str(traces), "--cache", str(self.cache), "--out", str(self.out)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *command, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, _MARK: self._mark, "TRACEPARSE_ENGINE": engine},
            start_new_session=True,
        )
        assert self.process.stderr is not None
        self._errors = self.process.stderr.fileno()
        self.said: tuple[bytes, bytes] = b"", b""

    def reached(self, condition):
        """Wait until something is so, which it must be while the run is at work."""
        deadline = time.monotonic() + _DEADLINE_S
        while not (found := condition()):
            assert time.monotonic() < deadline
            assert self.process.poll() is None, self.process.communicate()
            select.select([self._errors], [], [], 0.005)
        return found

    def at_work(self):
        """Wait until some files are digested."""
        return self.reached(lambda: len(list(self.cache.glob("*.parquet"))) > 3)

    def readers(self):
        """Return the ids of the processes that have a trace open."""
        return [pid for pid in self.pids() if pid != self.process.pid and _has_trace_open(pid)]

    def pids(self):
        """Return the ids of all processes that descend from this run."""
        mark = f"{_MARK}={self._mark}".encode()
        return [pid for pid in _all_pids() if mark in _read(f"/proc/{pid}/environ")]

    def end(self):
        """Wait until all who could write to its standard error are gone: the status."""
        self.said = self.process.communicate(timeout=_DEADLINE_S)
        return self.process.returncode

    def assert_clean(self, error=b""):
        assert self.said == (b"", error)
        assert self.pids() == []
        assert not self.out.exists()
        entries = list(self.cache.iterdir())
        assert entries
        for entry in entries:
            assert entry.suffix == ".parquet"
            assert Cache(self.cache).get(entry, entry), "half an entry"


def _all_pids():
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _read(path):
    try:
        return Path(path).read_bytes().split(b"\0")
    except OSError:  # it is gone, or somebody else's
        return []


def _has_trace_open(pid):
    try:
        opened = [file.readlink() for file in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return any(path.suffix == ".json" for path in opened)


@pytest.fixture
def run(traces, tmp_path):
    running = []

    def started(*words, engine="msgspec"):  # the slower one
        running.append(_Run(traces, tmp_path, *words, engine=engine))
        return running[-1]

    yield started
    for one in running:
        for pid in one.pids():
            os.kill(pid, signal.SIGKILL)
        one.process.communicate()


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("to_group", [True, False])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all(run, jobs, to_group, number, status):
    running = run("--jobs", jobs)
    running.at_work()
    (os.killpg if to_group else os.kill)(running.process.pid, number)
    assert running.end() == status
    running.assert_clean()


def test_an_interruption_before_a_file_is_read(run):
    running = run("--jobs", "2")
    running.reached(lambda: len(running.pids()) > 1)
    os.killpg(running.process.pid, signal.SIGINT)
    assert running.end() == 130
    assert running.said == (b"", b"")
    assert running.pids() == []
    assert not running.out.exists()


def test_a_reader_that_is_killed(run):
    running = run("--jobs", "2")
    running.at_work()
    os.kill(running.reached(running.readers)[0], signal.SIGKILL)
    assert running.end() == 1
    running.assert_clean(
        b"traceparse: a process that read traces was killed (out of memory?), so there is no "
        b"report; try again with --jobs 1\n"
    )


def test_no_process_outlives_one_that_is_killed(run):
    running = run("--jobs", "2")
    running.at_work()
    running.process.kill()
    assert running.end() == -signal.SIGKILL
    assert running.pids() == []


def test_what_was_digested_before_an_interruption_is_not_read_again(run):
    running = run("--jobs", "2")
    running.at_work()
    os.killpg(running.process.pid, signal.SIGINT)
    running.end()
    kept = {entry: entry.stat().st_mtime_ns for entry in running.cache.iterdir()}
    again = run("--jobs", "2", "--quiet", engine="")
    assert again.end() == 0
    assert again.said[1] == b""
    assert {entry: entry.stat().st_mtime_ns for entry in kept} == kept
    assert len(list(again.cache.iterdir())) == _NUM_FILES
    names = {path.name for path in again.out.iterdir()}
    assert {"report.html", "report.json", "report.md", "tables"} <= names
    assert not [name for name in names if name.startswith(".")]
