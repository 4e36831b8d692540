"""Why a number of utilization is missing, or not quite what it seems: its notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceparse.errors import Note
from traceparse.rank import KernelCounts
from traceparse.run.peaks import MATRIX_FP64, Peaks
from traceparse.run.utilization import Use
from traceparse.units import format_number_of, format_percent, format_ratio, rank_ranges

__all__ = ["about_attribution", "about_model", "about_use"]

_WITHOUT_FLOP = (
    "so FLOP, HFU and the waterfall are unknown: profile with record_shapes=True, which "
    "`traceparse capture` does"
)


def about_use(use: Use, silent: Sequence[int | None]) -> Iterator[Note]:
    """Say what is unknown or doubtful of a run; ``silent`` are ranks that tell no work."""
    if use.tally.works is None:
        ranks = sorted({rank for rank in silent if rank is not None})
        who = f"the traces of rank {rank_ranges(ranks)}" if ranks else "traces"
        message = f"{who} tell no operators with shapes, {_WITHOUT_FLOP}"
        if use.executed_ns is not None:
            message = (
                f"{who} tell no operators with shapes: HFU is that of the declared 8ND, and "
                f"the waterfall is unknown"
            )
        yield Note("flop_unknown", message)
        return
    if not use.executed_flop:
        yield Note(
            "nothing_counted",
            "no operator that ran has a formula, such as a matrix product: executed FLOP are 0",
        )
    yield from _about_peaks(use)
    yield from _about_bounds(use)
    yield from _about_tf32(use)
    if use.tally.counted_ns is None:
        yield Note(
            "waterfall_unknown",
            "how long kernels of counted operators took is not known of all steps, so the "
            "waterfall is unknown",
        )


def _about_peaks(use: Use) -> Iterator[Note]:
    """Name each data type that ran and has no peak of its own, where the device has any."""
    works = use.tally.works or {}
    if any(
        dtype == "fp64" and work.flop and _is_on_matrix_units(peaks)
        for (dtype, peaks), work in works.items()
    ):
        yield Note(
            "fp64_on_matrix_units",
            f"products in fp64 are measured against the peak of {MATRIX_FP64}, where they run",
        )
    total = sum(work.flop for work in works.values())
    for (dtype, peaks), work in works.items():
        if not work.flop or dtype in peaks.flop_per_s or not peaks.flop_per_s:
            continue
        yield Note(
            "peak_missing",
            f"{peaks.words} has no peak for {dtype}, in which "
            f"{format_percent(work.flop, total)} of the FLOP ran: HFU and MFU are unknown; "
            f"give --peak {dtype}=TFLOPS if there is one",
        )


def _is_on_matrix_units(peaks: Peaks) -> bool:
    return peaks.flop_per_s.get("fp64") == peaks.flop_per_s.get(MATRIX_FP64, 0)


def _about_bounds(use: Use) -> Iterator[Note]:
    works = (use.tally.works or {}).values()
    lowest = sum(work.lowest_flop for work in works)
    highest = sum(work.highest_flop for work in works)
    if lowest != highest:
        yield Note(
            "flop_bounded",
            f"the shapes only bound the executed FLOP, to {lowest:,} to {highest:,}: sequences "
            f"of several lengths, or an attention mask, are not in a trace",
        )


def _about_tf32(use: Use) -> Iterator[Note]:
    bounds, works = use.hfu_bounds, use.tally.works or {}
    maybe = sum(
        work.maybe_tf32_flop
        for (dtype, peaks), work in works.items()
        if peaks.flop_per_s.get("tf32", 0) > peaks.flop_per_s.get(dtype, 0)
    )
    if not maybe or bounds is None or use.hfu is None:
        return
    total = sum(work.flop for work in works.values())
    lowest, highest = (format_ratio(float(bound)) for bound in (bounds[0], use.hfu))
    yield Note(
        "tf32_unknown",
        f"{format_percent(maybe, total)} of the FLOP are fp32 that may have run as tf32, which "
        f"kernel names do not tell: HFU is {highest} against the peak of fp32, which is used, "
        f"and {lowest} against that of tf32",
    )


def about_model(
    use: Use, *, is_marked: bool, world_size: int | None, is_assumed: bool
) -> Iterator[Note]:
    """Say how model FLOP came about, and what their MFU rests on."""
    source = use.model.source
    if source == "estimated":
        if use.model_flop is not None:
            yield Note(
                "model_flop_estimated",
                "model FLOP are estimated: those executed less those recomputed; give "
                "--model-flop-per-step, or --params and --tokens-per-step, for MFU as "
                "published",
            )
        elif use.tally.works is None:
            yield Note(
                "model_flop_unknown",
                "no model FLOP, so no MFU: give --model-flop-per-step, or --params and "
                "--tokens-per-step",
            )
        return
    if world_size is None:
        yield Note(
            "world_size_assumed",
            f"{source} model FLOP are divided among the ranks that have a trace, as no trace "
            f"tells the world size",
        )
    if not is_marked:
        yield Note(
            "one_step_assumed",
            f"{source} model FLOP are of one step, and without step markers the whole window "
            f"counts as one",
        )
    if is_assumed:
        yield Note(
            "reference_dtype_assumed",
            f"no trace tells in which data type work ran: model FLOP are measured against the "
            f"one peak that was given, of {use.reference}",
        )
    elif use.mfu is None:
        yield from _about_no_mfu(use)


def _about_no_mfu(use: Use) -> Iterator[Note]:
    if use.reference is None:
        yield Note(
            "reference_dtype_unknown",
            f"no counted work tells which data type's peak {use.model.source} model FLOP are "
            f"to be measured against, so MFU is unknown: give --peak of the one that was used, "
            f"and of no other",
        )


def about_attribution(kernels: Sequence[KernelCounts]) -> Iterator[Note]:
    """Say how much of the kernels' time belongs to no operator, so that no FLOP is known."""
    num = sum(counts.unattributed_count for counts in kernels)
    unattributed_ns = sum(counts.unattributed_time_ns for counts in kernels)
    total_ns = sum(counts.time_ns for counts in kernels)
    if num:
        yield Note(
            "kernels_unattributed",
            f"{format_number_of(num, 'kernel')}, {format_percent(unattributed_ns, total_ns)} "
            f"of the kernels' time, ran for no operator that is recorded (graph replays, "
            f"launches before the window): executed FLOP, HFU and an estimated MFU are lower "
            f"bounds",
        )
