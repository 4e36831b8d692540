"""Where 100 % of the peak went: shares of the device-steps that add up to one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from traceparse.run.tally import Tally

__all__ = ["waterfall"]


def waterfall(
    tally: Tally, hfu: Fraction | None, mfu: Fraction | None
) -> list[dict[str, Any]] | None:
    """Divide device-steps at their peak into what the model used and what was lost to what.

    From what no kernel filled to what is left as MFU. Where waiting and transfer are known
    apart, exposed communication is only what could not be split. Exact until each share
    becomes a float, so the shares add up to 1 within 1e-12 as long as none of them is
    thousands. ``None`` where HFU or MFU is not known.
    """
    span_ns, counted_ns = tally.span_ns, tally.counted_ns
    if hfu is None or mfu is None or counted_ns is None or not span_ns:
        return None
    shares = {
        "idle": Fraction(tally.idle_ns, span_ns),
        "exposed_copy": Fraction(tally.exposed_copy_ns, span_ns),
        **_communication(tally),
        "other_kernels": Fraction(tally.compute_ns - counted_ns, span_ns),
        "matmul_inefficiency": Fraction(counted_ns, span_ns) - hfu,
        "recompute": hfu - mfu,
        "mfu": mfu,
    }
    return [{"name": name, "ratio": float(share)} for name, share in shares.items()]


def _communication(tally: Tally) -> dict[str, Fraction]:
    if tally.split is None:
        return {"exposed_comm": Fraction(tally.exposed_comm_ns, tally.span_ns)}
    transfer, wait, pipeline, unsplit = (Fraction(ns, tally.span_ns) for ns in tally.split)
    return {
        "exposed_wait": wait,
        "pipeline_wait": pipeline,
        "exposed_transfer": transfer,
        "exposed_comm": unsplit,
    }
