"""Every collective, once: how long it transferred, who waited how long, and for whom.

The shortest duration among its ranks is the transfer, as the last to arrive waits for nobody;
what a rank takes longer is its wait (report contract, section 5). Durations need no common
clock. An instance is split so only if every rank of its group that has a file shows it, and at
least two do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.run.gathered import NOTHING, Calls
from traceparse.run.matching import POINT_TO_POINT
from traceparse.units import parse_ranges

__all__ = ["Instances", "by_instance", "instances_of"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Instances:
    """Instances, and the part that each device had in them: ``part_`` columns, by instance.

    Several calls of one device in an instance are one part, from the first start to the last
    end. ``first_call`` is a call of each instance, which tells its kind. ``num_expected`` is
    how many ranks of its group have a file, ``num_members`` how many there are in all,
    ``NOTHING`` where that is not told. ``of_call`` is the instance of each call.
    """

    first_call: Int64s
    num_ranks: Int64s
    num_expected: Int64s
    num_members: Int64s
    transfer_ns: Int64s
    is_alike: Bools
    is_peer: Bools
    part_instance: Int64s
    part_device: npt.NDArray[np.int32]
    part_start_ns: Int64s
    part_end_ns: Int64s
    of_call: Int64s

    @property
    def is_split(self) -> Bools:
        """Whether transfer and wait can be told apart."""
        found: Bools = (
            (self.num_ranks >= 2) & (self.num_ranks == self.num_expected) & self.is_alike
        )
        return found

    @property
    def part_wait_ns(self) -> Int64s:
        """How long each part waited; what cannot be split counts as if it could."""
        lasts = self.part_end_ns - self.part_start_ns
        return lasts - self.transfer_ns[self.part_instance]

    def rows_by_device(self, num: int) -> list[Int64s]:
        """Return the parts of each of so many devices, in their order."""
        order = np.argsort(self.part_device, kind="stable")
        counts = np.bincount(self.part_device, minlength=num)
        return np.split(order, np.cumsum(counts)[:-1])

    def parts_of(self, numbers: Int64s) -> Int64s:
        """Return the parts of some instances."""
        firsts = np.searchsorted(self.part_instance, numbers)
        sizes = self.num_ranks[numbers]
        before = np.cumsum(sizes) - sizes
        return np.repeat(firsts - before, sizes) + np.arange(int(sizes.sum()))

    def last_device(self) -> npt.NDArray[np.int32]:
        """Return whom each instance waited for: the shortest part, of ties the first device."""
        lasts = self.part_end_ns - self.part_start_ns
        order = np.lexsort([self.part_device, lasts, self.part_instance])
        firsts = np.flatnonzero(np.diff(self.part_instance[order], prepend=-1))
        return self.part_device[order][firsts]


def instances_of(calls: Calls, matched: Int64s, ranks: Sequence[int | None]) -> Instances:
    """Put calls together by their numbers, as :func:`traceparse.run.matching.match` gives."""
    order = np.lexsort((calls.devices, matched))
    instance, device = matched[order], calls.devices[order]
    is_new_part = _changes(instance) | _changes(device)
    parts = np.flatnonzero(is_new_part)
    part_start = np.minimum.reduceat(calls.start_ns[order], parts) if parts.size else parts
    part_end = np.maximum.reduceat(calls.end_ns[order], parts) if parts.size else parts
    firsts = np.flatnonzero(_changes(instance[parts]))
    numbers = np.cumsum(_changes(instance[parts])) - 1
    lasts = part_end - part_start
    calls_of = np.repeat(numbers, np.diff(np.append(parts, order.size)))
    first_call = order[parts[firsts]]
    expected, members = _expected(calls, ranks)
    group = calls.groups[first_call]
    is_peer = _is_peer(calls)[first_call]
    return Instances(
        first_call=first_call,
        num_ranks=np.diff(np.append(firsts, parts.size)),
        num_expected=np.where(is_peer, 2, expected[group]),
        num_members=np.where(is_peer, 2, members[group]),
        transfer_ns=np.minimum.reduceat(lasts, firsts) if firsts.size else firsts,
        is_alike=_alike(calls, order, calls_of, firsts.size),
        is_peer=is_peer,
        part_instance=numbers,
        part_device=device[parts],
        part_start_ns=part_start,
        part_end_ns=part_end,
        of_call=calls_of[np.argsort(order)],
    )


def by_instance(instances: Instances, values: Int64s) -> Int64s:
    """Add up over the parts of each instance."""
    sums = np.zeros(instances.first_call.size, np.int64)
    np.add.at(sums, instances.part_instance, values)
    return sums


def _changes(values: npt.NDArray[np.int64] | npt.NDArray[np.int32]) -> Bools:
    return np.append(True, values[1:] != values[:-1])[: values.size]


def _is_peer(calls: Calls) -> Bools:
    numbers = [n for n, text in enumerate(calls.collective_texts) if text in POINT_TO_POINT]
    return np.isin(calls.collectives, numbers)


def _alike(calls: Calls, order: Int64s, instance: Int64s, num: int) -> Bools:
    """Say of each instance whether all of its calls are of one kind; peers differ in theirs."""
    kinds = np.where(_is_peer(calls), NOTHING, calls.collectives)
    found = np.ones(num, np.bool_)
    for column in (
        kinds,
        calls.dtypes,
        np.where(calls.is_partial, NOTHING, calls.message_bytes),
    ):
        values = column[order].astype(np.int64)
        lowest = np.full(num, np.iinfo(np.int64).max)
        highest = np.full(num, np.iinfo(np.int64).min)
        np.minimum.at(lowest, instance, values)
        np.maximum.at(highest, instance, values)
        found &= lowest == highest
    return found


def _expected(calls: Calls, ranks: Sequence[int | None]) -> tuple[Int64s, Int64s]:
    """Return how many ranks of each group have a file, and how many it has."""
    present: Mapping[int, set[int]] = {}
    known = {rank for rank in ranks if rank is not None}
    expected, members = [], []
    present = _present(calls)
    for group, (_, text, size) in enumerate(calls.group_texts):
        own = parse_ranges(text) if text else None
        if own is None:
            expected.append(len(present.get(group, ())))
            members.append(NOTHING if size is None else size)
        else:
            expected.append(len(known.intersection(own)))
            members.append(len(own))
    return np.array(expected, np.int64), np.array(members, np.int64)


def _present(calls: Calls) -> dict[int, set[int]]:
    keys = np.unique(np.column_stack([calls.groups, calls.devices]), axis=0)
    found: dict[int, set[int]] = {}
    for group, device in keys.tolist():
        found.setdefault(group, set()).add(device)
    return found
