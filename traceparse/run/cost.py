"""What does a step cost, and how much of that is lost to what?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from traceparse.run.tally import Tally

__all__ = ["cost_of"]

_NS_PER_HOUR = 3_600 * 10**9


def cost_of(
    tally: Tally,
    waterfall: Sequence[Mapping[str, Any]] | None,
    *,
    usd_per_gpu_hour: float,
    devices: Fraction,
    tokens_per_step: Fraction | None,
) -> dict[str, Any] | None:
    """Price the mean step of the whole job: field ``cost`` (an addition to the contract).

    ``devices`` is how many the job runs on, those without a trace included. What is lost are
    the terms of the waterfall; where it is not known, those that times alone tell.
    """
    num_steps = sum(tally.num_steps.values())
    if not num_steps or not tally.span_ns:
        return None
    hours = devices * tally.span_ns / (num_steps * _NS_PER_HOUR)
    usd = hours * Fraction(usd_per_gpu_hour)
    if waterfall is not None:
        lost = {term["name"]: term["ratio"] for term in waterfall if term["name"] != "mfu"}
    else:
        parts = ("idle", "exposed_copy", "exposed_comm")
        lost = {part: getattr(tally, f"{part}_ns") / tally.span_ns for part in parts}
    return {
        "usd_per_gpu_hour": usd_per_gpu_hour,
        "gpu_hours_per_step": float(hours),
        "usd_per_step": float(usd),
        "usd_per_million_tokens": (
            None if tokens_per_step is None else float(usd * 10**6 / tokens_per_step)
        ),
        "lost_usd_per_step": {name: ratio * float(usd) for name, ratio in lost.items()},
    }
