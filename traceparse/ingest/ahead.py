"""Blocks that are made while others are read: inflating and scanning both leave the GIL."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import suppress

__all__ = ["ahead"]

_MOST_BLOCKS = 2  # that wait: one may be tens of megabytes
_SMALL = 1 << 18  # bytes: less is not worth a hand-over


class _Done:
    """What comes last: the error that ended it, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def ahead(blocks: Iterator[bytes]) -> Generator[bytes]:
    """Yield the same bytes, made in a thread of their own, in blocks that are not small.

    Errors come out in their place. Closing this ends the thread.
    """
    waiting: queue.Queue[bytes | _Done] = queue.Queue(_MOST_BLOCKS)
    is_over = threading.Event()
    maker = threading.Thread(target=_make, args=(blocks, waiting, is_over), daemon=True)
    maker.start()
    try:
        while not isinstance(block := waiting.get(), _Done):
            yield block
        if block.error is not None:
            raise block.error
    finally:
        is_over.set()
        while maker.is_alive():
            with suppress(queue.Empty):
                waiting.get_nowait()  # it may wait for room
            maker.join(0.01)


def _make(
    blocks: Iterator[bytes], waiting: queue.Queue[bytes | _Done], is_over: threading.Event
) -> None:
    error: BaseException | None = None
    try:
        for block in _joined(blocks):
            waiting.put(block)
            if is_over.is_set():
                return
    except BaseException as raised:  # noqa: BLE001 - whatever it is, it belongs to the reader
        error = raised
    waiting.put(_Done(error))


def _joined(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Put small blocks together."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(block)
        if size >= _SMALL:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
