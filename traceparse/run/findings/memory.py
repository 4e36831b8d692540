"""Kernels that move data rather than multiply, and copies that nobody can overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from traceparse.run.findings.finding import Finding, finding
from traceparse.run.findings.view import Row, View, by_operator
from traceparse.units import format_count, format_number_of, format_ratio, format_size

__all__ = ["memory_bound_kernels", "pageable_copies"]

_NS_PER_S: Final = 1_000_000_000
_SHORT: Final = 60
_MOST_NAMED: Final = 4
_LEAST: Final = 0.15  # of the device-steps
_SERIOUS: Final = 0.30
_LEAST_COPIES: Final = 0.01
_SERIOUS_COPIES: Final = 0.05

# what operators of a kind have instead, by a part of their name; the first that fits
_INSTEAD: Final = (
    (("adam", "sgd", "_foreach", "lamb", "addcdiv"), "fused=True in the optimizer"),
    (("norm",), "a fused norm (F.rms_norm or layer_norm under torch.compile, Apex, Liger)"),
    (("nll_loss", "cross_entropy", "log_softmax"), "a fused or chunked cross entropy"),
    (
        ("softmax", "masked_fill", "dropout"),
        "scaled_dot_product_attention with flash attention instead of one written out",
    ),
    (("_to_copy", "copy_"), "fewer casts and copies (weights kept in bf16, channels_last)"),
    (("embedding", "index"), "embeddings without dense gradients, sorted indices"),
)


def memory_bound_kernels(view: View) -> Iterator[Finding]:
    """Find much time in kernels that only read and write memory.

    Counted ones are among them where memory bounds them, and they come near its bandwidth.

    What it would win back is how much longer they take than their least bytes do at the
    bandwidth of the device; unknown for operators without a count of those.
    """
    other = view.other_ratio
    slowed = [row for row in view.roofline or () if view.is_near_bandwidth(row)]
    counted = view.of_counted(sum(row["time_ns"] for row in slowed)) or 0.0
    if other is None or other + counted < _LEAST:
        return
    names = by_operator([*view.uncounted_kernels(), *_as_kernels(slowed)])
    yield finding(
        "memory_bound_kernels",
        "warning" if other + counted >= _SERIOUS else "info",
        f"kernels that move data take {format_ratio(other + counted)} of the {view.unit}",
        "; ".join(_about_memory(view, (other, counted), names)),
        _fused([name for name, _, _ in names[:_MOST_NAMED]]),
        lost_ratio=_above_bandwidth(view, slowed),
    )


def _as_kernels(rows: Sequence[Row]) -> list[Row]:
    return [{**row, "name": row["op"]} for row in rows]


def _about_memory(
    view: View, shares: tuple[float, float], names: Sequence[tuple[str, int, int]]
) -> Iterator[str]:
    other, counted = shares
    yield f"kernels without counted FLOP take {format_ratio(other)}"
    if counted:
        yield f"counted ones that memory bounds {format_ratio(counted)}"
    total = sum(time_ns for _, time_ns, _ in names)
    if total:
        told = ", ".join(
            f"{name[:_SHORT]} {format_ratio(time_ns / total)} of their time in "
            f"{format_number_of(count, 'kernel')}"
            for name, time_ns, count in names[:_MOST_NAMED]
        )
        yield f"most of it {told}"
    if unknown := view.unattributed_ns + view.uncounted_products_ns:
        yield (
            f"{format_ratio(view.ratio(unknown))} more is in kernels without a known operator, "
            f"or of products without known FLOP, and not in this"
        )


def _fused(names: Sequence[str]) -> str:
    told = {
        words
        for name in names
        for words in [next((w for parts, w in _INSTEAD if _is_like(name, parts)), None)]
        if words
    }
    return "; ".join(["fuse what stands beside each other: torch.compile", *sorted(told)])


def _is_like(name: str, parts: Sequence[str]) -> bool:
    return any(part in name.casefold() for part in parts)


def _above_bandwidth(view: View, slowed: Sequence[Row]) -> float | None:
    """Return for how long memory-bound kernels take longer than their bytes need."""
    rate = view.bytes_per_s
    if rate is None:
        return None
    won: list[float] = []
    above = sum(max(row["time_ns"] - row["bytes"] * _NS_PER_S / rate, 0.0) for row in slowed)
    if slowed and (share := view.of_counted(above)) is not None:
        won.append(share)
    rows = view.uncounted_kernels()
    known = [row for row in rows if row.get("least_bytes") is not None]
    total = sum(row["time_ns"] for row in rows)
    if known and total and view.other_ratio is not None:
        above = sum(
            max(row["time_ns"] - row["least_bytes"] * _NS_PER_S / rate, 0.0) for row in known
        )
        won.append(above / total * view.other_ratio)
    return sum(won) if won else None


def pageable_copies(view: View) -> Iterator[Finding]:
    """Find copies from pageable memory that a device does nothing beside.

    The driver puts such a copy into pinned memory first, and the host waits meanwhile (CUDA
    C++ Best Practices Guide, "Pinned Memory"). Overlapped, it would win back what is exposed,
    an upper bound; copies from the device count too, but for scalars.
    """
    rows = view.copies or ()
    if any(row["exposed_ns"] is None for row in rows):
        return
    exposed_ns = sum(row["exposed_ns"] for row in rows)
    pageable = [row for row in rows if row["memory"] == "pageable"]
    own_ns = sum(row["exposed_ns"] for row in pageable)
    if not exposed_ns:
        return
    lost = own_ns / exposed_ns * view.ratio(view.times.exposed_copy_ns)
    if lost < _LEAST_COPIES:
        return
    told = ", ".join(
        f"{format_count(row['count'])} x {row['direction'] or 'unknown direction'} "
        f"({format_size(row['bytes'])})"
        for row in pageable
    )
    yield finding(
        "pageable_copies",
        "warning" if lost >= _SERIOUS_COPIES else "info",
        f"copies from pageable memory hold devices up for {format_ratio(lost)} of the "
        f"{view.unit}",
        f"{told}; exposed for {format_ratio(lost)} of the {view.unit}, all of which is won "
        f"back if they run beside compute",
        "use DataLoader(pin_memory=True), and tensor.to(device, non_blocking=True) a step "
        "ahead, on a stream of its own; tensors that live long: tensor.pin_memory()",
        lost_ratio=lost,
    )
