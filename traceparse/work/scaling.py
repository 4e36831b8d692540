"""Runs of one job on more and more GPUs: how much of them comes out as speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from traceparse.errors import UsageError
from traceparse.work.calculator import positive

__all__ = ["MODES", "Mode", "Scaled", "scale", "scaled_batch"]

Mode: TypeAlias = Literal["strong", "weak"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """How a run compares with the one on the fewest GPUs (report contract, section 5)."""

    gpus: int
    step_s: float
    speedup: float
    efficiency: float


def scale(pairs: Sequence[tuple[int, float]], mode: Mode) -> tuple[Scaled, ...]:
    """Compare runs, as (GPUs, seconds of a step), with the one on the fewest GPUs.

    Report contract, section 5, "Between runs": efficiency is ``t0 n0 / (t n)`` if strong, at
    the same global work, and ``t0 / t`` if weak, at the same work a GPU.

    Raises
    ------
    UsageError
        There are not two runs at least, two are on as many GPUs, or a number is not above zero.
    """
    ordered = sorted(pairs)
    for gpus, step_s in ordered:
        positive(gpus=gpus, step_s=step_s)
    if len({gpus for gpus, _ in ordered}) < max(2, len(ordered)):
        raise UsageError("scaling compares runs on different numbers of GPUs; give two or more")
    base_gpus, base_s = ordered[0]
    rows = []
    for gpus, step_s in ordered:
        more, faster = gpus / base_gpus, base_s / step_s
        strong, weak = (faster, faster / more), (faster * more, faster)
        speedup, efficiency = strong if mode == "strong" else weak
        rows.append(Scaled(gpus=gpus, step_s=step_s, speedup=speedup, efficiency=efficiency))
    return tuple(rows)


def scaled_batch(batch: int, gpus: int, base_gpus: int, mode: Mode) -> int:
    """Return the global batch of a run: the same, or as many sequences a GPU as in the base.

    Raises
    ------
    UsageError
        That would be no whole number.
    """
    if mode == "strong":
        return batch
    scaled = Fraction(batch * gpus, base_gpus)
    if scaled.denominator != 1:
        raise UsageError(
            f"weak scaling: a batch of {batch:,} on {base_gpus:,} GPUs would be "
            f"{float(scaled):,.2f} on {gpus:,}; give a batch, of the fewest GPUs, that is a "
            "whole number on all"
        )
    return scaled.numerator
