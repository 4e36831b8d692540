from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from traceparse.capture import command
from traceparse.capture.command import end_as, kept_in, run_captured, wait_until_kept
from traceparse.capture.environment import Told
from traceparse.errors import CaptureError, UsageError


def told(directory: Path, **options: Any) -> Told:
    return Told(str(directory), (1, 2), **options)


def python(code: str) -> list[str]:
    # without site: neither the hook nor what it would wait for
    return [sys.executable, "-S", "-c", code]


def run(directory: Path, code: str) -> int:
    return run_captured(python(code), told(directory))


@pytest.mark.parametrize("status", [0, 1, 3, 255])
def test_the_status_is_that_of_the_command(tmp_path: Path, status: int) -> None:
    assert run(tmp_path, f"raise SystemExit({status})") == status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_a_command_that_a_signal_ends_has_the_signal(tmp_path: Path, number: int) -> None:
    assert run(tmp_path, f"import os; os.kill(os.getpid(), {int(number)})") == -number


def test_its_processes_are_told_what_to_capture(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "not" / "there"
    run(out, "import os; print(os.environ['TRACEPARSE_CAPTURE'])")
    assert json.loads(capfd.readouterr().out)["directory"] == str(out)
    assert out.is_dir()


def test_input_and_output_are_the_commands_own(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "in").write_bytes(b"\xff\x00\r\n")
    before = os.dup(0)
    with (tmp_path / "in").open("rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        code = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d * 2); "
        run(tmp_path / "out", code + "sys.stderr.buffer.write(b'\\xfe')")
    finally:
        os.dup2(before, 0)
        os.close(before)
    said = capfdbinary.readouterr()
    assert (said.out, said.err) == (b"\xff\x00\r\n" * 2, b"\xfe")


PASSES = """
import os, signal
got = []
for number in ({numbers}):
    signal.signal(number, lambda number, _: got.append(number))
for number in ({numbers}):
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    os.kill(os.getppid(), number)
    signal.sigwait([number])
raise SystemExit(7)
"""


@pytest.fixture
def handlers() -> Iterator[None]:
    numbers = [*command._PASSED_ON]
    before = [signal.getsignal(number) for number in numbers]
    yield
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.usefixtures("handlers")
def test_signals_go_on_to_the_command(tmp_path: Path) -> None:
    names = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT")
    numbers = ", ".join(f"signal.{name}" for name in names)
    assert run(tmp_path, PASSES.format(numbers=numbers)) == 7


@pytest.mark.usefixtures("handlers")
def test_a_signal_of_the_keyboard_has_reached_the_command_already(tmp_path: Path) -> None:
    code = "import os, signal; signal.signal(signal.SIGINT, lambda *_: os._exit(9)); "
    code += "os.kill(os.getppid(), signal.SIGINT); os.kill(os.getpid(), signal.SIGUSR1)"
    assert run(tmp_path, code) == -signal.SIGUSR1


@pytest.mark.usefixtures("handlers")
def test_a_signal_that_comes_before_there_is_a_command_goes_on_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = subprocess.Popen

    def start(*args: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return started(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    assert run(tmp_path, "import signal; signal.pause()") == -signal.SIGUSR1


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As nohup has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        code = "import os, signal; os.kill(os.getppid(), signal.SIGHUP); "
        code += "raise SystemExit(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
        assert run(tmp_path, code) == 1
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("words", [[], ["no_such_command_at_all"], ["./none"], [""]])
def test_a_command_that_there_is_not_is_refused(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        run_captured(words, told(tmp_path))
    assert str(caught.value) == (
        f"{words[0] if words else ''!r}: no such command; "
        "give it behind --, as you would run it"
    )


def test_traces_that_are_there_are_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "rank3_trace.json.gz").touch()
    with pytest.raises(CaptureError) as caught:
        run(tmp_path, "raise SystemExit('it ran')")
    assert str(caught.value) == (
        f"{tmp_path / 'rank3_trace.json.gz'}: there is a trace already; "
        "choose another --out, or give --overwrite"
    )
    assert run_captured(python("raise SystemExit(5)"), told(tmp_path, overwrite=True)) == 5


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CaptureError) as caught:
        run(tmp_path / "file", "")
    assert str(caught.value) == (
        f"{tmp_path / 'file'}: is no directory and cannot be made one: File exists"
    )


def test_a_status_is_returned_and_a_signal_is_died_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert end_as(3) == 3
    happened: list[Any] = []
    monkeypatch.setattr(resource, "setrlimit", lambda *args: happened.append(args))
    monkeypatch.setattr(signal, "signal", lambda *args: happened.append(args))
    monkeypatch.setattr(os, "kill", lambda *args: happened.append(args))
    end_as(-signal.SIGUSR1)
    assert happened == [
        (resource.RLIMIT_CORE, (0, 0)),
        (signal.SIGUSR1, signal.SIG_DFL),
        (os.getpid(), signal.SIGUSR1),
    ]


def test_traces_that_are_being_packed_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / ".rank0_trace.json.gz.12.raw"
    raw.touch()
    looks: list[float] = []

    def sleep(time_s: float) -> None:
        looks.append(time_s)
        if len(looks) == 3:
            raw.rename(tmp_path / "rank0_trace.json.gz")

    monkeypatch.setattr(time, "sleep", sleep)
    assert wait_until_kept(tmp_path, patience_s=1000) == []
    assert len(looks) == 3
    assert kept_in(tmp_path) == [tmp_path / "rank0_trace.json.gz"]


def test_patience_has_an_end(tmp_path: Path) -> None:
    raw = tmp_path / ".rank0_trace.json.gz.12.raw"
    raw.touch()
    assert wait_until_kept(tmp_path, patience_s=0) == [raw]


def test_what_is_left_from_long_ago_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / ".rank0_trace.json.gz.12.raw"
    raw.touch()
    os.utime(raw, (0, 0))
    assert wait_until_kept(tmp_path, patience_s=1000) == [raw]
    half = tmp_path / ".rank0_trace.json.gz.99.1.tmp"
    half.touch()
    monkeypatch.setattr(time, "sleep", lambda _: half.unlink())
    assert wait_until_kept(tmp_path, patience_s=1000) == [raw]
    assert not half.exists()


def test_what_is_gone_meanwhile_is_not_waited_for(tmp_path: Path) -> None:
    assert not command._is_being_packed(tmp_path / ".rank0_trace.json.gz.12.raw")
