from __future__ import annotations

import os
import signal

import pytest

from traceparse.cli.phases import starting, working

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(params=SIGNALS)
def number(request):
    """Return a signal that is heeded, whatever who runs the tests does with it."""
    before = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, before)


def test_a_signal_raises_while_there_is_something_to_undo(number):
    with pytest.raises(SystemExit) as ended, working():
        os.kill(os.getpid(), number)
    assert ended.value.code == 128 + number
    assert signal.getsignal(number) == signal.SIG_DFL


def test_a_signal_ends_the_process_where_there_is_nothing(number, monkeypatch):
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    with starting():
        os.kill(os.getpid(), number)
        with pytest.raises(SystemExit), working():
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    assert left == [128 + number] * 2
    assert signal.getsignal(number) == signal.SIG_DFL


def test_what_is_ignored_stays_so(number):
    signal.signal(number, signal.SIG_IGN)
    with starting(), working():
        os.kill(os.getpid(), number)
        assert signal.getsignal(number) == signal.SIG_IGN
