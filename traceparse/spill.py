"""Room on disk for what is more than memory should hold, for as long as this process runs."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import NamedTuple

from traceparse.errors import TraceparseError

__all__ = ["Place", "Spill"]


class Place(NamedTuple):
    """Where something was put, and how many bytes it has."""

    offset: int
    size: int


class Spill:
    """A file without a name, made when it is first written to; it goes when nobody needs it.

    It lies where temporary files do, which ``TMPDIR`` says. A process that is killed leaves
    nothing behind.
    """

    def __init__(self) -> None:
        self._file = -1
        self._size = 0

    def put(self, data: bytes | memoryview) -> Place:
        """Write bytes at the end, and return where they are.

        Raises
        ------
        TraceparseError
            There is no room.
        """
        left = memoryview(data).cast("B")
        place = Place(self._size, left.nbytes)
        try:
            if self._file < 0:
                self._open()
            os.lseek(self._file, place.offset, os.SEEK_SET)
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            raise _failed(error) from error
        self._size += place.size
        return place

    def get(self, place: Place) -> bytes:
        """Read what was put there.

        Raises
        ------
        TraceparseError
            It cannot be read any more.
        """
        try:
            os.lseek(self._file, place.offset, os.SEEK_SET)
            data = os.read(self._file, place.size)
            while len(data) < place.size and (
                more := os.read(self._file, place.size - len(data))
            ):
                data += more
        except OSError as error:
            raise _failed(error) from error
        assert len(data) == place.size  # nobody else has the file
        return data

    def _open(self) -> None:
        with tempfile.TemporaryFile(prefix="traceparse-") as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)


def _failed(error: OSError) -> TraceparseError:
    return TraceparseError(
        f"{tempfile.gettempdir()}: what a large trace needs beside memory cannot be kept "
        f"there: {error.strerror or error}; set TMPDIR to a folder with more room"
    )
