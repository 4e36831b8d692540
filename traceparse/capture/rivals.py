"""Other profilers in the same process: torch can run one, and crashes where two interleave.

torch 2.13 lets a second profiler take the place of the first without a word; when the first one
stops, or writes its trace, the process ends with a segmentation fault. So whoever uses torch's
profiler is seen here, and ours gives way. (Spans of the job that are open then are ended by
:mod:`traceparse.capture.recorder`, for the same reason.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any

__all__ = ["RIVALS", "Rivals"]

_PREPARE, _START, _STOP = "_prepare_profiler", "_enable_profiler", "_disable_profiler"


class Rivals:
    """Watches who starts and stops torch's profiler in this process."""

    def __init__(self) -> None:
        self._is_ours = False
        self._is_busy = False
        self._give_way: Callable[[], None] | None = None

    @property
    def is_busy(self) -> bool:
        """Is a profiler ready to record, or does it record: one of another capture, too?"""
        autograd = import_module("torch.autograd")
        is_ours = self._give_way is not None
        return self._is_busy or is_ours or bool(autograd._profiler_enabled())

    def watch(self) -> None:
        """Begin to watch; from then on, for as long as the process lives."""
        torch_profiler = import_module("torch.autograd.profiler")
        for name in (_PREPARE, _START, _STOP):
            original = getattr(torch_profiler, name, None)
            if original is not None and not hasattr(original, "_watched_by_traceparse"):
                setattr(torch_profiler, name, self._watched(name, original))

    @contextmanager
    def ours(self, give_way: Callable[[], None] | None = None) -> Iterator[None]:
        """Run calls of our own; ``give_way`` is called when somebody else begins later.

        Without it, or if the calls fail, ours is over.
        """
        before, self._is_ours = self._is_ours, True
        self._give_way = None
        try:
            yield
            self._give_way = give_way
        finally:
            self._is_ours = before

    def _watched(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - torch's own
            if not self._is_ours:
                if name != _STOP and self._give_way is not None:
                    give_way, self._give_way = self._give_way, None
                    give_way()
                self._is_busy = name != _STOP
            return original(*args, **kwargs)

        watched._watched_by_traceparse = True  # type: ignore[attr-defined]
        return watched


RIVALS = Rivals()
