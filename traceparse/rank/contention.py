"""How much longer do kernels take while collectives run beside them?

Every compute kernel that a collective overlaps is held against the median of those alike (the
same operator, shapes and kernel, over the whole file) that none does. Alike is told by hashes:
names and shapes of a file may be any number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.intervals import EMPTY, Int64s, covered_before, from_spans, union
from traceparse.ordered import Ordered, Rows
from traceparse.rank.attribute import Attributed
from traceparse.rank.classify import COMM, COMPUTE
from traceparse.rank.nesting import NOTHING
from traceparse.rank.rows import groups
from traceparse.rank.works import Work

__all__ = ["Contention", "Slowed"]

_KERNEL = (("ident", "u8"), ("start", "i8"), ("end", "i8"), ("device", "i2"))
_KIND = (
    ("ident", "u8"),
    ("overlapped", "?"),
    ("last", "i8"),
    ("start", "i8"),
    ("device", "i2"),
)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 by the golden ratio (Knuth, 1973, section 6.4)


class Slowed(NamedTuple):
    """Kernels of one device that collectives overlap, up to each instant of ``cuts``.

    ``twice_ns`` sums twice what each took longer than the median, which may be half a ns.
    """

    cuts: Int64s
    twice_ns: list[int]
    overlapped_ns: int
    unknown_ns: int  # of kernels that never ran alone

    def between(self, start_ns: int, end_ns: int) -> int:
        """Return twice the contention of kernels that began in ``[start_ns, end_ns)``."""
        first, last = map(int, np.searchsorted(self.cuts, [start_ns, end_ns]))
        return self.twice_ns[last] - self.twice_ns[first]


class Contention:
    """Takes work, and where it turns out that any communicates, who owns each kernel."""

    def __init__(self, num_devices: int) -> None:
        self._comm = [EMPTY] * num_devices
        self._loose = Ordered(_KERNEL, by=("start",))  # that no operator is known of
        self._kernels = Ordered(_KIND, by=("ident", "overlapped", "last"))
        self.has_comm = False

    def add(self, work: Work) -> None:
        """Add work as it comes in the file."""
        for device, rows in groups(work.devices):
            comm = np.flatnonzero(work.kinds[rows] == COMM)
            if comm.size:
                self.has_comm = True
                spans = from_spans(work.starts[rows][comm], work.ends[rows][comm])
                self._comm[device] = union(self._comm[device], spans)
        self._add_loose(work, (work.keys == 0) & (work.pairs == 0))

    def _add_loose(self, work: Work, are_loose: npt.NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(are_loose & (work.kinds == COMPUTE))
        self._loose.add(
            rows.size,
            ident=work.idents[rows],
            start=work.starts[rows],
            end=work.ends[rows],
            device=work.devices[rows],
        )

    def add_unowned(self, events: Rows) -> None:
        """Add device events that came from links without a launch, or with that of a graph."""
        own = events[events["kind"] == COMPUTE]
        names = ("ident", "start", "end", "device")
        self._loose.add(own.size, **{name: own[name] for name in names})

    def add_attributed(self, part: Attributed) -> None:
        """Add kernels by their innermost operator."""
        if not self.has_comm:
            return
        rows = part.rows
        events = np.flatnonzero(rows["is_event"] & part.is_done & (rows["kind"] == COMPUTE))
        operators = part.operators[events]
        above = np.where(operators == NOTHING, np.uint64(0), rows["ident"][operators])
        own = rows[events]
        self._add(own["ident"] * _MIX + above, own["first"], own["end"], own["device"])

    def _add(
        self,
        idents: npt.NDArray[np.uint64],
        starts: Int64s,
        ends: Int64s,
        devices: npt.NDArray[np.int16],
    ) -> None:
        overlapped = np.zeros(starts.size, np.bool_)
        for device, rows in groups(devices):
            comm = self._comm[device]
            before, after = (covered_before(comm, at[rows]) for at in (starts, ends))
            overlapped[rows] = after > before
        self._kernels.add(
            starts.size,
            ident=idents,
            overlapped=overlapped,
            last=ends - starts,
            start=starts,
            device=devices,
        )

    def finish(self, cuts: Sequence[Int64s]) -> list[Slowed]:
        """Return what each device's kernels took longer, up to each of its cuts."""
        if self.has_comm:
            for rows in self._loose.parts():
                names = ("start", "end", "device")
                self._add(rows["ident"] * _MIX, *(rows[name] for name in names))
        edges = [np.unique(own) for own in cuts]
        sums = [np.zeros(own.size + 1, np.float64) for own in edges]
        overlapped, unknown = [0] * len(edges), [0] * len(edges)
        for rows, twice_median in self._slowed():
            known = twice_median != NOTHING
            excess = np.where(known, 2 * rows["last"] - twice_median, 0)
            for device, own in groups(rows["device"]):
                # those that begin at a cut come after it
                at = np.searchsorted(edges[device], rows["start"][own], "right")
                np.add.at(sums[device], at, excess[own].astype(np.float64))
                overlapped[device] += int(rows["last"][own].sum())
                unknown[device] += int(rows["last"][own][~known[own]].sum())
        return [
            Slowed(own, np.cumsum(total)[:-1].astype(np.int64).tolist(), some, none)
            for own, total, some, none in zip(edges, sums, overlapped, unknown, strict=True)
        ]

    def _slowed(self) -> Iterator[tuple[Rows, Int64s]]:
        """Yield overlapped kernels, with twice the median of those alike that ran alone."""
        medians = self._twice_medians()
        for rows, kinds, _ in self._by_kind():
            own = rows["overlapped"]
            if own.any():
                yield rows[own], medians[kinds[own]]

    def _twice_medians(self) -> Int64s:
        """Return twice the median of each kind that ran alone, else ``NOTHING``.

        Those alone come first, in order of how long they took: so of as many as there are, the
        middle one or two have the middle places.
        """
        nums = np.zeros(0, np.int64)
        for rows, kinds, _ in self._by_kind():
            num = np.bincount(kinds[~rows["overlapped"]], minlength=int(kinds[-1]) + 1)
            nums = np.append(nums, np.zeros(max(num.size - nums.size, 0), np.int64))
            nums[: num.size] += num
        twice = np.where(nums > 0, 0, NOTHING)
        for rows, kinds, places in self._by_kind():
            alone = ~rows["overlapped"]
            for middle in ((nums - 1) // 2, nums // 2):
                own = alone & (places == middle[kinds])
                np.add.at(twice, kinds[own], rows["last"][own])
        return twice

    def _by_kind(self) -> Iterator[tuple[Rows, Int64s, Int64s]]:
        """Yield kernels kind by kind: with the number of their kind, and their place in it."""
        num, last, place = -1, None, 0
        for rows in self._kernels.parts():
            idents = rows["ident"]
            is_new = np.append(last is None or idents[0] != last, idents[1:] != idents[:-1])
            kinds = num + np.cumsum(is_new)
            firsts = np.flatnonzero(is_new)
            begins = np.where(is_new, np.arange(rows.size), 0)
            places = np.arange(rows.size) - np.maximum.accumulate(begins)
            before = firsts[0] if firsts.size else rows.size
            places[:before] += place
            yield rows, kinds, places
            num, last, place = int(kinds[-1]), idents[-1], int(places[-1]) + 1
