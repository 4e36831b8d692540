"""From a file to its bytes, decompressed.

Compression is recognized by content, never by name. A stream that breaks off, or turns into
something that cannot be inflated, gives what came before, and says so.
"""

from __future__ import annotations

import re
import stat
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard
from isal import igzip_lib, isal_zlib

from traceparse.errors import InputError
from traceparse.ingest.ahead import ahead
from traceparse.ingest.remote import Remote, RemoteFile

__all__ = ["Source"]

# isal's type stubs say that its error class is an instance of one
_ISAL_ERROR = cast("type[Exception]", igzip_lib.IsalError)
_DAMAGE = (_ISAL_ERROR, zstandard.ZstdError)
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # zstd frames of no content: pzstd's
_MAGIC = 4  # bytes that tell
_GZIP_WBITS = 31  # zlib's way of saying: expect a gzip header
_RAW_BLOCK = 1 << 18
_PLAIN_BLOCK = 1 << 20  # of a file that is not compressed: what is asked for at a time
_INFLATED_BLOCK = 1 << 20
_ZLIB_BLOCK = 1 << 12
_ZSTD_BITE = 1 << 10  # a zstd block of 4 bytes can hold 128 KiB: this is at most 32 MiB at once
_TRUSTED = 256 << 20  # bytes that may be inflated from however little
_MOST_FOLD = 250


class _Member(Protocol):
    """One compressed member of a file: bytes in, bytes out, a bounded amount at a time."""

    def inflate(self, data: bytes) -> Iterator[bytes]:
        """Yield what the data inflates to."""
        ...

    @property
    def rest(self) -> bytes | None:
        """What followed the end of the member, or ``None`` while it has not ended."""
        ...


class _Gzip:
    def __init__(self) -> None:
        self._stream = isal_zlib.decompressobj(wbits=_GZIP_WBITS)

    def inflate(self, data: bytes) -> Iterator[bytes]:
        while data:
            yield self._stream.decompress(data, _INFLATED_BLOCK)
            data = self._stream.unconsumed_tail

    @property
    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


class _Zstd:
    """zstandard has no limit on what one call returns, so it gets little at a time."""

    def __init__(self) -> None:
        self._stream = zstandard.ZstdDecompressor().decompressobj()
        self._unread = b""

    def inflate(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_BITE):
            yield self._stream.decompress(data[start : start + _ZSTD_BITE])
            if self._stream.eof:
                self._unread = data[start + _ZSTD_BITE :]
                return

    @property
    def rest(self) -> bytes | None:
        return self._stream.unused_data + self._unread if self._stream.eof else None


