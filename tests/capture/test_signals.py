from __future__ import annotations

import os
import signal
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


def test_a_child_that_was_forked_only_ends(
    ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Terminated(lambda: ended.append("kept"))
    it.enter()
    monkeypatch.setattr(it, "_pid", os.getpid() - 1)
    terminate()
    assert ended == ["ended"]


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
