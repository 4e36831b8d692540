"""The two phases of a command: it starts, and then it works.

A signal ends it, silently and with status 128 + n. While it starts there is nothing to undo,
and an exception may be lost in what Python or an extension does to import a module: it leaves
at once. While it works, what it has begun is undone first, by exceptions on their way out.
Signals that were ignored stay so.

Importing makes many objects and drops next to none, so that nobody looks for garbage before
the work begins, nor when all ends.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

__all__ = ["starting", "working"]

_Handler: TypeAlias = Callable[[int, FrameType | None], object]
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # the last one is not everywhere


@contextmanager
def starting() -> Iterator[None]:
    """Let a signal end the process wherever it is, and garbage lie."""
    gc.disable()
    with _handled(lambda number, _: os._exit(128 + number)):
        try:
            yield
        finally:
            gc.freeze()
            gc.enable()


@contextmanager
def working() -> Iterator[None]:
    """Let a signal raise, so that what the block holds and has begun is given up in order."""
    gc.freeze()  # what is imported stays
    gc.enable()
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
