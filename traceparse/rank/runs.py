"""Runs of operators whose work counts, and the device events that they own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.ordered import Rows
from traceparse.rank.attribute import Attributed
from traceparse.rank.classify import COPY, RUNS_FP32, RUNS_TF32
from traceparse.rank.nesting import NOTHING

__all__ = ["HALF", "Runs", "dtype_of", "runs_on_devices", "runs_on_host"]

HALF = 32  # bits
_LOWER = (1 << HALF) - 1

Floats = npt.NDArray[np.float64]


class Runs(NamedTuple):
    """Columns of runs. What a run does belongs to where and when it was launched first.

    ``hints`` are of data types, all that its kernels tell. ``halves`` are the upper and the
    lower half of how long its kernels take together: these add up without overflow, and
    exactly. ``events`` are the device events of all runs, ``run_of`` the run of each.
    """

    calls: npt.NDArray[np.int32]
    rows: Int64s  # of the operators
    devices: npt.NDArray[np.int16]
    launched_ns: Int64s
    hints: npt.NDArray[np.uint16]
    is_recompute: npt.NDArray[np.bool_]
    is_in_frame: npt.NDArray[np.bool_]
    is_outside_engine: npt.NDArray[np.bool_]
    halves: tuple[Floats, Floats]
    events: Rows
    run_of: Int64s


def runs_on_host(part: Attributed) -> Runs:
    """Return the runs that are done, of a trace without devices: each is its own work."""
    places = np.flatnonzero(part.counts & part.is_done)
    own = part.rows[places]
    return Runs(
        calls=own["call"],
        rows=own["row"],
        devices=np.zeros(own.size, np.int16),
        launched_ns=own["start"],
        hints=np.zeros(own.size, np.uint16),
        is_recompute=part.is_recompute[places],
        is_in_frame=part.is_in_frame[places],
        is_outside_engine=part.is_outside_engine[places],
        halves=_halves(own["end"] - own["start"]),
        events=part.rows[:0],
        run_of=np.empty(0, np.int64),
    )


def runs_on_devices(part: Attributed) -> Runs:
    """Return the runs that are done, with their device events."""
    owners = np.where(part.rows["is_event"] & part.is_done, part.owners, NOTHING)
    owned = np.flatnonzero(np.append(part.counts, False)[owners])
    events = part.rows[owned]
    places, first, run_of = np.unique(owners[owned], return_index=True, return_inverse=True)
    hints = np.zeros(places.size, np.uint16)
    np.bitwise_or.at(hints, run_of, events["flags"])
    lasts = np.where(events["kind"] != COPY, events["end"] - events["first"], 0)
    upper, lower = (
        np.bincount(run_of, half, minlength=places.size).astype(np.float64)
        for half in _halves(lasts)
    )
    return Runs(
        calls=part.rows["call"][places],
        rows=part.rows["row"][places],
        devices=events["device"][first],
        launched_ns=events["start"][first],
        hints=hints,
        is_recompute=part.is_recompute[places],
        is_in_frame=part.is_in_frame[places],
        is_outside_engine=part.is_outside_engine[places],
        halves=(upper, lower),
        events=events,
        run_of=run_of,
    )


def _halves(lasts: Int64s) -> tuple[Floats, Floats]:
    return (lasts >> HALF).astype(np.float64), (lasts & _LOWER).astype(np.float64)


def dtype_of(dtype: str | None, hint: int, *, on_host: bool) -> tuple[str, bool]:
    """Return the data type that ran, and whether that is uncertain.

    Of fp32 only kernels tell whether it ran as tf32; a CPU has none.
    """
    if dtype != "fp32" or on_host:
        return dtype or "", False
    if hint & RUNS_TF32:
        return "tf32", False
    return dtype, not hint & RUNS_FP32
