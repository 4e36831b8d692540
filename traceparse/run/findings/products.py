"""Matrix products that could take less: in another data type, or by not repeating them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from traceparse.run.findings.finding import Finding, Severity, finding
from traceparse.run.findings.view import Row, View
from traceparse.units import format_flop_per_s, format_number_of, format_ratio

__all__ = ["fp32_matmuls", "recompute_cost", "tf32_matmuls"]

_NS_PER_S: Final = 1_000_000_000
_SHORT: Final = 60
_BYTES: Final = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}
_LEAST: Final = 0.01  # of the device-steps
_SERIOUS: Final = 0.05
_LEAST_IN_TYPE: Final = 0.02
_LEAST_REPEATED: Final = 0.02
_MUCH_REPEATED: Final = 0.10


def fp32_matmuls(view: View) -> Iterator[Finding]:
    """Find products in fp32 on a device that is faster in tf32 or bf16.

    What it would win back, at most: their time less what FLOP at the peak of that type, or
    bytes at the bandwidth, take.
    """
    yield from _slow_type(
        view,
        "fp32",
        ("tf32", "bf16", "fp16"),
        code="fp32_matmuls",
        severity=None,
        advice="; ".join(_faster_than_fp32(view)),
        doubt="as far as names of kernels tell: tf32 that they do not name counts as fp32",
    )


def tf32_matmuls(view: View) -> Iterator[Finding]:
    """Find products in tf32 where 16 bits would be faster; whether they do is for the user."""
    yield from _slow_type(
        view,
        "tf32",
        ("bf16", "fp16"),
        code="tf32_matmuls",
        severity="info",
        advice=(
            "run them under torch.autocast(device_type, dtype=torch.bfloat16) if the loss "
            "stays as good; gradients in bf16 need no scaler"
        ),
        doubt="an upper bound",
    )


def _faster_than_fp32(view: View) -> Iterator[str]:
    if view.peak("tf32"):
        yield (
            'allow tf32: torch.set_float32_matmul_precision("high"); convolutions have it by '
            "torch.backends.cudnn.allow_tf32, ROCm by HIPBLASLT_ALLOW_TF32=1"
        )
    if view.peak("bf16"):
        yield "run products under torch.autocast(device_type, dtype=torch.bfloat16)"
    elif view.peak("fp16"):
        yield (
            "run products under torch.autocast(device_type, dtype=torch.float16) with a "
            "GradScaler"
        )


def _slow_type(
    view: View,
    dtype: str,
    faster: Sequence[str],
    *,
    code: str,
    severity: Severity | None,
    advice: str,
    doubt: str,
) -> Iterator[Finding]:
    rows = [row for row in view.roofline or () if row["dtype"] == dtype]
    own_peak = view.peak(dtype)
    known = {name: peak for name in faster if (peak := view.peak(name)) is not None}
    share = view.of_counted(sum(row["time_ns"] for row in rows))
    if not known or own_peak is None or share is None or share < _LEAST_IN_TYPE:
        return
    best = max(known, key=lambda name: known[name])
    if known[best] <= own_peak:
        return
    reached = [row for row in rows if (row["flop_per_s"] or 0.0) <= own_peak]
    moved = _BYTES[best] / _BYTES[dtype]
    above = sum(_above_ns(view, row, known[best], moved) for row in reached)
    lost = view.of_counted(above) or 0.0
    if lost < _LEAST:
        return
    largest = max(reached, key=lambda row: row["time_ns"])
    yield finding(
        code,
        severity or _severity(lost),
        f"matrix products in {dtype} take {format_ratio(share)} of the {view.unit}",
        f"the device does {format_flop_per_s(own_peak)} in {dtype} and "
        f"{format_flop_per_s(known[best])} in {best}; most is "
        f"{largest['op'][:_SHORT]} {largest['shapes'][:_SHORT]} at "
        f"{format_flop_per_s(largest['flop_per_s'])}; {doubt}; findings on their shapes, "
        f"if any, are about the same time",
        advice,
        lost_ratio=lost,
    )


def _above_ns(view: View, row: Row, peak: float, moved: float) -> float:
    """Return how much longer a row takes than at another peak, with fewer bytes moved."""
    least = row["flop"] * _NS_PER_S / peak
    if view.bytes_per_s is not None:
        least = max(least, moved * row["bytes"] * _NS_PER_S / view.bytes_per_s)
    return float(max(row["time_ns"] - least, 0.0))


def recompute_cost(view: View) -> Iterator[Finding]:
    """Find products that are computed again in backward, for checkpoints.

    What keeping their results would win back is the time of those runs. What is repeated
    besides products is not in it.
    """
    rows = [row for row in view.roofline or () if row["recompute_count"]]
    lost = view.of_counted(sum(row["recompute_time_ns"] for row in rows))
    if lost is None or lost < _LEAST_REPEATED:
        return
    peak_share = view.term("recompute")
    count = sum(row["recompute_count"] for row in rows)
    most = max(rows, key=lambda row: row["recompute_time_ns"])
    yield finding(
        "recompute_cost",
        "warning" if lost >= _MUCH_REPEATED else "info",
        f"recomputing products takes {format_ratio(lost)} of the {view.unit}",
        "; ".join(
            [
                f"{format_number_of(count, 'product')} ran again, most time in "
                f"{most['op'][:_SHORT]} {most['shapes'][:_SHORT]}",
                *(
                    [f"{format_ratio(peak_share)} of the peak, between HFU and MFU"]
                    if peak_share is not None
                    else []
                ),
                "the same time is in findings on the speed of products, if there are any",
                "it is what checkpoints save memory with: selective ones keep products and "
                "attention, repeat the rest and win all of this back, for more memory",
            ]
        ),
        "use selective checkpoints: torch.utils.checkpoint.checkpoint with context_fn="
        "create_selective_checkpoint_contexts that saves aten.mm and attention, every second "
        "layer only, or torch._functorch.config.activation_memory_budget with "
        "torch.compile; none at all where memory allows",
        lost_ratio=lost,
    )


def _severity(lost: float) -> Severity:
    return "warning" if lost >= _SERIOUS else "info"
