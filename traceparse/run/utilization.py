"""How much of the peak was used? HFU, MFU and what they consist of, exactly.

HFU = Σ_dtype executed FLOP / peak ÷ span; MFU likewise with the FLOP of the model (PaLM,
Chowdhery et al., 2022, section 4.1 and appendix B). All is summed in whole numbers, and becomes
a float in its last division.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from traceparse.rank import DtypeWork
from traceparse.run.model import Model
from traceparse.run.peaks import Peaks
from traceparse.run.tally import NS_PER_S, SPLIT_TERMS, Tally, ideal_ns
from traceparse.run.waterfall import waterfall

__all__ = ["RatesOf", "Use", "reference_dtype"]

RatesOf: TypeAlias = Callable[[Peaks], Mapping[str, float]]


@dataclass(frozen=True)
class Use:
    """The use that some device-steps made of their peak; what is unknown is ``None``.

    ``reference`` is the data type whose peak model FLOP are measured against, where they were
    not estimated data type by data type.
    """

    tally: Tally
    model: Model
    reference: str | None

    @cached_property
    def executed_flop(self) -> int | None:
        """What ran, recomputation included."""
        return self._sum_flop(lambda work: work.flop)

    @cached_property
    def recompute_flop(self) -> int | None:
        """The part of it that repeats earlier work."""
        return self._sum_flop(lambda work: work.recompute_flop)

    @cached_property
    def model_flop(self) -> int | None:
        """What the model needs, rounded to one FLOP."""
        if self.model.flop is not None:
            return round(self.model.flop * sum(self.tally.num_steps.values()))
        return self._sum_flop(lambda work: work.flop - work.recompute_flop)

    @cached_property
    def executed_ns(self) -> Fraction | None:
        """How long devices at their peaks would take for what was executed."""
        if self.tally.works is None and self.model.hardware_flop is not None:
            return self._at_reference(self.model.hardware_flop, _used)
        return ideal_ns(self.tally.works, lambda work: work.flop)

    @cached_property
    def model_ns(self) -> Fraction | None:
        """How long devices at their peaks would take for what the model needs."""
        return self.model_ns_at(_used)

    @cached_property
    def hfu(self) -> Fraction | None:
        """The executed share of the peak."""
        return self._share(self.executed_ns)

    @cached_property
    def mfu(self) -> Fraction | None:
        """The share of the peak that the model needed."""
        return self._share(self.model_ns)

    @cached_property
    def hfu_bounds(self) -> tuple[Fraction, Fraction] | None:
        """Between which HFU lies: shapes may only bound a count, fp32 may have run as tf32."""
        low = self._share(self.least_ns_at(_used))
        high = self._share(ideal_ns(self.tally.works, lambda work: work.highest_flop))
        return None if low is None or high is None else (low, high)

    def model_ns_at(self, rates_of: RatesOf) -> Fraction | None:
        """How long would devices at these rates take for what the model needs?"""
        if self.model.flop is not None:
            return self._at_reference(self.model.flop, rates_of)
        works = self.tally.works
        return ideal_ns(works, lambda work: work.flop - work.recompute_flop, rates_of)

    def least_ns_at(self, rates_of: RatesOf) -> Fraction | None:
        """How long would they take at least for what ran, as far as that is known?"""
        works = self.tally.works
        least = ideal_ns(works, lambda work: work.lowest_flop, rates_of)
        if works is None or least is None:
            return None
        saved = (_saved_ns(work, rates_of(peaks)) for (_, peaks), work in works.items())
        return least - sum(saved, Fraction(0))

    @property
    def communication_ns(self) -> dict[str, int] | None:
        """What exposed communication was, if that is known."""
        split = self.tally.split
        return None if split is None else dict(zip(SPLIT_TERMS, split, strict=True))

    def waterfall(self) -> list[dict[str, Any]] | None:
        """Return where all of the peak went."""
        return waterfall(self.tally, self.hfu, self.mfu)

    def figures(self) -> dict[str, Any]:
        """Return the fields that the contract gives a step: counts, rates and ratios."""
        span_ns, executed = self.tally.span_ns, self.executed_flop
        rate = executed * NS_PER_S / span_ns if executed is not None and span_ns else None
        return {
            "executed_flop": executed,
            "model_flop": self.model_flop,
            "recompute_flop": self.recompute_flop,
            "achieved_flop_per_s": rate,
            "hfu": _float(self.hfu),
            "mfu": _float(self.mfu),
        }

    def utilization(self) -> dict[str, Any]:
        """Return field ``utilization`` of the contract."""
        return {
            **self.figures(),
            "mfu_source": None if self.model_flop is None else self.model.source,
            "waterfall": self.waterfall(),
            "by_dtype": self._by_dtype(),
            "efficiency": self._efficiency(),
            "bounds": self._bounds(),
        }

    def _sum_flop(self, flop_of: Callable[[DtypeWork], int]) -> int | None:
        works = self.tally.works
        return None if works is None else sum(map(flop_of, works.values()))

    def _at_reference(self, flop: Fraction, rates_of: RatesOf) -> Fraction | None:
        """How long do these FLOP of each device-step take in the reference type?"""
        total = Fraction(0)
        for peaks, num in self.tally.num_steps.items():
            peak = rates_of(peaks).get(self.reference or "")
            if peak is None:
                return None
            total += num * flop * NS_PER_S / Fraction(peak)
        return total

    def _share(self, ns: Fraction | None) -> Fraction | None:
        return None if ns is None or not self.tally.span_ns else ns / self.tally.span_ns

    def _by_dtype(self) -> list[dict[str, Any]] | None:
        works = self.tally.works
        if works is None:
            return None
        rows = []
        for dtype in sorted({dtype for dtype, _ in works}):
            own = {kind: work for kind, work in works.items() if kind[0] == dtype}
            peaks = {peaks.flop_per_s.get(dtype) for _, peaks in own}
            row = {
                "dtype": dtype,
                "executed_flop": sum(work.flop for work in own.values()),
                "peak_flop_per_s": peaks.pop() if len(peaks) == 1 else None,
                "utilization_ratio": _float(self._share(ideal_ns(own, lambda w: w.flop))),
            }
            rows.append(row)
        return sorted(rows, key=lambda row: -row["executed_flop"])

    def _efficiency(self) -> dict[str, float] | None:
        """Return three factors whose product is MFU; work is weighed by FLOP / peak."""
        executed, model, compute_ns = self.executed_ns, self.model_ns, self.tally.compute_ns
        if not executed or model is None or not compute_ns:
            return None
        return {
            "model_over_executed": float(model / executed),
            "kernel_efficiency": float(executed / compute_ns),
            "parallel_efficiency": compute_ns / self.tally.span_ns,
        }

    def _bounds(self) -> dict[str, list[float] | None] | None:
        lowest = self._sum_flop(lambda work: work.lowest_flop)
        highest = self._sum_flop(lambda work: work.highest_flop)
        if lowest is None or highest is None:
            return None
        hfu = self.hfu_bounds
        return {
            "executed_flop": [lowest, highest],
            "hfu": None if hfu is None else [float(bound) for bound in hfu],
        }


def _saved_ns(work: DtypeWork, rates: Mapping[str, float]) -> Fraction:
    """How much sooner would this be done, had all that may have run as tf32 done so?"""
    as_is, as_tf32 = rates.get(work.dtype), rates.get("tf32")
    flop = min(work.maybe_tf32_flop, work.lowest_flop)
    if not flop or as_is is None or as_tf32 is None or as_tf32 <= as_is:
        return Fraction(0)
    return flop * NS_PER_S * (1 / Fraction(as_is) - 1 / Fraction(as_tf32))


def reference_dtype(tally: Tally) -> str | None:
    """In which data type did most work run? Of two with as much, the one that takes longer."""
    weights: dict[str, tuple[int, float]] = {}
    for (dtype, peaks), work in (tally.works or {}).items():
        flop, seconds = weights.get(dtype, (0, 0.0))
        peak = peaks.flop_per_s.get(dtype, math.inf)
        weights[dtype] = flop + work.flop, seconds + work.flop / peak
    used = {dtype: weight for dtype, weight in weights.items() if weight[0]}
    return max(used, key=lambda dtype: (*used[dtype], dtype), default=None)


def _used(peaks: Peaks) -> Mapping[str, float]:
    return peaks.flop_per_s


def _float(ratio: Fraction | None) -> float | None:
    return None if ratio is None else float(ratio)
