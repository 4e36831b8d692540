"""Write compressed files that inflate to thousands of times their size, without inflating them.

A block is compressed once and its compressed bytes repeated: in one gzip member with the right
checksum at its end, or as frames of zstd one after another.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import zstandard

__all__ = ["combined_crc", "write_gzip", "write_members", "write_plain", "write_zstd"]

_GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_RAW = -15  # zlib's way of saying: no header
_ONE, _X8 = 1 << 31, 1 << 23  # polynomials 1 and x^8, lowest power in the highest bit
_POLYNOMIAL = 0xEDB88320


def write_plain(path: Path, head: bytes, block: bytes, times: int, tail: bytes) -> int:
    """Write the text itself; return its size, as the other writers do."""
    with path.open("wb") as file:
        file.write(head)
        for _ in range(times):
            file.write(block)
        file.write(tail)
    return path.stat().st_size


def write_gzip(path: Path, head: bytes, block: bytes, times: int, tail: bytes) -> int:
    """Write one gzip member that holds the block so many times between head and tail."""
    size = len(head) + len(block) * times + len(tail)
    whole = combined_crc(zlib.crc32(head), _repeated_crc(block, times), len(block) * times)
    whole = combined_crc(whole, zlib.crc32(tail), len(tail))
    packed = _deflated(block, zlib.Z_FULL_FLUSH)
    with path.open("wb") as file:
        file.write(_GZIP_HEADER + _deflated(head, zlib.Z_FULL_FLUSH))
        for _ in range(times):
            file.write(packed)
        file.write(_deflated(tail, zlib.Z_FINISH))
        file.write(whole.to_bytes(4, "little") + (size % (1 << 32)).to_bytes(4, "little"))
    return size


def write_members(path: Path, head: bytes, block: bytes, times: int, tail: bytes) -> int:
    """Write the block as so many gzip members, with one before and one after them."""
    packed = [zlib.compress(part, 9, wbits=31) for part in (head, block, tail)]
    write_plain(path, packed[0], packed[1], times, packed[2])
    return len(head) + len(block) * times + len(tail)


def write_zstd(path: Path, head: bytes, block: bytes, times: int, tail: bytes) -> int:
    """Write the same as frames of zstd."""
    compressor = zstandard.ZstdCompressor(level=3)
    packed = [compressor.compress(part) for part in (head, block, tail)]
    write_plain(path, packed[0], packed[1], times, packed[2])
    return len(head) + len(block) * times + len(tail)


def _deflated(text: bytes, ending: int) -> bytes:
    """Compress text so that it depends on nothing before it and anything may follow."""
    stream = zlib.compressobj(9, zlib.DEFLATED, _RAW)
    return stream.compress(text) + stream.flush(ending)


# -- checksums of texts that are never made


def combined_crc(first: int, second: int, length: int) -> int:
    """Return the CRC-32 of two texts together, from those of each and the second's length.

    Appending n bytes multiplies a checksum by x^(8n) modulo the polynomial (zlib's
    ``crc32_combine``).
    """
    return _product(_power(length), first) ^ second


def _repeated_crc(block: bytes, times: int) -> int:
    total, length = 0, 0
    piece, size = zlib.crc32(block), len(block)
    while times:
        if times & 1:
            total, length = combined_crc(total, piece, size), length + size
        piece, size = combined_crc(piece, piece, size), size * 2
        times >>= 1
    return total


def _power(num_bytes: int) -> int:
    result, factor = _ONE, _X8
    while num_bytes:
        if num_bytes & 1:
            result = _product(result, factor)
        factor = _product(factor, factor)
        num_bytes >>= 1
    return result


def _product(left: int, right: int) -> int:
    total, bit = 0, _ONE
    while bit:
        if left & bit:
            total ^= right
        right = (right >> 1) ^ (_POLYNOMIAL if right & 1 else 0)
        bit >>= 1
    return total
