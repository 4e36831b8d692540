"""All ranks on one clock: by the ends of collectives that they finish at once.

Hosts disagree by milliseconds. Ranks of a process group leave a collective together, so the
median difference of their ends is the difference of their clocks. Groups that share ranks
connect the others: from the lowest rank on, each is reached over the pair with most collectives
in common. Where clocks drift apart by more than their ends scatter, a line is fitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from traceparse.errors import Note
from traceparse.intervals import Int64s
from traceparse.run.instances import Instances
from traceparse.run.lags import median

__all__ = ["Clock", "align"]

_FEWEST_FOR_DRIFT = 8  # instances
_IS_BETTER = 2  # times smaller does a line leave the residual, if it is one
_NEAR = 4  # times what half of the points are off
_MOST_SLOPES = 64  # points that slopes are taken between


@dataclass(frozen=True, slots=True)
class _Line:
    """How far a clock is ahead: ``offset_ns`` at ``at_ns``, and more with ``drift`` a ns."""

    offset_ns: int
    drift: float
    at_ns: int

    def ahead_ns(self, at_ns: Int64s) -> Int64s:
        """Return by how much at some instants of the clock itself."""
        more: Int64s = np.rint(self.drift * (at_ns - self.at_ns)).astype(np.int64)
        return more + self.offset_ns

    def ahead_of_ns(self, reference_ns: int) -> int:
        """Return by how much at an instant of the reference's clock."""
        ahead = self.offset_ns
        for _ in range(2):  # what is left after it is the square of the drift
            ahead = int(self.ahead_ns(np.array([reference_ns + ahead]))[0])
        return ahead


@dataclass(frozen=True, slots=True)
class Clock:
    """By how much each device's clock is ahead of the reference; ``None``: nobody knows.

    ``residual_ns`` is the median absolute deviation of aligned ends of matched instances.
    """

    lines: tuple[_Line | None, ...]
    reference: int
    residual_ns: int | None

    def aligned(self, device: int, times_ns: Int64s) -> Int64s | None:
        """Return times of a device on the reference's clock."""
        line = self.lines[device]
        return None if line is None else times_ns - line.ahead_ns(times_ns)


