"""How much of a device can a matrix product use, given its shape? Tiles and waves.

A kernel cuts the result into tiles, one a block, and runs as many blocks at once as there are
SMs. Tiles that stick out over the edge (tile quantization) and a last wave that does not fill
the device (wave quantization) compute nothing that counts (NVIDIA, "Matrix Multiplication
Background User's Guide", sections "Tile Quantization" and "Wave Quantization").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

__all__ = ["TILES", "Product", "Tiled", "best_tiled", "product_of"]

TILES: Final = ((128, 128), (256, 128), (128, 256))  # of cuBLAS' fastest kernels
_SHAPE = re.compile(r"\d+(?:x\d+)*", re.ASCII)
_MOST_DIGITS = 18
_ALIGNED_BYTES: Final = 16  # what tensor cores want rows to be multiples of (same guide)


@dataclass(frozen=True, slots=True)
class Product:
    """``batch`` products of M x K and K x N; ``is_layer``: of a layer's input and weight."""

    m: int
    n: int
    k: int
    batch: int = 1
    is_layer: bool = False

    def unaligned(self, element_bytes: int) -> list[str]:
        """Name the sizes that are no multiples of 16 bytes, of those that rows surely have.

        Rows of the result have N elements; those of a layer's input, which a bias or a weight
        comes with, K. What a product that stands alone has in memory its shapes do not tell.
        """
        elements = _ALIGNED_BYTES // element_bytes
        told = [("N", self.n), *([("K", self.k)] if self.is_layer else [])]
        return [f"{name} = {size:,}" for name, size in told if size % elements]

    @property
    def smallest(self) -> tuple[str, int]:
        """Name the smallest size: no more than twice as many FLOP go with an element moved.

        2MNK / (MK + KN + MN) = 2 / (1/M + 1/N + 1/K), which is below 2K, 2M and 2N.
        """
        return min((("K", self.k), ("N", self.n), ("M", self.m)), key=lambda one: one[1])


@dataclass(frozen=True, slots=True)
class Tiled:
    """A product in tiles of one size: how many, in how many waves, and which share counts."""

    tile: tuple[int, int]
    num_tiles: int
    num_waves: int
    tile_ratio: float
    wave_ratio: float

    @property
    def ratio(self) -> float:
        """Return which share of the device's time can count."""
        return self.tile_ratio * self.wave_ratio


def best_tiled(product: Product, num_sms: int) -> Tiled:
    """Return the tiling, of those in :data:`TILES`, that can use most of the device."""
    return max((_tiled(product, tile, num_sms) for tile in TILES), key=lambda one: one.ratio)


def _tiled(product: Product, tile: tuple[int, int], num_sms: int) -> Tiled:
    rows, columns = _over(product.m, tile[0]), _over(product.n, tile[1])
    num_tiles = rows * columns * product.batch
    num_waves = _over(num_tiles, num_sms)
    return Tiled(
        tile=tile,
        num_tiles=num_tiles,
        num_waves=num_waves,
        tile_ratio=product.m * product.n / (rows * tile[0] * columns * tile[1]),
        wave_ratio=num_tiles / (num_waves * num_sms),
    )


def _over(size: int, part: int) -> int:
    """Divide and round up, exactly."""
    return -(-size // part)


def product_of(op: str, shapes: str) -> Product | None:
    """Read the product of an operator from its recorded shapes; ``None`` if they tell none."""
    read = _READERS.get(op)
    sizes = [_sizes(text) for text in shapes.split(", ")]
    dims = [size for size in sizes if size]
    if read is None or any(0 in size for size in dims):
        return None
    return read(dims)


def _sizes(text: str) -> tuple[int, ...]:
    """Read ``4096x2048``; nothing of a scalar, or where a text was cut."""
    if not _SHAPE.fullmatch(text):
        return ()
    parts = text.split("x")
    return tuple(map(int, parts)) if all(len(part) <= _MOST_DIGITS for part in parts) else ()


_Dims = list[tuple[int, ...]]


def _mm(dims: _Dims) -> Product | None:
    left, right = _last_two(dims, rank=2)
    if not left or left[1] != right[0]:
        return None
    return Product(left[0], right[1], left[1], is_layer=len(dims) > 2)


def _bmm(dims: _Dims) -> Product | None:
    left, right = _last_two(dims, rank=3)
    if not left or (left[0], left[2]) != right[:2]:
        return None
    return Product(left[1], right[2], left[2], batch=left[0])


def _linear(dims: _Dims) -> Product | None:
    if len(dims) < 2 or len(dims[1]) != 2 or dims[0][-1] != dims[1][1]:
        return None
    return Product(prod(dims[0][:-1]), dims[1][0], dims[1][1], is_layer=True)


def _last_two(dims: _Dims, *, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the factors of a product, which a bias may precede."""
    found = dims[-2:]
    if len(found) < 2 or any(len(size) != rank for size in found):
        return (), ()
    return found[0], found[1]


_READERS: Mapping[str, Callable[[_Dims], Product | None]] = {
    "aten::mm": _mm,
    "aten::addmm": _mm,
    "aten::_addmm_activation": _mm,
    "aten::_scaled_mm": lambda dims: _mm(dims[:2]),
    "aten::bmm": _bmm,
    "aten::baddbmm": _bmm,
    "aten::linear": _linear,
}
