"""Called when the process ends, also one that ``multiprocessing`` has started."""

from __future__ import annotations

import atexit
from collections.abc import Callable

__all__ = ["at_exit", "not_at_exit"]


def at_exit(function: Callable[[], None]) -> None:
    """Call a function when this process ends.

    Those that are registered last are called first: registered when a capture begins, it is
    called while torch and its process groups are still there.
    """
    from multiprocessing import parent_process, util

    atexit.register(function)
    if parent_process() is not None:  # such a process ends without calling what atexit has
        util.Finalize(None, function, exitpriority=0)


def not_at_exit(function: Callable[[], None]) -> None:
    """Call it no more."""
    atexit.unregister(function)