def align(
    instances: Instances, ends_coincide: npt.NDArray[np.bool_], ranks: Sequence[int | None]
) -> tuple[Clock, list[Note]]:
    """Align the clocks of devices, given which instances all of their ranks leave at once.

    ``ranks`` are those of the devices; the lowest one's clock is the reference.
    """
    num = len(ranks)
    known = [place for place, rank in enumerate(ranks) if rank is not None]
    reference = min(known, key=lambda place: ranks[place] or 0, default=0)
    usable = instances.is_split & (ends_coincide | instances.is_peer)
    lines: dict[int, _Line] = {reference: _Line(0, 0.0, 0)}
    meetings = list(_meetings(instances, usable))
    # what is sent is received a while later, so peers are for those that nothing else reaches
    for are_peers in (False, True):
        _reach([one for one in meetings if one.are_peers == are_peers], lines)
    every = _left([one for one in meetings if not one.are_peers], lines)
    if not every.size:
        every = _left(meetings, lines)
    clock = Clock(
        lines=tuple(lines.get(place) for place in range(num)),
        reference=reference,
        residual_ns=int(median(every)) if every.size else None,
    )
    return clock, list(_about(clock, ranks))


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Instances that the same devices were in: ends, an instance a row, a device a column."""

    devices: tuple[int, ...]
    ends_ns: Int64s
    are_peers: bool


def _meetings(instances: Instances, usable: npt.NDArray[np.bool_]) -> Iterator[_Meeting]:
    """Gather instances by the devices that were in them."""
    parts = np.flatnonzero(usable[instances.part_instance])
    numbers = instances.part_instance[parts]
    edges = np.append(np.flatnonzero(np.diff(numbers, prepend=-1)), numbers.size).tolist()
    by_devices: dict[tuple[bool, bytes], list[int]] = {}
    for first, last in pairwise(edges):
        own = parts[first:last]
        key = (bool(instances.is_peer[numbers[first]]), instances.part_device[own].tobytes())
        by_devices.setdefault(key, []).append(int(own[0]))
    for (are_peers, packed), starts in by_devices.items():
        devices = np.frombuffer(packed, np.int32)
        rows = np.array(starts)[:, None] + np.arange(devices.size)
        yield _Meeting(tuple(devices.tolist()), instances.part_end_ns[rows], are_peers)


def _reach(meetings: Sequence[_Meeting], lines: dict[int, _Line]) -> None:
    """Align whom those that are aligned have met, the meetings with most instances first."""
    ordered = sorted(meetings, key=lambda one: -one.ends_ns.shape[0])
    places_of: dict[int, list[int]] = defaultdict(list)
    for place, meeting in enumerate(ordered):
        for device in meeting.devices:
            places_of[device].append(place)
    # those that somebody aligned was in: a job of many ranks has too many to look through
    due = [place for device in lines for place in places_of[device]]
    heapify(due)
    while due:
        meeting = ordered[heappop(due)]
        left = [device for device in meeting.devices if device not in lines]
        if left:
            _align_meeting(meeting, lines)
        for place in (place for device in left for place in places_of[device]):
            heappush(due, place)


def _align_meeting(meeting: _Meeting, lines: dict[int, _Line]) -> None:
    told = _aligned_ends(meeting, lines)
    for column, device in enumerate(meeting.devices):
        if device not in lines:
            own = meeting.ends_ns[:, column]
            lines[device] = _line(own, own - told)


def _aligned_ends(meeting: _Meeting, lines: Mapping[int, _Line]) -> Int64s:
    """Return when each instance ended, by the median of those whose clocks are known."""
    known = [
        own - lines[device].ahead_ns(own)
        for own, device in zip(meeting.ends_ns.T, meeting.devices, strict=True)
        if device in lines
    ]
    return median(np.stack(known))


def _line(times_ns: Int64s, ahead_ns: Int64s) -> _Line:
    """Fit a clock: a constant, or a line where that leaves much less."""
    at_ns = int(times_ns[0])
    offset = int(median(ahead_ns))
    left = int(median(np.abs(ahead_ns - offset)))
    constant = _Line(offset, 0.0, at_ns)
    if times_ns.size < _FEWEST_FOR_DRIFT or not left:
        return constant
    line = _through(times_ns, ahead_ns, at_ns, _slope(times_ns - at_ns, ahead_ns - offset))
    left_by_line = np.abs(ahead_ns - line.ahead_ns(times_ns))
    if int(median(left_by_line)) * _IS_BETTER >= left:
        return constant
    # the slope between pairs is robust, but as rough as their ends: so a finer one of the rest
    near = left_by_line <= _NEAR * max(int(median(left_by_line)), 1)
    x, y = (times_ns[near] - at_ns).astype(np.float64), (ahead_ns[near] - offset).astype(float)
    drift = float(np.dot(x - x.mean(), y - y.mean()) / np.dot(x - x.mean(), x - x.mean()))
    return _through(times_ns[near], ahead_ns[near], at_ns, drift)


def _through(times_ns: Int64s, ahead_ns: Int64s, at_ns: int, drift: float) -> _Line:
    """Return the line of that slope which half of the points are above."""
    flat = ahead_ns - np.rint(drift * (times_ns - at_ns)).astype(np.int64)
    return _Line(int(median(flat)), drift, at_ns)


def _slope(times: Int64s, values: Int64s) -> float:
    """Return the median slope between pairs of points (Theil, 1950; Sen, 1968)."""
    some = np.unique(np.linspace(0, times.size - 1, _MOST_SLOPES).astype(np.int64))
    x, y = times[some].astype(np.float64), values[some].astype(np.float64)
    first, second = np.triu_indices(some.size, 1)
    apart = x[second] - x[first]
    return float(np.median((y[second] - y[first])[apart > 0] / apart[apart > 0]))


def _left(meetings: Sequence[_Meeting], lines: Mapping[int, _Line]) -> Int64s:
    """Return how far aligned ends are from those of the others, of all meetings."""
    found = [np.empty(0, np.int64)]
    for meeting in meetings:
        own = [
            ends - lines[device].ahead_ns(ends)
            for ends, device in zip(meeting.ends_ns.T, meeting.devices, strict=True)
            if device in lines
        ]
        if len(own) > 1:
            aligned = np.stack(own)
            found.append(np.abs(aligned - median(aligned)).ravel())
    return np.concatenate(found)


def _about(clock: Clock, ranks: Sequence[int | None]) -> Iterator[Note]:
    lost = sum(line is None for line in clock.lines)
    if lost and lost < len(ranks) - 1:
        yield Note(
            "clocks_unaligned",
            f"{lost} of {len(ranks)} devices share no collective with the others, so their "
            f"clocks are not aligned",
        )