class Source:
    """A file as a stream of decompressed bytes.

    ``damage`` says in words why the stream ended before the file's content did, or is ``None``.
    ``on_bytes`` is called with the number of bytes taken from the disk, for progress bars.
    """

    def __init__(
        self, path: Path | Remote, on_bytes: Callable[[int], object] | None = None
    ) -> None:
        self.path = path
        self.damage: str | None = None
        self._on_bytes = on_bytes
        self._pieces: list[bytes] = []
        self._held = 0
        self._blocks: Generator[bytes] | None = None
        self._num_raw = self._num_inflated = self._num_said = 0
        try:
            self._file, self._size = _opened(path)
        except OSError as error:
            raise _unreadable(path, error) from error

    @property
    def size(self) -> int:
        """How many bytes the file has; so far, if that is known only at its end."""
        return self._num_raw if self._size is None else self._size

    def __enter__(self) -> Source:
        """Return the open source."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        if self._blocks is not None:
            self._blocks.close()
        self._file.close()

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes: fewer at the end, none when there are no more."""
        if self._blocks is None:
            self._blocks = self._inflate()
        while self._held < size:
            block = next(self._blocks, None)
            self._say()
            if block is None:
                break
            self._pieces.append(block)
            self._held += len(block)
            self._num_inflated += len(block)
            self._refuse_bombs()
        data = b"".join(self._pieces)
        self._pieces = [data[size:]] if len(data) > size else []
        self._held = max(len(data) - size, 0)
        return data[:size]

    def _raw(self, size: int | None = None) -> bytes:
        try:
            block = self._file.read(size or _RAW_BLOCK)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        self._num_raw += len(block)
        return block

    def _say(self) -> None:
        """Say how many more bytes came from the disk: here, as a thread may take them."""
        if self._on_bytes and (num := self._num_raw - self._num_said):
            self._num_said += num
            self._on_bytes(num)

    def _refuse_bombs(self) -> None:
        """Stop at what inflates as no trace does: 10 to 50 times is what theirs are packed."""
        if self._num_inflated > max(_TRUSTED, _MOST_FOLD * self._num_raw):
            raise InputError(
                f"{self.path}: inflates more than {_MOST_FOLD}-fold, to over {_TRUSTED >> 20} "
                f"MiB: this is no trace but made to fill memory, and is not read further"
            )

    def _inflate(self) -> Generator[bytes]:
        block = self._raw()
        while len(block) < _MAGIC and (more := self._raw()):
            block += more
        member = _member(block)
        if member is None:
            yield from self._plain(block)
        else:
            yield from ahead(self._members(block, member))

    def _plain(self, block: bytes) -> Iterator[bytes]:
        size = _PLAIN_BLOCK - len(block)  # so that whole blocks follow, and need not be joined
        while block:
            yield block
            block = self._raw(size)
            size = _PLAIN_BLOCK

    def _members(self, block: bytes, member: _Member) -> Iterator[bytes]:
        """Inflate one compressed member after another, as far as they are whole."""
        begins, given = 0, 0
        while block:
            try:
                for piece in member.inflate(block):
                    given += len(piece)
                    yield piece
            except _DAMAGE as error:
                self.damage = f"its compressed data is damaged ({error})"
                if isinstance(member, _Gzip):
                    yield from self._to_the_last_byte(begins, given)
                return
            rest = member.rest
            block = self._raw() if rest is None else self._following(rest)
            if rest is not None and block:
                follower = _member(block)
                if follower is None:
                    self.damage = "something that is not compressed follows its compressed data"
                    return
                begins, given, member = self._num_raw - len(block), 0, follower
        if member.rest is None:
            self.damage = "its compressed data breaks off"

    def _following(self, rest: bytes) -> bytes:
        """Return what follows a member and its padding: enough of it to tell what it is."""
        while len(rest := rest.lstrip(b"\0")) < _MAGIC and (more := self._raw()):
            rest += more
        return rest

    def _to_the_last_byte(self, begins: int, given: int) -> Iterator[bytes]:
        """Return the bytes of a damaged gzip member from the ``given`` on to its damage."""
        for piece in self._inflated_again(begins):
            yield piece[given:]
            given = max(given - len(piece), 0)

    def _inflated_again(self, begins: int) -> Iterator[bytes]:
        """Inflate a damaged gzip member from its begin, to where its damage is.

        isal gives nothing for a call that fails. zlib's state can be copied, so that the call
        that fails can be made again byte by byte.
        """
        stream = zlib.decompressobj(_GZIP_WBITS)
        with self.path.open("rb") as file:
            file.seek(begins)
            while block := file.read(_ZLIB_BLOCK):
                before = stream.copy()
                try:
                    yield stream.decompress(block)
                except zlib.error:
                    yield from _bytewise(before, block)
                    return


def _bytewise(stream: zlib._Decompress, block: bytes) -> Iterator[bytes]:
    for at in range(len(block)):
        try:
            yield stream.decompress(block[at : at + 1])
        except zlib.error:
            return


def _member(block: bytes) -> _Member | None:
    """Return what inflates this data, told by its first bytes; ``None`` for plain data."""
    if block.startswith(_GZIP):
        return _Gzip()
    if block.startswith(_ZSTD) or _SKIPPABLE.match(block):
        return _Zstd()
    return None


def _opened(path: Path | Remote) -> tuple[BinaryIO | RemoteFile, int | None]:
    if isinstance(path, Remote):
        return path.open(), path.size()
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path}: this is no regular file; give a trace file")
    return path.open("rb"), found.st_size


def _unreadable(path: Path | Remote, error: OSError) -> InputError:
    return InputError(
        f"{path}: cannot be read: {error.strerror or error}; check its permissions"
    )
