"""What is worth knowing beside a comparison: chance that is not told, work that differs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from traceparse.errors import Note
from traceparse.run.compare.sides import LEAST_UNITS, Side
from traceparse.run.layouts import group_changes, new_shapes
from traceparse.run.sized import SizedRun
from traceparse.run.work_kept import is_same_work, work_ratio
from traceparse.units import format_number_of, format_ratio

__all__ = ["about_rows", "about_sides", "about_units"]


def about_units(base: Side, new: Side) -> Iterator[Note]:
    """Say what the test of significance does not know."""
    few = [side for side in (base, new) if not side.has_enough]
    for side in few:
        yield Note(
            "significance_unknown",
            f"{_name(side)}: has {format_number_of(len(side.units), side.unit)} to compare, "
            f"and it takes {LEAST_UNITS[side.unit]} to tell change from chance: capture more "
            f"steps",
        )
    if not few and "step" in (base.unit, new.unit):
        lone = [_name(side) for side in (base, new) if side.unit == "step"]
        yield Note(
            "runs_not_repeated",
            f"{' and '.join(lone)}: what two runs of the same job differ by is not in the "
            f"interval, only what steps of a run do; give three runs of each side "
            f"(--base, --new) for that",
        )


def about_sides(base: Side, new: Side) -> Iterator[Note]:
    """Say what may make sides less comparable than they look."""
    for side in (base, new):
        yield from _about_runs(side)
    before, after = base.runs[0], new.runs[0]
    if before.basis == "windows":
        yield Note(
            "steps_unmarked",
            "no trace has step markers: whole windows are compared, which is right only if "
            "they hold equally many steps",
        )
    if "exposed_unsplit" in base.terms and (
        base.mean_ns("exposed_unsplit") or new.mean_ns("exposed_unsplit")
    ):
        yield Note(
            "communication_partly_unsplit",
            "waiting and transfer cannot be told apart in all of the runs: exposed_unsplit may "
            "grow or shrink at the expense of the terms beside it",
        )
    if "contention" not in base.terms:
        yield Note(
            "contention_unknown",
            "contention is not known of all the runs: what kernels take longer beside "
            "communication is in compute",
        )
    yield from _about_sizes(before, after)
    yield from _about_work(before, after)


def _about_runs(side: Side) -> Iterator[Note]:
    """Say what the runs of one side disagree on."""
    for what, values in (
        ("numbers of devices", [run.num_devices for run in side.runs]),
        ("accelerators", [run.accelerator for run in side.runs]),
    ):
        if len(set(values)) > 1:
            told = ", ".join(map(str, dict.fromkeys(values)))
            yield Note(
                "runs_differ",
                f"{_name(side)}: its runs have other {what} ({told}), and are taken for "
                f"one job",
            )


def _about_sizes(before: SizedRun, after: SizedRun) -> Iterator[Note]:
    if after.num_devices != before.num_devices:
        yield Note(
            "num_devices_differs",
            f"{after.path}: ran on {format_number_of(after.num_devices, 'device')}, "
            f"{before.path} on {before.num_devices:,}: steps are compared as they are; "
            f"`traceparse scaling` says what growing costs",
        )
    if after.accelerator != before.accelerator:
        yield Note(
            "accelerator_differs",
            f"{after.path}: ran on {after.accelerator or 'an unknown accelerator'}, "
            f"{before.path} on {before.accelerator or 'an unknown one'}",
        )


def _about_work(before: SizedRun, after: SizedRun) -> Iterator[Note]:
    ratio = work_ratio(after, before, "weak")  # the same work of each device
    if ratio is None:
        yield Note(
            "work_not_compared",
            f"{after.path}: whether it did the work of {before.path} is unknown, as their FLOP "
            f"are not, or not all, known: record shapes in both",
        )
    elif not is_same_work(ratio):
        yield Note(
            "work_differs",
            f"{after.path}: a device-step executes {format_ratio(float(ratio))} of the FLOP of "
            f"{before.path}: another batch, model, layout or recomputation",
        )
    elif after.dtype != before.dtype:
        yield Note(
            "dtype_differs",
            f"{after.path}: most of its FLOP are in {after.dtype}, those of {before.path} in "
            f"{before.dtype}",
        )
    yield from _about_layout(before, after)


def _about_layout(before: SizedRun, after: SizedRun) -> Iterator[Note]:
    groups, was = after.layout.groups, before.layout.groups
    if groups is not None and was is not None and before.num_devices > 1:
        growth = Fraction(after.num_devices, before.num_devices)
        if changes := "; ".join(group_changes(groups, was, growth)):
            yield Note(
                "layout_differs",
                f"{after.path}: is laid out otherwise than {before.path} ({changes})",
            )
    if found := new_shapes(after.layout, before.layout):
        share, largest = found
        yield Note(
            "shapes_differ",
            f"{after.path}: {format_ratio(share)} of its FLOP are in shapes that {before.path} "
            f"has not ({largest} most of all)",
        )


def about_rows(base: Side, new: Side, *, has_operators: bool) -> Iterator[Note]:
    """Say what rows of operators and collectives do not tell."""
    if not has_operators:
        yield Note(
            "operators_unknown",
            "not all of the reports have kernels by operator and shapes: which of them changed "
            "is unknown; analyze the traces again, with shapes recorded",
        )
    recorded = [(side.num_recorded[1], side.num_device_steps) for side in (base, new)]
    if any(every > compared for every, compared in recorded):
        yield Note(
            "rows_of_whole_traces",
            "operators and collectives are those of whole traces, also of steps that are not "
            "compared, divided by their number",
        )


def _name(side: Side) -> str:
    more = len(side.runs) - 1
    return side.runs[0].path + (f" and {more} more" if more else "")
