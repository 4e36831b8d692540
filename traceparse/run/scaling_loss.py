"""What communication and imbalance cost a run: POP's factors, and shares of the mean step.

POP is the methodology of the EU's Performance Optimisation and Productivity centre: parallel
efficiency = load balance x serialization x transfer. Useful is compute; on an ideal network a
step would last less by its exposed transfer (report contract, section 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from traceparse.run.tally import Tally

__all__ = ["scaling_loss"]


def scaling_loss(devices: Sequence[Tally]) -> dict[str, Any] | None:
    """Return field ``scaling_loss``, over the steps of the basis that each device has.

    ``None`` where nothing communicated, or waiting and transfer could not be told apart.
    """
    used = [tally for tally in devices if tally.num_steps and tally.span_ns]
    if not used or any(tally.split is None for tally in used):
        return None
    num = sum(sum(tally.num_steps.values()) for tally in used)
    step = Fraction(sum(tally.span_ns for tally in used), num)
    transfer, wait, pipeline, unsplit = (
        Fraction(sum(tally.split[term] for tally in used if tally.split), num)
        for term in range(4)
    )
    contention = Fraction(sum(tally.twice_contention_ns for tally in used), 2 * num)
    useful = [Fraction(tally.compute_ns, sum(tally.num_steps.values())) for tally in used]
    mean = Fraction(sum(tally.compute_ns for tally in used), num)
    most, ideal = max(useful), step - transfer
    return {
        "step_ns": round(step),
        "exposed_transfer_ratio": float(transfer / step),
        "exposed_wait_ratio": float(wait / step),
        "pipeline_wait_ratio": float(pipeline / step),
        "exposed_unsplit_ratio": float(unsplit / step),
        "contention_ratio": float(contention / step),
        "comm_ratio": float((transfer + wait + unsplit + contention) / step),
        "load_balance": float(mean / most) if most else None,
        "serialization": float(most / ideal) if ideal else None,
        "transfer": float(ideal / step),
        "parallel_efficiency": float(mean / step),
    }
