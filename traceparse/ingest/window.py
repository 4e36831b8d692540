"""The part of a file that is in memory: blocks come in at its end, what is done leaves."""

from __future__ import annotations

from traceparse.ingest.source import Source

__all__ = ["BLOCK", "MOST", "Window"]

BLOCK = 1 << 20  # of 0.25 to 4 MiB the fastest: what it decodes to still fits the cache
MOST = 16 << 20  # the longest header, trailer or single event that is held in memory


class Window:
    """A sliding window over a source.

    ``block`` is how many bytes are read at a time, ``text`` is what it holds, ``offset`` where
    in the file's content that begins, ``at_end`` whether the source has no more.
    """

    def __init__(self, source: Source, block: int) -> None:
        self.source = source
        self.text = b""
        self.offset = 0
        self.at_end = False
        self.block = block

    def fill(self) -> bool:
        """Read on, as much again where the last time was not enough; say if there was any."""
        size = max(self.block, min(len(self.text), MOST - len(self.text)))
        more = b"" if self.at_end else self.source.read(size)
        self.at_end = not more
        self.text += more
        return bool(more)

    def hold(self, size: int) -> None:
        """Read on until so many bytes are there, or the source has no more."""
        while len(self.text) < size and self.fill():
            pass

    def skip_blanks(self) -> None:
        """Drop blanks, and read on while there is nothing else."""
        self.drop(len(self.text) - len(self.text.lstrip()))
        while not self.text and self.fill():
            self.drop(len(self.text) - len(self.text.lstrip()))

    def drop(self, count: int) -> None:
        """Let the first ``count`` bytes go."""
        self.text = self.text[count:]
        self.offset += count

    @property
    def is_full(self) -> bool:
        """Whether the window holds more than anything in a trace should need."""
        return len(self.text) >= MOST
