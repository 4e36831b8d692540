"""Told to end while something is recorded: keep it, then end as one would have without us."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Terminated"]

_PATIENCE_S = 10.0  # with a main thread that is inside of something, such as a collective


class Terminated:
    """Calls somebody before SIGTERM ends the process.

    Only where nobody else waits for that signal: whoever has a handler of their own ends in
    their own way. Python calls handlers in the main thread, when that is not inside of a
    library; where it stays there, the process ends without a word, as it would have at once.
    """

    def __init__(self, on_signal: Callable[[], None]) -> None:
        self._on_signal = on_signal
        self._watch: _Watch | None = None
        self._is_held = False
        self.is_pending = False  #: has the signal come, and waits for a block to end?

    def enter(self) -> None:
        """Wait for the signal from now on."""
        if threading.current_thread() is not threading.main_thread():
            return  # Python does not let others
        if self._watch is None and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._watch = _Watch(self._is_waiting)
            signal.signal(signal.SIGTERM, self._handle)

    def leave(self) -> None:
        """Wait no more."""
        watch = self._watch
        if watch is None:
            return
        if self._is_waiting():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        watch.leave()
        self._watch = None  # not before: what failed is done again

    def _is_waiting(self) -> bool:
        return signal.getsignal(signal.SIGTERM) == self._handle

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let a signal wait until the block has ended."""
        before, self._is_held = self._is_held, True
        try:
            yield
        finally:
            self._is_held = before
            if self.is_pending and not before:
                self._end()

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._watch is not None:
            self._watch.is_handled.set()
        if self._is_held:
            self.is_pending = True
        else:
            self._end()

    def _end(self) -> None:
        self.is_pending = False
        try:
            self._on_signal()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)


class _Watch:
    """Sees the signal come, in a thread of its own, and ends the process if nobody does.

    Unless somebody else has begun to wait for it since, which ``is_waiting`` tells.
    """

    def __init__(self, is_waiting: Callable[[], bool]) -> None:
        self._is_waiting = is_waiting
        self.is_handled = threading.Event()
        self._before = -1  # whoever else wants to be woken
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._writes, False)
        threading.Thread(target=self._look, name="traceparse SIGTERM", daemon=True).start()
        self._before = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
        _watching.add(self)

    def leave(self) -> None:
        """See no more."""
        if self in _watching:
            signal.set_wakeup_fd(self._before, warn_on_full_buffer=False)
            _watching.discard(self)
            os.close(self._writes)

    def _look(self) -> None:
        while told := os.read(self._reads, 64):
            if self._before != -1:
                os.write(self._before, told)  # somebody else waits for signals as well
            if signal.SIGTERM not in told or self.is_handled.wait(_PATIENCE_S):
                continue
            if self._is_waiting():
                # Python sets what a signal does in the main thread only, and that is inside.
                ctypes.CDLL(None).signal(int(signal.SIGTERM), None)
                os.kill(os.getpid(), signal.SIGTERM)
        os.close(self._reads)


_watching: set[_Watch] = set()
_forking = threading.local()


def _before_fork() -> None:
    """Keep the signal from a child that would still take it for its parent."""
    _forking.mask = None
    if _watching:
        _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _after_fork() -> None:
    if _forking.mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _in_child() -> None:
    """Let a forked process end as it likes, and its parent not take its signals for its own."""
    if _watching:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
