"""Counted kernels that are slow, and nothing that is known of them says why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from traceparse.run.findings.finding import Finding, finding
from traceparse.run.findings.shapes import held_back_by_shape
from traceparse.run.findings.view import Row, View
from traceparse.units import format_number_of, format_ratio

__all__ = ["slow_kernels"]

_SHORT: Final = 60
_MOST_NAMED: Final = 3
_LEAST: Final = 0.05  # of the device-steps
_SERIOUS: Final = 0.15
_FASTER: Final = {"fp32": ("tf32", "bf16", "fp16"), "tf32": ("bf16", "fp16")}

_ADVICE: Final = (
    (("conv",), "run convolutions in channels_last, with torch.backends.cudnn.benchmark=True"),
    (
        ("attention", "flash"),
        "try another kernel of attention (torch.nn.attention.sdpa_kernel), heads of 64 or 128, "
        "more heads or batch at once",
    ),
    (
        ("mm", "linear"),
        'try torch.compile(mode="max-autotune") for products, or a newer cuBLAS or hipBLASLt',
    ),
)


def slow_kernels(view: View) -> Iterator[Finding]:
    """Find counted kernels below the speed of good ones, for no reason in their shape.

    What they would win back is what they take longer than at that speed
    (:meth:`.View.reachable`). Those in a slow data type have their own finding.
    """
    elsewhere = {id(one.row) for one in held_back_by_shape(view)}
    rows = [
        row for row in view.roofline or () if id(row) not in elsewhere and _is_slow(view, row)
    ]
    rows.sort(key=lambda row: -_lost_ns(view, row))
    lost = view.of_counted(sum(_lost_ns(view, row) for row in rows)) or 0.0
    if lost < _LEAST:
        return
    yield finding(
        "slow_kernels",
        "warning" if lost >= _SERIOUS else "info",
        f"kernels that are slower than their roof explains cost {format_ratio(lost)} of the "
        f"{view.unit}",
        "; ".join(_about(view, rows)),
        "; ".join(_advice(rows)),
        lost_ratio=lost,
    )


def _is_slow(view: View, row: Row) -> bool:
    reached = row["roof_ratio"]
    if row["bound"] not in {"compute", "memory"} or reached is None:
        return False
    if view.is_near_bandwidth(row) or reached >= view.reachable(row):
        return False
    own = view.peak(row["dtype"]) or 0.0
    others = _FASTER.get(row["dtype"], ())
    return not any((view.peak(name) or 0.0) > own for name in others)


def _lost_ns(view: View, row: Row) -> float:
    return float(row["time_ns"] * (1 - row["roof_ratio"] / view.reachable(row)))


def _about(view: View, rows: Sequence[Row]) -> Iterator[str]:
    for row in rows[:_MOST_NAMED]:
        yield (
            f"{row['op'][:_SHORT]} {row['shapes'][:_SHORT]} in {row['dtype']} reaches "
            f"{format_ratio(row['roof_ratio'])} of its roof, which is that of {row['bound']}, "
            f"where good kernels reach {format_ratio(view.reachable(row))}"
        )
    if (more := len(rows) - _MOST_NAMED) > 0:
        yield f"{format_number_of(more, 'more row')} like it"


def _advice(rows: Sequence[Row]) -> Iterator[str]:
    names = " ".join(row["op"].casefold() for row in rows[:_MOST_NAMED])
    yield from (words for parts, words in _ADVICE if any(part in names for part in parts))
    yield (
        "see that clocks and power are not capped (nvidia-smi -q -d CLOCK,POWER,PERFORMANCE; "
        "rocm-smi)"
    )
