"""What cannot be: work that was faster than its device, so that some premise is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from traceparse.run.findings.finding import finding
from traceparse.run.peaks import Peaks
from traceparse.run.roofline import Row
from traceparse.run.tally import NS_PER_S
from traceparse.run.utilization import Use
from traceparse.units import format_flop_per_s, format_number_of, format_ratio, rank_ranges

__all__ = ["impossible", "most_reached"]

_TOLERANCE = Fraction(101, 100)  # peaks are rounded, and times to the nanosecond
_MOST_NAMED = 5
_SHORT = 60

_WRONG_PREMISE = (
    "the device is another, or the peak of a partition or of another power limit applies "
    "(--accelerator, --peak), or FLOP are counted by another convention than they ran"
)
_WRONG_COUNT = (
    "a count that shapes only bound is too high, or fp32 ran as tf32: give --peak fp32=TFLOPS "
    "with the peak of tf32 if it did"
)


def impossible(
    use: Use, devices: Sequence[tuple[int | None, Use]], rows: Sequence[Row]
) -> Iterator[Mapping[str, Any]]:
    """Find what cannot be of a run, its devices (with their ranks) and its operators."""
    yield from _faster_than_peak(use, devices)
    yield from _operators(rows)
    yield from _model_beyond_maximum(use)
    yield from _model_beyond_executed(use)


def _faster_than_peak(
    use: Use, devices: Sequence[tuple[int | None, Use]]
) -> Iterator[dict[str, Any]]:
    """Find counted kernels that took less time than their FLOP need at the peak."""
    worst = _excess(use)
    where = "the run"
    if worst is None:
        beyond = [(rank, excess) for rank, own in devices if (excess := _excess(own))]
        if not beyond:
            return
        ranks = sorted({rank for rank, _ in beyond if rank is not None})
        where = f"rank {rank_ranges(ranks)}" if ranks else format_number_of(len(beyond), "file")
        worst = max((excess for _, excess in beyond), key=lambda excess: excess.ratio)
    yield finding(
        "faster_than_peak",
        "error" if worst.is_certain else "warning",
        f"matrix products of {where} are faster than the device can be",
        worst.words,
        _WRONG_PREMISE if worst.is_certain else _WRONG_COUNT,
    )


@dataclass(frozen=True, slots=True)
class _Excess:
    """Work that needs ``ideal_ns`` at the peak, and was done in ``room_ns``."""

    ideal_ns: Fraction
    room_ns: int
    is_certain: bool

    @property
    def ratio(self) -> float:
        return float(self.ideal_ns / self.room_ns) if self.room_ns else math.inf

    @property
    def words(self) -> str:
        if not self.room_ns:
            return "there are FLOP, but their kernels took no time"
        return f"their kernels reach {format_ratio(self.ratio)} of the peak while they run"


def _excess(use: Use) -> _Excess | None:
    """Did kernels do more than the peak allows, and is that beyond doubt?"""
    tally = use.tally
    room_ns = tally.span_ns if tally.counted_ns is None else tally.counted_ns
    least_ns = use.least_ns_at(_spec)
    if tally.works is None:
        least_ns = use.executed_ns  # as declared
    if least_ns is not None and least_ns > room_ns:
        return _Excess(least_ns, room_ns, is_certain=True)
    executed_ns = use.executed_ns
    is_spec = all(peaks.flop_per_s == peaks.spec_flop_per_s for peaks in tally.num_steps)
    if is_spec and executed_ns is not None and executed_ns > room_ns:
        return _Excess(executed_ns, room_ns, is_certain=False)
    return None


def _operators(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    beyond = [
        row
        for row in rows
        if row.time_ns and row.least_ns and row.least_ns > _TOLERANCE * row.time_ns
    ]
    beyond.sort(key=lambda row: -(row.least_ns or 0) / row.time_ns)
    for row in beyond[:_MOST_NAMED]:
        assert row.least_ns is not None
        peak = float(row.flop * NS_PER_S / row.least_ns)
        more = len(beyond) - _MOST_NAMED
        also = f"; {format_number_of(more, 'more row')} like it" if more > 0 else ""
        yield finding(
            "faster_than_peak",
            "error",
            f"{row.op[:_SHORT]} in {row.dtype} is faster than the device can be",
            f"{format_flop_per_s(row.flop * NS_PER_S / row.time_ns)} with shapes "
            f"{row.shapes[:_SHORT]}, where the peak is {format_flop_per_s(peak)}{also}",
            _WRONG_PREMISE,
        )


def most_reached(use: Use) -> float | None:
    """Return which share of the peak the fastest matrix products of the devices reach."""
    spec_ns, mamf_ns = use.model_ns_at(_spec), use.model_ns_at(_reached)
    return float(spec_ns / mamf_ns) if spec_ns is not None and mamf_ns else None


def _model_beyond_maximum(use: Use) -> Iterator[dict[str, Any]]:
    """Find an MFU that nobody reaches, or nothing can."""
    span_ns = use.tally.span_ns
    spec_ns, mamf_ns = use.model_ns_at(_spec), use.model_ns_at(_reached)
    if spec_ns is None or mamf_ns is None or mamf_ns <= span_ns or not span_ns:
        return
    advice = (
        "the model FLOP are too many (--model-flop-per-step and --tokens-per-step are of the "
        "whole job and of one step; some conventions count embeddings and all of causal "
        f"attention), or {_WRONG_PREMISE}"
    )
    mfu = format_ratio(float(spec_ns / span_ns))
    if use.model.flop is None and spec_ns > span_ns:
        return  # said already of what ran
    if spec_ns > span_ns:
        title, evidence = "MFU is above 100%", f"MFU would be {mfu}, {use.model.source}"
        yield finding("faster_than_peak", "error", title, evidence, advice)
    else:
        yield finding(
            "mfu_above_measured_maximum",
            "error",
            "MFU is above what matrix products alone were ever measured at",
            f"MFU would be {mfu}, {use.model.source}; the fastest products reach "
            f"{format_ratio(most_reached(use))} of the peak",
            advice,
        )


def _model_beyond_executed(use: Use) -> Iterator[dict[str, Any]]:
    hfu, mfu = use.hfu, use.mfu
    if use.model.flop is None or hfu is None or mfu is None or mfu <= hfu:
        return
    yield finding(
        "model_flop_exceed_executed",
        "warning",
        "the model needs more than was seen to run",
        f"MFU {format_ratio(float(mfu))} ({use.model.source}) is above HFU "
        f"{format_ratio(float(hfu))}",
        "kernels without an operator (graph replays, custom kernels) are not in HFU; or the "
        "model FLOP count embeddings, or all of causal attention where half ran",
    )


def _spec(peaks: Peaks) -> Mapping[str, float]:
    return peaks.spec_flop_per_s


def _reached(peaks: Peaks) -> Mapping[str, float]:
    return {**peaks.spec_flop_per_s, **peaks.mamf_flop_per_s}
