"""A progress bar for people: on standard error, on a terminal, once it has taken a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from traceparse.engine import Progress

__all__ = ["shown_progress"]

_PATIENCE_S = 1.0  # what is done sooner needs no bar


@contextmanager
def shown_progress(*, quiet: bool) -> Iterator[Progress | None]:
    """Show how much is read while the block runs; nothing where nobody looks."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    progress = _BytesBar()
    try:
        yield progress
    finally:
        progress.close()


class _BytesBar:
    """Counts at once, draws only after a while."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._num_files = self._num_bytes = self._files = self._bytes = 0

    def start(self, num_files: int, num_bytes: int) -> None:
        self._num_files += num_files  # of one run after another
        self._num_bytes += num_bytes
        if self._bar and self._task is not None:
            self._bar.update(self._task, total=self._num_bytes)

    def advance(self, num_bytes: int) -> None:
        self._bytes += num_bytes
        self._draw()

    def file_done(self) -> None:
        self._files += 1
        self._draw()

    def close(self) -> None:
        if self._bar:
            self._bar.stop()

    def _draw(self) -> None:
        if self._bar is None:
            if time.monotonic() - self._begun < _PATIENCE_S:
                return
            self._open()
        assert self._bar is not None and self._task is not None
        self._bar.update(
            self._task,
            completed=self._bytes,
            description=f"reading {self._files}/{self._num_files} files",
        )

    def _open(self) -> None:
        from rich import progress
        from rich.console import Console

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("reading", total=self._num_bytes)
        self._bar.start()
