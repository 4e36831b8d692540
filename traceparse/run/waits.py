"""Who made whom wait: exposed wait, laid to the rank that it was for.

Whoever an instance waited for is its last rank, unless that one was late because it had been
held up in other groups since the group last met, for at least half of its lateness more than
the others had been. Then the wait is laid to what held it up longest there: to that instance's
last rank if that was waiting, to that instance's transfer if not; and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s, Intervals, covered_before, from_spans, intersection
from traceparse.rank import DeviceDigest, Times
from traceparse.run.across import Across
from traceparse.run.gathered import NOTHING
from traceparse.run.instances import Instances, by_instance

__all__ = [
    "Steps",
    "Waits",
    "exposed_transfer_of",
    "median_of_others",
    "waits_of",
]

Bools: TypeAlias = npt.NDArray[np.bool_]
Steps: TypeAlias = Sequence[Sequence[Times]]  # of each device, those that the run is judged by

_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Waits:
    """What was waited, by part and by instance of :class:`Instances`.

    ``exposed_ns`` is, of each part, its share of the device's exposed wait (of pipeline wait
    for peers) in the steps that count, ``whole_ns`` that in the whole file; an instant in which
    a device waits in two instances is the earlier one's, so that they add up. ``late_ns`` is by
    how much the last rank of an instance came after the median of the others, ``queued_ns``
    for how long its call had been launched when it started, or ``NOTHING``. ``cause`` is where
    its wait comes from: an instance (its last rank was late), or, counted from their number on,
    one whose transfer was long.
    """

    exposed_ns: Int64s
    whole_ns: Int64s
    last: npt.NDArray[np.int32]
    late_ns: Int64s
    queued_ns: Int64s
    cause: Int64s

    @property
    def num(self) -> int:
        """How many instances there are."""
        return self.last.size

    @property
    def is_own(self) -> Bools:
        """Say of each instance whether its last rank was late of itself."""
        own: Bools = self.cause == np.arange(self.num)
        return own

    def culprit(self) -> Int64s:
        """Return the device that each instance waited for, ``NOTHING`` for a long transfer."""
        late = self.last[self.cause % max(self.num, 1)].astype(np.int64)
        return np.where(self.cause < self.num, late, NOTHING)


def waits_of(together: Across, steps: Steps) -> Waits:
    """Lay all waiting to somebody."""
    instances = together.instances
    last = instances.last_device()
    last_part = np.flatnonzero(
        instances.part_device == last[instances.part_instance]
    )  # one of each instance, in their order
    wait_ns = instances.part_wait_ns
    late_ns = median_of_others(instances, wait_ns, last_part)
    late_ns[~instances.is_split] = 0
    exposed_ns, whole_ns = _exposed(together, steps)
    launched_ns = _launched_ns(instances, together.devices)[last_part]
    queued_ns = instances.part_start_ns[last_part] - launched_ns
    is_waited = by_instance(instances, whole_ns) > 0
    return Waits(
        exposed_ns,
        whole_ns,
        last,
        late_ns,
        np.where(launched_ns == NOTHING, NOTHING, np.maximum(queued_ns, 0)),
        _causes(together, late_ns, last_part, is_waited),
    )


def median_of_others(instances: Instances, values: Int64s, but: Int64s) -> Int64s:
    """Return for each instance the lower median over its parts, but for one of each."""
    num = instances.first_call.size
    rows = np.delete(np.arange(values.size), but)
    own = instances.part_instance[rows]
    ordered = values[rows[np.lexsort([values[rows], own])]]
    sizes = np.bincount(own, minlength=num)
    middle = np.cumsum(sizes) - sizes + (sizes - 1) // 2
    found = np.zeros(num, np.int64)
    found[sizes > 0] = ordered[middle[sizes > 0]]
    return found


def exposed_transfer_of(together: Across, steps: Steps, is_meant: Bools) -> Int64s:
    """Return for each part of some instances how much of its transfer was exposed."""
    instances = together.instances
    arrived = instances.part_end_ns - instances.transfer_ns[instances.part_instance]
    found = np.zeros(arrived.size, np.int64)
    rows_of = instances.rows_by_device(len(together.devices))
    for device, (rows, own) in enumerate(zip(rows_of, steps, strict=True)):
        some = rows[is_meant[instances.part_instance[rows]]]
        where = intersection(together.exposures[device].transfer, _union(own))
        found[some] = _shares(where, arrived[some], instances.part_end_ns[some])
    return found


def _exposed(together: Across, steps: Steps) -> tuple[Int64s, Int64s]:
    instances = together.instances
    start_ns = instances.part_start_ns
    arrived = instances.part_end_ns - instances.transfer_ns[instances.part_instance]
    counted, whole = np.zeros_like(arrived), np.zeros_like(arrived)
    rows_of = instances.rows_by_device(len(together.devices))
    is_split = instances.is_split
    for exposure, rows, own in zip(together.exposures, rows_of, steps, strict=True):
        inside = _union(own)
        of = instances.part_instance[rows]
        for is_peer, where in ((False, exposure.wait), (True, exposure.pipeline_wait)):
            some = rows[is_split[of] & (instances.is_peer[of] == is_peer)]
            spans = start_ns[some], arrived[some]
            whole[some] = _shares(where, *spans)
            counted[some] = _shares(intersection(where, inside), *spans)
    return counted, whole


def _shares(where: Intervals, starts: Int64s, ends: Int64s) -> Int64s:
    """Return how much of a set is in each span: in the first of those that overlap there."""
    order = np.argsort(starts, kind="stable")
    ends_before = np.maximum.accumulate(np.append(_NEVER, ends[order]))[:-1]
    begin = np.maximum(starts[order], ends_before)
    finish = np.maximum(begin, ends[order])
    found = np.zeros(starts.size, np.int64)
    found[order] = covered_before(where, finish) - covered_before(where, begin)
    return found


def _union(steps: Sequence[Times]) -> Intervals:
    starts = np.array([times.start_ns for times in steps], np.int64)
    return from_spans(starts, np.array([times.end_ns for times in steps], np.int64))


def _launched_ns(instances: Instances, devices: Sequence[DeviceDigest]) -> Int64s:
    """Return when each part's first call was launched, ``NOTHING`` where that is unknown."""
    found = np.full(instances.part_device.size, NOTHING, np.int64)
    for device, rows in zip(devices, instances.rows_by_device(len(devices)), strict=True):
        if rows.size:
            starts = device.calls["start_ns"].to_numpy()
            launched = device.calls["launched_ns"].fill_null(NOTHING).to_numpy()
            found[rows] = launched[np.searchsorted(starts, instances.part_start_ns[rows])]
    return found


