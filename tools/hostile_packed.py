"""Files that are hostile by how they are packed, or are no files, not by what is in them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import zstandard

from tools.hostile_parts import HEAD, KERNEL, MB, TAIL, Write, hostile

__all__: list[str] = []

_TEXT = HEAD + KERNEL + TAIL
_HALF = len(_TEXT) // 2
_KERNEL_AT = (
    b'{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": %d.000, "dur": 1.000,'
    b' "args": {"device": 0, "stream": 7, "correlation": %d}}'
)
_SKIPPABLE = b"\x50\x2a\x4d\x18"


def _gzip(text: bytes) -> bytes:
    return zlib.compress(text, 9, wbits=31)


def _zstd(text: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(text)


def _between(pack: Callable[[bytes], bytes], filler: bytes, count: int) -> Write:
    """Write the two halves of a trace, each packed, with filler between them."""

    def write(path: Path, scale: float) -> int:
        halves = pack(_TEXT[:_HALF]), pack(_TEXT[_HALF:])
        path.write_bytes(halves[0] + filler * max(1, int(count * scale)) + halves[1])
        return len(_TEXT)

    return write


def _whole(packed: bytes) -> Write:
    def write(path: Path, _: float) -> int:
        path.write_bytes(packed)
        return len(_TEXT)

    return write


hostile("1 million empty gzip members", ending=".json.gz")(_between(_gzip, _gzip(b""), MB))
hostile("1 million empty zstd frames", ending=".json.zst")(_between(_zstd, _zstd(b""), MB))
hostile("100 MB of zeros between gzip members", ending=".json.gz")(
    _between(_gzip, b"\0", 100 * MB)
)
hostile("1 million skippable zstd frames", ending=".json.zst")(
    _between(_zstd, _SKIPPABLE + bytes(4), MB)
)


def _one_by_one(path: Path, scale: float) -> int:
    """Write a gzip member for each byte."""
    text = HEAD + (KERNEL + b",\n") * max(1, int(4000 * scale)) + KERNEL + TAIL
    members = {byte: _gzip(bytes([byte])) for byte in range(256)}
    path.write_bytes(b"".join(members[byte] for byte in text))
    return len(text)


hostile("1 million gzip members of one byte", ending=".json.gz")(_one_by_one)


@hostile("10 million kernels, each another, packed 25-fold", ending=".json.gz")
def _many_kernels(path: Path, scale: float) -> int:
    """Write what is no bomb by its packing: every event in it is kept."""
    packer = zlib.compressobj(1, wbits=31)
    size = 0
    with path.open("wb") as file:
        for first in range(0, max(1000, int(10 * MB * scale)), 1000):
            kernels = b",".join(
                _KERNEL_AT % (10 + 2 * n, n + 1) for n in range(first, first + 1000)
            )
            text = (b",\n" if first else HEAD) + kernels
            size += len(text)
            file.write(packer.compress(text))
        file.write(packer.compress(TAIL) + packer.flush())
    return size + len(TAIL)


def _with_window(log: int) -> bytes:
    """Pack a trace so that whoever inflates it has to keep 2^log bytes at hand."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        3, window_log=log, write_content_size=False
    )
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return stream.compress(_TEXT) + stream.flush()


def _claiming(size: int) -> bytes:
    """Pack a trace as one zstd frame that says to hold so many bytes."""
    descriptor = b"\xc0"  # eight bytes of content size, a window of its own
    window = bytes([(20 - 10) << 3])  # 1 MiB
    block = (len(_TEXT) << 3 | 1).to_bytes(3, "little")  # the last one, not compressed
    return (
        b"\x28\xb5\x2f\xfd" + descriptor + window + size.to_bytes(8, "little") + block + _TEXT
    )


def _named(length: int) -> bytes:
    """Pack a trace as gzip, with an endless file name in the header."""
    header = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff" + b"x" * length + b"\0"
    return header + _gzip(_TEXT)[10:]


hostile("zstd with a window of 128 MB", ending=".json.zst")(_whole(_with_window(27)))
hostile("zstd with a window of 2 GB", status=1, ending=".json.zst")(_whole(_with_window(31)))
hostile("zstd that claims 2^60 bytes", status=1, ending=".json.zst")(_whole(_claiming(1 << 60)))
hostile("gzip with a file name of 100 MB", ending=".json.gz")(
    lambda path, scale: _whole(_named(max(1, int(100 * MB * scale))))(path, scale)
)


@hostile("a named pipe", status=1)
def _pipe(path: Path, _: float) -> int:
    """Make what whoever opens it waits for, for ever: archives can hold them."""
    os.mkfifo(path)
    return 0
