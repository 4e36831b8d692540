"""Told to end while something is recorded: keep it, then end as one would have without us."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Terminated"]


class Terminated:
    """Calls somebody before SIGTERM ends the process.

    Only where nobody else waits for that signal: whoever has a handler of their own ends in
    their own way.
    """

    def __init__(self, on_signal: Callable[[], None]) -> None:
        self._on_signal = on_signal
        self._pid = os.getpid()
        self._is_entered = False
        self._is_held = False
        self._is_pending = False

    def enter(self) -> None:
        """Wait for the signal from now on."""
        if threading.current_thread() is not threading.main_thread():
            return  # Python does not let others
        if not self._is_entered and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._is_entered = True
            signal.signal(signal.SIGTERM, self._handle)

    def leave(self) -> None:
        """Wait no more."""
        if self._is_entered and signal.getsignal(signal.SIGTERM) == self._handle:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._is_entered = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let a signal wait until the block has ended."""
        before, self._is_held = self._is_held, True
        try:
            yield
        finally:
            self._is_held = before
            if self._is_pending and not before:
                self._end()

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_held:
            self._is_pending = True
        else:
            self._end()

    def _end(self) -> None:
        self._is_pending = False
        try:
            if os.getpid() == self._pid:  # not in what the job has forked
                self._on_signal()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