# -- what was late because something else had been


class _Gaps(NamedTuple):
    """What each part's device did since its group last met, in other groups.

    It was in these for ``held_ns``, of that waiting for ``waited_ns``. They are those from
    ``first``, before ``stop``, of ``order``: parts by device and end.
    """

    held_ns: Int64s
    waited_ns: Int64s
    first: Int64s
    stop: Int64s
    order: Int64s


def _gaps(together: Across) -> _Gaps:
    instances = together.instances
    own, device = instances.part_instance, instances.part_device
    lasts_ns = instances.part_end_ns - instances.part_start_ns
    waited_ns = np.where(instances.is_split[own], instances.part_wait_ns, 0)
    since_ns = _ends_before(together)
    order = np.lexsort((instances.part_end_ns, device))
    held, waited = (np.append(0, np.cumsum(one[order])) for one in (lasts_ns, waited_ns))
    first, stop = np.zeros_like(own), np.zeros_like(own)
    at = 0
    for rows in instances.rows_by_device(len(together.devices)):
        ends = instances.part_end_ns[order[at : at + rows.size]]
        first[rows] = at + np.searchsorted(ends, since_ns[rows], "right")
        stop[rows] = at + np.searchsorted(ends, instances.part_start_ns[rows], "right")
        at += rows.size
    stop = np.maximum(first, stop)
    return _Gaps(held[stop] - held[first], waited[stop] - waited[first], first, stop, order)


def _ends_before(together: Across) -> Int64s:
    """Return when each part's group had last ended on its device: long ago for the first."""
    instances = together.instances
    group = together.calls.groups[instances.first_call][instances.part_instance]
    device, ends = instances.part_device, instances.part_end_ns
    order = np.lexsort((instances.part_start_ns, group, device))
    is_same = np.zeros(order.size, np.bool_)
    is_same[1:] = (np.diff(device[order]) == 0) & (np.diff(group[order]) == 0)
    found = np.full(order.size, _NEVER)
    found[order[is_same]] = ends[order[np.flatnonzero(is_same) - 1]]
    return found


def _causes(together: Across, late_ns: Int64s, last_part: Int64s, is_waited: Bools) -> Int64s:
    """Return for each instance what its wait comes from, as :class:`Waits` has it."""
    instances, gaps = together.instances, _gaps(together)
    held, waited = (
        of_part[last_part] - median_of_others(instances, of_part, last_part)
        for of_part in (gaps.held_ns, gaps.waited_ns)
    )
    meant = is_waited & instances.is_split & ~instances.is_peer
    meant &= (late_ns > 0) & (held * 2 >= late_ns)
    own = instances.part_instance
    wait_ns = np.where(instances.is_split[own], instances.part_wait_ns, 0)
    rest_ns = instances.part_end_ns - instances.part_start_ns - wait_ns
    num = late_ns.size
    causes = np.arange(2 * num)
    for one in np.flatnonzero(meant).tolist():
        part = last_part[one]
        rows = gaps.order[gaps.first[part] : gaps.stop[part]]
        is_wait = waited[one] * 2 >= held[one]
        longest = rows[np.argmax((wait_ns if is_wait else rest_ns)[rows])]
        causes[one] = own[longest] + (0 if is_wait else num)
    return _followed(causes)[:num]


def _followed(causes: Int64s) -> Int64s:
    """Follow causes to those that have none."""
    for _ in range(int(causes.size).bit_length()):
        further = causes[causes]
        if np.array_equal(further, causes):
            break
        causes = further
    return causes
