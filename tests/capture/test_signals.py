from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from traceparse.capture.signals import Terminated


@pytest.fixture(autouse=True)
def nobody_waits() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, and the end of the process, which does not end."""
    happened: list[str] = []

    def kill(pid: int, number: int) -> None:
        assert (pid, number) == (os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        happened.append("ended")

    monkeypatch.setattr(os, "kill", kill)
    return happened


def terminate() -> None:
    """Send the signal to this thread, as others would take one for the process."""
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)


def test_somebody_is_called_before_the_end(ended: list[str]) -> None:
    it = Terminated(lambda: ended.append("kept"))
    it.enter()
    terminate()
    assert ended == ["kept", "ended"]


def test_the_end_comes_even_when_that_fails(ended: list[str]) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    Terminated(fail).enter()
    with pytest.raises(ZeroDivisionError):
        terminate()
    assert ended == ["ended"]


def test_the_signal_waits_until_the_block_has_ended(ended: list[str]) -> None:
    it = Terminated(lambda: ended.append("kept"))
    it.enter()
    with it.held():
        with it.held():
            terminate()
        assert ended == []
    assert ended == ["kept", "ended"]


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run a process that waits for SIGTERM and has little patience."""
    head = """
        import ctypes, os, signal, threading
        from traceparse.capture import signals
        signals._PATIENCE_S = 0.2
        it = signals.Terminated(lambda: print("kept", flush=True))
        it.enter()
    """
    script = textwrap.dedent(head) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_child_that_was_forked_only_ends_and_its_parent_goes_on() -> None:
    """GIVEN workers that inherit everything, and are ended by SIGTERM, as loaders end them."""
    done = run("""
        child = os.fork()
        if child == 0:
            signal.pause()
        os.kill(child, signal.SIGTERM)
        print(os.waitpid(child, 0)[1], flush=True)
        threading.Event().wait(0.5)
        it.leave()
        print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    """)
    assert (done.returncode, done.stdout) == (0, "15\nTrue\n")


def test_a_main_thread_that_does_not_come_back_is_ended() -> None:
    """GIVEN one that waits in a library, as in a collective whose other ranks are gone."""
    done = run("""
        library, lock = ctypes.CDLL(None), (ctypes.c_char * 64)()
        library.pthread_mutex_lock(lock)
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        library.pthread_mutex_lock(lock)
    """)
    assert (done.returncode, done.stdout, done.stderr) == (-15, "", "")


@pytest.mark.usefixtures("ended")
def test_who_else_waits_for_signals_hears_of_them() -> None:
    """As asyncio does."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    before = signal.set_wakeup_fd(writes)
    it = Terminated(lambda: None)
    it.enter()
    terminate()
    assert os.read(reads, 1) == bytes([signal.SIGTERM])
    it.leave()
    assert signal.set_wakeup_fd(before) == writes


def test_it_leaves_as_it_came() -> None:
    it = Terminated(lambda: None)
    it.enter()
    it.enter()
    assert signal.getsignal(signal.SIGTERM) == it._handle
    it.leave()
    it.leave()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def own(_number: int, _frame: FrameType | None) -> None: ...


@pytest.mark.parametrize("handler", [own, signal.SIG_IGN])
def test_whoever_waits_already_is_left_alone(handler: signal._HANDLER) -> None:
    signal.signal(signal.SIGTERM, handler)
    it = Terminated(lambda: None)
    it.enter()
    assert signal.getsignal(signal.SIGTERM) == handler
    it.leave()
    assert signal.getsignal(signal.SIGTERM) == handler


def test_whoever_came_later_is_left_alone() -> None:
    it = Terminated(lambda: None)
    it.enter()
    signal.signal(signal.SIGTERM, own)
    it.leave()
    assert signal.getsignal(signal.SIGTERM) is own


def test_other_threads_do_not_wait() -> None:
    it = Terminated(lambda: None)
    thread = threading.Thread(target=it.enter)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_whoever_begins_to_wait_later_has_all_the_time_there_is() -> None:
    """GIVEN a job that gets a handler of its own while it is recorded, and a slow one."""
    done = run("""
        def slow(*_):
            threading.Event().wait(0.6)
            print("saved", flush=True)

        signal.signal(signal.SIGTERM, slow)
        os.kill(os.getpid(), signal.SIGTERM)
        it.leave()
        print(signal.getsignal(signal.SIGTERM) is slow)
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "saved\nTrue\n", "")
