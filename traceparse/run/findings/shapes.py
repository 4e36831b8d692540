"""Matrix products of shapes that a device cannot fill: tiles, waves, alignment, thinness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from traceparse.run.findings.finding import Finding, finding
from traceparse.run.findings.tiles import Product, Tiled, best_tiled, product_of
from traceparse.run.findings.view import Row, View
from traceparse.units import format_count, format_number_of, format_ratio

__all__ = ["Shaped", "gemm_shapes", "held_back_by_shape"]

_SHORT: Final = 60
_MOST_NAMED: Final = 3
_LEAST: Final = 0.01  # of the device-steps
_SERIOUS: Final = 0.05
_LEAST_THIN: Final = 0.05  # in products that are too thin for compute
_BYTES: Final = {"bf16": 2, "fp16": 2, "tf32": 4, "fp32": 4, "fp8": 1, "int8": 1}
_FULL: Final = 0.85  # of the device that tiles and waves can use: they explain nothing
_BEYOND: Final = 1.05  # times what tiles and waves allow: others were used


@dataclass(frozen=True, slots=True)
class Shaped:
    """A row of the roofline whose shape holds it back, and for how long, at most."""

    row: Row
    product: Product
    tiled: Tiled | None
    unaligned: Sequence[str]
    lost_ns: float


def held_back_by_shape(view: View) -> list[Shaped]:
    """Return the products that their shape holds back, those that lose most first."""
    found = [shaped for row in view.roofline or () if (shaped := _shaped(view, row))]
    return sorted(found, key=lambda one: -one.lost_ns)


def gemm_shapes(view: View) -> Iterator[Finding]:
    """Find matrix products far below their roof, and shapes that explain it.

    What they would win back, at most: in full tiles and waves a product takes that share of its
    time which its tiles can use now, but no less than at its roof (libraries also have smaller
    tiles, and split K); an aligned one what it takes above its roof. Thin ones could not be
    faster than memory, and win nothing.
    """
    found = held_back_by_shape(view)
    told = [id(one.row) for one in found]
    thin = [
        (row, product)
        for row in view.roofline or ()
        if id(row) not in told and (product := _thin(view, row))
    ]
    lost = view.of_counted(sum(one.lost_ns for one in found)) or 0.0
    thin_ratio = view.of_counted(sum(row["time_ns"] for row, _ in thin)) or 0.0
    if lost < _LEAST and thin_ratio < _LEAST_THIN:
        return
    title = "matrix products have shapes that the device cannot fill"
    evidence = [*_about_shapes(view, found)] if lost >= _LEAST else []
    if thin_ratio >= _LEAST_THIN:
        evidence += _about_thin(view, thin, thin_ratio)
    yield finding(
        "gemm_shapes",
        "warning" if lost >= _SERIOUS else "info",
        title,
        "; ".join(evidence),
        "; ".join(_how_to_fill(found if lost >= _LEAST else [], is_thin=bool(thin))),
        lost_ratio=lost if lost >= _LEAST else None,
    )


def _thin(view: View, row: Row) -> Product | None:
    """Return a product that memory bounds as one of its sizes is too small for compute."""
    product, ridge = product_of(row["op"], row["shapes"]), _ridge(view, row["dtype"])
    if row["bound"] != "memory" or product is None or ridge is None:
        return None
    _, size = product.smallest
    return product if 2 * size < ridge else None


def _about_thin(view: View, thin: Sequence[tuple[Row, Product]], ratio: float) -> Iterator[str]:
    row, product = max(thin, key=lambda one: one[0]["time_ns"])
    name, size = product.smallest
    yield (
        f"products too thin to compute at speed take {format_ratio(ratio)} of the {view.unit} "
        f"(the same time is in `memory_bound_kernels` or `slow_kernels`), most of it "
        f"{row['op'][:_SHORT]} {row['shapes'][:_SHORT]}: with {name} = {format_count(size)} at "
        f"most {format_count(2 * size)} FLOP go with each element moved, where memory and "
        f"compute balance at {_ridge(view, row['dtype']):,.0f}"
    )


def _shaped(view: View, row: Row) -> Shaped | None:
    reached, lost_ns = row["roof_ratio"], row["lost_ns"]
    product = product_of(row["op"], row["shapes"])
    if row["bound"] not in {"compute", "memory"} or product is None:
        return None
    if reached is None or lost_ns is None or reached >= view.reachable(row) or lost_ns <= 0:
        return None
    tiled = best_tiled(product, view.num_sms) if view.num_sms else None
    if tiled is not None and (tiled.ratio >= _FULL or reached > _BEYOND * tiled.ratio):
        tiled = None
    element_bytes = _BYTES.get(row["dtype"])
    unaligned = product.unaligned(element_bytes) if element_bytes else []
    if unaligned and row["bound"] == "compute":
        return Shaped(row, product, tiled, unaligned, lost_ns)
    if tiled is None:
        return None
    return Shaped(row, product, tiled, [], min(lost_ns, row["time_ns"] * (1 - tiled.ratio)))


def _about_shapes(view: View, found: Sequence[Shaped]) -> Iterator[str]:
    for one in found[:_MOST_NAMED]:
        row = one.row
        yield (
            f"{row['op'][:_SHORT]} {row['shapes'][:_SHORT]} in {row['dtype']} reaches "
            f"{format_ratio(row['roof_ratio'])} of its roof"
        )
        if one.tiled is not None:
            yield _tiles(one.tiled, view.num_sms or 0)
        if one.unaligned:
            yield f"{', '.join(one.unaligned)}: no multiple of 16 bytes"
    if (more := len(found) - _MOST_NAMED) > 0:
        yield f"{format_number_of(more, 'more shape')} like it"


def _tiles(tiled: Tiled, num_sms: int) -> str:
    return (
        f"tiles and waves allow {format_ratio(tiled.ratio)} "
        f"({format_number_of(tiled.num_tiles, 'tile')} of {tiled.tile[0]}x{tiled.tile[1]}, "
        f"{format_ratio(tiled.tile_ratio)} of them used, in "
        f"{format_number_of(tiled.num_waves, 'wave')} on {num_sms} SMs, "
        f"{format_ratio(tiled.wave_ratio)} full)"
    )


def _ridge(view: View, dtype: str) -> float | None:
    """Return FLOP an element at which a device's compute and memory take as long."""
    peak, rate = view.peak(dtype), view.bytes_per_s
    if peak is None or rate is None or dtype not in _BYTES:
        return None
    return peak / rate * _BYTES[dtype]


def _how_to_fill(found: Sequence[Shaped], *, is_thin: bool) -> Iterator[str]:
    if any(one.unaligned for one in found):
        yield (
            "pad sizes to multiples of 64 (at least of 8 in 16 bits, 16 in 8 bits), such as a "
            "vocabulary of 50,257 to 50,304"
        )
    if any(one.tiled is not None for one in found):
        yield (
            "choose M (batch x sequence) and N so that the number of 128x128 tiles is just "
            "below a multiple of the SMs: a larger micro-batch, QKV and gate/up in one, "
            'less tensor parallelism; torch.compile(mode="max-autotune") for split-K and '
            "stream-K"
        )
    if is_thin:
        yield (
            "make thin products fewer and thicker: more rows at once, LoRA's and experts' in "
            "one grouped product (torch._grouped_mm), or fused with what comes before and after"
        )
