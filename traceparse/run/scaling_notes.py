"""What is worth knowing beside an account of scaling: work that differs, terms not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from traceparse.errors import Note
from traceparse.run.layouts import group_changes, new_shapes
from traceparse.run.sized import Known, SizedRun
from traceparse.run.work_kept import Mode, is_same_work, work_ratio
from traceparse.units import format_number_of, format_ratio

__all__ = ["about_mode", "about_runs", "about_terms"]


def about_mode(mode: Mode, *, is_assumed: bool) -> Iterator[Note]:
    """Say that nothing told the mode, if so."""
    if is_assumed:
        yield Note(
            "mode_assumed",
            f"{mode} scaling is assumed: the FLOP of the runs do not tell whether they did the "
            f"same work together, or the same a device; give --mode strong or --mode weak",
        )


def about_terms(runs: Sequence[SizedRun], known: Known) -> Iterator[Note]:
    """Say which terms hold what others would, were it known of all runs."""
    partly = [run.path for run in runs if run.terms_ns["exposed_unsplit"]]
    if known.split and partly:
        more = f" and {len(partly) - 1:,} more" if len(partly) > 1 else ""
        yield Note(
            "communication_partly_unsplit",
            f"{partly[0]}{more}: not all exposed communication can be told apart, so that "
            f"exposed_unsplit may grow or shrink at the expense of the terms beside it",
        )
    if not known.split:
        yield Note(
            "communication_unsplit",
            "waiting and transfer cannot be told apart in all of the runs: all exposed "
            "communication is in exposed_unsplit",
        )
    if not known.contention:
        yield Note(
            "contention_unknown",
            "contention is not known of all the runs: what kernels take longer beside "
            "communication is in compute",
        )


def about_runs(runs: Sequence[SizedRun], mode: Mode) -> Iterator[Note]:
    """Say what may make runs, the base point first, less comparable than they look."""
    base = runs[0]
    for run in runs:
        yield from _about_size(run)
    if base.basis == "windows":
        yield Note(
            "steps_unmarked",
            "no trace has step markers: whole windows are compared, which is right only if "
            "they hold equally many steps",
        )
    for run in runs[1:]:
        yield from _about_work(run, base, mode)
        yield from _about_layout(run, base, mode)
        if run.accelerator != base.accelerator:
            yield Note(
                "accelerator_differs",
                f"{run.path}: ran on {run.accelerator or 'an unknown accelerator'}, "
                f"{base.path} on {base.accelerator or 'an unknown one'}",
            )


def _about_size(run: SizedRun) -> Iterator[Note]:
    if not run.is_size_known:
        yield Note(
            "num_devices_counted",
            f"{run.path}: no world size is known, so it is taken to have run on the "
            f"{format_number_of(run.num_devices, 'device')} that it has traces of",
        )
    elif run.world_size not in (None, run.num_devices):
        yield Note(
            "num_devices_counted",
            f"{run.path}: its world size is {run.world_size:,}, but its traces have kernels on "
            f"several devices of a rank: it is taken to have run on "
            f"{format_number_of(run.num_devices, 'device')}",
        )


def _about_work(run: SizedRun, base: SizedRun, mode: Mode) -> Iterator[Note]:
    ratio = work_ratio(run, base, mode)
    if ratio is None:
        yield Note(
            "work_not_compared",
            f"{run.path}: whether it did the work of {base.path} is unknown, as their FLOP are "
            f"not, or not all, known: record shapes in both",
        )
    elif is_same_work(ratio):
        if run.dtype != base.dtype:
            yield Note(
                "dtype_differs",
                f"{run.path}: most of its FLOP are in {run.dtype}, those of {base.path} in "
                f"{base.dtype}",
            )
    else:
        yield Note(
            "work_differs",
            f"{run.path}: a device-step executes {format_ratio(float(ratio))} of the FLOP that "
            f"it would in {mode} scaling from {base.path}: another batch, model, layout or "
            f"recomputation, so efficiency compares different work",
        )


def _about_layout(run: SizedRun, base: SizedRun, mode: Mode) -> Iterator[Note]:
    """Say what was divided otherwise; one device has no groups, and tells nothing."""
    groups, before = run.layout.groups, base.layout.groups
    if groups is not None and before is not None and base.num_devices > 1:
        growth = Fraction(run.num_devices, base.num_devices)
        if changes := "; ".join(group_changes(groups, before, growth)):
            yield Note(
                "layout_differs",
                f"{run.path}: is laid out otherwise than {base.path} ({changes}), so the loss "
                f"is that of another layout too, not of size alone",
            )
    if mode == "weak" and (found := new_shapes(run.layout, base.layout)):
        share, largest = found
        yield Note(
            "shapes_differ",
            f"{run.path}: {format_ratio(share)} of its FLOP are in shapes that {base.path} has "
            f"not ({largest} most of all): another batch, model or layout",
        )
