"""Where steps begin and end on a device.

The profiler marks steps on the host; the device runs behind. A device event belongs to the
step that launched it, and a step's interval on the device runs from the first of its compute
kernels to that of the next step (report contract, section 3).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from traceparse.errors import InputError
from traceparse.ingest import STEP_MARK
from traceparse.intervals import Int64s
from traceparse.rank.rows import rows_where
from traceparse.tables import ArrowTable

__all__ = [
    "MOST_DEVICE_STEPS",
    "Bounds",
    "Marker",
    "bounds_of",
    "markers",
    "members_of",
    "past_belief",
]

MOST_DEVICE_STEPS = 1 << 16  # nobody profiles more; each is a row of the report
_LONGEST_NAME = 256  # of a step: it stands in notes and in every row of the report
_NUMBER = re.compile(r"#(\d{1,18})$")


class Marker(NamedTuple):
    """A step as the host has it."""

    step: int | None
    name: str
    start_ns: int
    end_ns: int


class Bounds(NamedTuple):
    """A step's interval on a device; ``None`` if the step launched nothing there."""

    start_ns: int
    end_ns: int
    open_ended: bool


def past_belief(path: str, count: int, what: str) -> InputError:
    """Refuse a trace that would fill the report, and memory, with what cannot be."""
    return InputError(
        f"{path}: {count:,} {what} in one file, which is past belief; give a trace that "
        f"torch.profiler exported"
    )


def markers(annotations: ArrowTable, path: str) -> list[Marker]:
    """Return the steps that the profiler marked, in order of their start.

    Raises
    ------
    InputError
        There are more than :data:`MOST_DEVICE_STEPS` of them.
    """
    rows = np.flatnonzero(
        rows_where(annotations, "name", lambda names: pc.starts_with(names, STEP_MARK))
    )
    if rows.size > MOST_DEVICE_STEPS:
        raise past_belief(path, rows.size, "steps")
    found = annotations.select(["name", "start_ns", "end_ns"]).take(rows).to_pylist()
    steps = [
        Marker(
            _number(row["name"]), row["name"][:_LONGEST_NAME], row["start_ns"], row["end_ns"]
        )
        for row in found
    ]
    return sorted(steps, key=lambda marker: (marker.start_ns, marker.end_ns))


def _number(name: str) -> int | None:
    found = _NUMBER.search(name)
    return int(found[1]) if found else None


def members_of(steps: list[Marker], launched_ns: Int64s) -> list[npt.NDArray[np.int64]]:
    """Return for every step the device events that it launched.

    Where host steps overlap (several threads or processes) an event belongs to each that
    contains its launch.
    """
    order = np.argsort(launched_ns, kind="stable")
    times = launched_ns[order]
    return [
        order[np.searchsorted(times, step.start_ns) : np.searchsorted(times, step.end_ns)]
        for step in steps
    ]


def bounds_of(
    steps: list[Marker],
    members: list[npt.NDArray[np.int64]],
    *,
    starts: Int64s,
    ends: Int64s,
    is_compute: npt.NDArray[np.bool_],
) -> list[Bounds | None]:
    """Return the interval of every step on one device, from the device events it launched."""
    begins = [_begin(own, starts, is_compute) for own in members]
    bounds: list[Bounds | None] = []
    following: int | None = None  # where the next step with any events begins
    for step, own, begin in reversed(list(zip(steps, members, begins, strict=True))):
        if begin is None:
            bounds.append(None)
            continue
        if following is None:
            bounds.append(
                Bounds(begin, max(int(ends[own].max()), step.end_ns), open_ended=True)
            )
        else:
            # steps that run into each other may begin out of order: never a negative span
            bounds.append(Bounds(begin, max(begin, following), open_ended=False))
        following = begin
    return bounds[::-1]


def _begin(
    own: npt.NDArray[np.int64], starts: Int64s, is_compute: npt.NDArray[np.bool_]
) -> int | None:
    if not own.size:
        return None
    compute = own[is_compute[own]]
    return int(starts[compute if compute.size else own].min())
