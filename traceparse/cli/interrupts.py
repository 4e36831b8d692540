"""What becomes of a command that is told to end: it does so silently, with status 128 + n.

While it starts there is nothing to undo, and an exception may be lost in what Python or an
extension does to import a module: it leaves at once. While it works, what it has begun is
undone first, by exceptions on their way out. Signals that were ignored stay so.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

__all__ = ["ends_at_once", "ends_undone"]

_Handler: TypeAlias = Callable[[int, FrameType | None], object]
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # the last one is not everywhere


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Let a signal end the process wherever it is."""
    with _handled(lambda number, _: os._exit(128 + number)):
        yield


@contextmanager
def ends_undone() -> Iterator[None]:
    """Let a signal raise, so that what the block holds and has begun is given up in order."""
    with _handled(lambda number, _: sys.exit(128 + number)):
        yield


@contextmanager
def _handled(handler: _Handler) -> Iterator[None]:
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    heeded = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heeded}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
