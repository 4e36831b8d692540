"""Where steps begin and end on a device.

The profiler marks steps on the host; the device runs behind. A device event belongs to the
step that launched it, and a step's interval on the device runs from the first of its compute
kernels to that of the next step (report contract, section 3).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.errors import InputError
from traceparse.ingest import STEP_MARK, Kept
from traceparse.intervals import Int64s
from traceparse.rank.rows import rows_where

__all__ = [
    "MOST_DEVICE_STEPS",
    "Bounds",
    "Marker",
    "Segments",
    "StepBounds",
    "first_steps",
    "markers",
    "past_belief",
    "step_numbers",
]

MOST_DEVICE_STEPS = 1 << 16  # nobody profiles more; each is a row of the report
_LONGEST_NAME = 256  # of a step: it stands in notes and in every row of the report
_NEVER = np.iinfo(np.int64).max
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


def markers(annotations: Kept, path: str) -> list[Marker]:
    """Return the steps that the profiler marked, in order of their start.

    Raises
    ------
    InputError
        There are more than :data:`MOST_DEVICE_STEPS` of them.
    """
    found: list[Marker] = []
    num = 0
    for part in annotations.parts("name", "start_ns", "end_ns"):
        rows = np.flatnonzero(
            rows_where(part, "name", lambda names: pc.starts_with(names, STEP_MARK))
        )
        num += rows.size
        if num <= MOST_DEVICE_STEPS:
            found += [_marker(**row) for row in part.take(rows).to_pylist()]
    if num > MOST_DEVICE_STEPS:
        raise past_belief(path, num, "steps")
    return sorted(found, key=lambda marker: (marker.start_ns, marker.end_ns))


def _marker(name: str, start_ns: int, end_ns: int) -> Marker:
    found = _NUMBER.search(name)
    return Marker(int(found[1]) if found else None, name[:_LONGEST_NAME], start_ns, end_ns)


class Segments:
    """Time, cut at all starts and ends of steps: every instant of a segment is in the same.

    Host steps overlap where several threads or processes mark them; what is launched then
    belongs to each that contains it.
    """

    def __init__(self, steps: Sequence[Marker]) -> None:
        bounds = np.array([(step.start_ns, step.end_ns) for step in steps], np.int64)
        self._edges = np.unique(bounds)
        self.num = max(self._edges.size - 1, 0)
        places = np.searchsorted(self._edges, bounds.reshape(-1, 2)).tolist()
        self.of_steps = [slice(first, last) for first, last in places]

    def find(self, launched_ns: Int64s) -> tuple[npt.NDArray[np.int64], Int64s]:
        """Return the rows that were launched in any segment, and in which."""
        segments = np.searchsorted(self._edges, launched_ns, "right") - 1
        rows = np.flatnonzero((segments >= 0) & (segments < self.num))
        return rows, segments[rows]


def first_steps(steps: Sequence[Marker], launched_ns: Int64s) -> Int64s:
    """In which step was each event launched? Its place, -1 for none; the first of several."""
    segments = Segments(steps)
    step_of = np.full(segments.num, -1)
    for place, own in reversed(list(enumerate(segments.of_steps))):
        step_of[own] = place
    found = np.full(launched_ns.size, -1)
    rows, at = segments.find(launched_ns)
    found[rows] = step_of[at]
    return found


def step_numbers(steps: Sequence[Marker], launched_ns: Int64s) -> pa.Array:
    """Return the number of the step that launched each event; null for none."""
    numbered = [step for step in steps if step.step is not None]
    place = first_steps(numbered, launched_ns)
    # the last one is for none
    numbers = pa.array([*(step.step for step in numbered), None], pa.int64())
    return numbers.take(pa.array(np.where(place < 0, len(numbered), place)))


class StepBounds:
    """The interval of every step on every device, from the device events that it launched.

    Events are added in any order; of each device and segment only the first and last instants
    are kept.
    """

    def __init__(self, steps: Sequence[Marker], segments: Segments, num_devices: int) -> None:
        self._steps = steps
        self._segments = segments
        shape = (num_devices, self._segments.num)
        self._first_compute = np.full(shape, _NEVER)
        self._first = np.full(shape, _NEVER)
        self._last = np.full(shape, -1)

    def add(
        self,
        launched_ns: Int64s,
        *,
        devices: npt.NDArray[np.int16],
        starts: Int64s,
        ends: Int64s,
        is_compute: npt.NDArray[np.bool_],
    ) -> None:
        """Add device events, each with the place of its device."""
        rows, segments = self._segments.find(launched_ns)
        at = (devices[rows].astype(np.int64), segments)
        np.minimum.at(self._first, at, starts[rows])
        np.maximum.at(self._last, at, ends[rows])
        compute = is_compute[rows]
        at = (at[0][compute], at[1][compute])
        np.minimum.at(self._first_compute, at, starts[rows][compute])

    def of(self, device: int) -> list[Bounds | None]:
        """Return the intervals on one device, step by step."""
        bounds: list[Bounds | None] = []
        following: int | None = None  # where the next step with any events begins
        for step, own in reversed(list(zip(self._steps, self._segments.of_steps, strict=True))):
            begin = self._begin(device, own)
            if begin is None:
                bounds.append(None)
                continue
            if following is None:
                last = int(self._last[device, own].max())
                bounds.append(Bounds(begin, max(last, step.end_ns), open_ended=True))
            else:
                # steps that run into each other may begin out of order: never a negative span
                bounds.append(Bounds(begin, max(begin, following), open_ended=False))
            following = begin
        return bounds[::-1]

    def _begin(self, device: int, own: slice) -> int | None:
        for firsts in (self._first_compute, self._first):
            begin = int(firsts[device, own].min(initial=_NEVER))
            if begin != _NEVER:
                return begin
        return None
