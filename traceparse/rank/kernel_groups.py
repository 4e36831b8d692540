"""Which kernels take most time? Device events added up by name, operator, shapes and kind.

Alike is told by hashes while events pass by, as names and shapes of a file may be any number;
of each group one row is remembered, and its texts are looked up when the largest are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from heapq import nlargest
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.ingest import Kept, RankTrace
from traceparse.intervals import Int64s
from traceparse.ordered import Rows
from traceparse.rank.attribute import Attributed
from traceparse.rank.classify import COMM, COMPUTE, COPY, KINDS, kinds_on_host
from traceparse.rank.counted import KernelWork
from traceparse.rank.link import UNLINKED, Linked
from traceparse.rank.nesting import NOTHING
from traceparse.rank.rows import hashes_of, picked
from traceparse.rank.signatures import Signatures, read_inputs, shapes_text
from traceparse.rank.tree import Is
from traceparse.rank.works import Work
from traceparse.work import Call, input_bytes

__all__ = ["KernelGroups"]

MOST_GROUPS: Final = 1 << 12  # of a file that are told apart
_MOST_HELD = 1 << 16  # while events pass by
_LONGEST = 512  # letters of a name
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 by the golden ratio (Knuth, 1973, section 6.4)
_LONGEST_INSIDE_NS = 1 << 45  # ten hours; so sums of a part do not overflow
_HALF = 32  # bits
_NO_IDENT = np.uint64(0)
_OP_TEXTS = ("name", "input_dims", "input_types")


class _Events(NamedTuple):
    """Columns of work. ``idents`` and ``above`` tell names and operators apart by hashes.

    ``rows`` are those of its own table, ``ops`` of the operators; ``calls`` number what counts,
    else ``NOTHING``. ``are_alone`` says that a run of an operator has no other kernel.
    """

    idents: npt.NDArray[np.uint64]
    above: npt.NDArray[np.uint64]
    kinds: npt.NDArray[np.int8]
    calls: npt.NDArray[np.int32]
    lasts: Int64s
    rows: Int64s
    ops: Int64s
    are_alone: npt.NDArray[np.bool_]


class _Key(NamedTuple):
    """What groups are told apart by in reports."""

    name: str
    op: str | None
    shapes: str | None
    kind: str
    is_counted: bool


class _Group:
    """Work that is alike, and where one of it stands."""

    __slots__ = ("call", "count", "is_alone", "kind", "op", "row", "time_ns")

    def __init__(self, kind: int, call: int, row: int, op: int) -> None:
        self.kind, self.call, self.row, self.op = kind, call, row, op
        self.count = self.time_ns = 0
        self.is_alone = True

    def add(self, count: int, time_ns: int, *, is_alone: bool) -> None:
        """Add some more of it."""
        self.count += count
        self.time_ns += time_ns
        self.is_alone &= is_alone


class KernelGroups:
    """Takes all work of a trace, each event once; says what took most of the time."""

    def __init__(self) -> None:
        self._groups: dict[int, _Group] = {}
        self._rest: dict[tuple[int, bool], list[int]] = defaultdict(lambda: [0, 0])

    def add(self, work: Work) -> None:
        """Add device events, of which those without a link of any sort are taken."""
        rows = np.flatnonzero((work.keys == 0) & (work.pairs == 0))
        lasts = work.ends[rows] - work.starts[rows]
        self._add(_loose(work.idents[rows], work.kinds[rows], lasts, work.rows[rows]))

    def add_linked(self, linked: Linked) -> None:
        """Add those of device events that came from links that no operator can own."""
        events = linked.events[(linked.launched_ns == UNLINKED) | linked.is_graph]
        lasts = events["end"] - events["start"]
        self._add(_loose(events["ident"], events["kind"], lasts, events["row"]))

    def add_marks(self, annotations: Kept) -> None:
        """Add spans of the host that communicate, where there is no device."""
        done = 0
        for part in annotations.parts("name", "start_ns", "end_ns"):
            own = np.flatnonzero(kinds_on_host(part, other=COMPUTE) == COMM)
            if own.size:
                starts, ends = (part[name].to_numpy()[own] for name in ("start_ns", "end_ns"))
                idents = hashes_of(part, "name")[own]
                kinds = np.full(own.size, COMM, np.int8)
                self._add(_loose(idents, kinds, ends - starts, done + own))
            done += part.num_rows

    def add_attributed(self, part: Attributed) -> None:
        """Add device events by the operator that owns them, or else is innermost around."""
        rows = part.rows
        events = np.flatnonzero(rows["is_event"] & part.is_done)
        if not events.size:
            return
        owners = part.owners[events]
        is_owned = np.append(part.counts, False)[owners]
        ops = np.where(is_owned, owners, part.operators[events])
        kinds = rows["kind"][events]
        is_kernel = kinds != COPY
        nums = np.bincount(ops[is_kernel & (ops != NOTHING)], minlength=rows.size)
        self._add(
            _Events(
                idents=rows["ident"][events],
                above=_ops_above(rows, ops),
                kinds=kinds,
                calls=np.where(is_owned & is_kernel, rows["call"][ops], NOTHING),
                lasts=rows["end"][events] - rows["first"][events],
                rows=rows["row"][events],
                ops=np.where(ops == NOTHING, NOTHING, rows["row"][ops]),
                are_alone=is_kernel & (ops != NOTHING) & (nums[ops] == 1),
            )
        )

    def add_operators(self, part: Attributed) -> None:
        """Add what operators took themselves, where there is no device.

        ``first`` of rows that are operators has what those inside of them took, and keeps it
        when rows go on. Operators that cross, as nothing nested does, count in full.
        """
        rows = part.rows
        done = np.flatnonzero(part.is_done & (rows["flags"] & (Is.FRAME | Is.MARK) == 0))
        lasts = rows["end"] - rows["start"]
        around = part.operators[done]
        inside = around != NOTHING
        np.add.at(
            rows["first"], around[inside], np.minimum(lasts[done[inside]], _LONGEST_INSIDE_NS)
        )
        np.minimum(rows["first"], lasts, out=rows["first"])
        own = done[np.isin(rows["kind"][done], (COMPUTE, COMM))]
        self._add(
            _Events(
                idents=rows["ident"][own],
                above=_ops_above(rows, own),
                kinds=rows["kind"][own],
                calls=np.where(part.counts[own], rows["call"][own], NOTHING),
                lasts=lasts[own] - rows["first"][own],
                rows=np.full(own.size, NOTHING),
                ops=rows["row"][own],
                are_alone=part.counts[own] | (rows["first"][own] == 0),
            )
        )

    def _add(self, events: _Events) -> None:
        if not events.lasts.size:
            return
        keys = np.zeros(events.lasts.size, np.uint64)
        is_mark = events.ops == NOTHING
        for column in (events.idents, events.above, events.kinds, events.calls, is_mark):
            keys = (keys ^ (keys >> np.uint64(29))) * _MIX + column.astype(np.uint64)
        distinct, firsts, which = np.unique(keys, return_index=True, return_inverse=True)
        upper, lower = (
            np.bincount(which, half).astype(np.int64).tolist()
            for half in (events.lasts >> _HALF, events.lasts & ((1 << _HALF) - 1))
        )
        nums = np.bincount(which)
        alone = np.bincount(which, events.are_alone) == nums
        columns = (events.kinds, events.calls, events.rows, events.ops)
        facts = zip(*(column[firsts].tolist() for column in columns), strict=True)
        for key, fact, num, up, low, is_alone in zip(
            distinct.tolist(), facts, nums.tolist(), upper, lower, alone.tolist(), strict=True
        ):
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _Group(*fact)
            group.add(num, (up << _HALF) + low, is_alone=is_alone)
        if len(self._groups) > _MOST_HELD:
            self._keep(_MOST_HELD // 2)

    def _keep(self, most: int) -> None:
        """Keep the groups that took most; what others took is part of the rest."""
        if len(self._groups) <= most:
            return
        largest = dict(nlargest(most, self._groups.items(), key=_size))
        for key, group in self._groups.items():
            if key not in largest:
                rest = self._rest[group.kind, group.call != NOTHING]
                rest[0] += group.count
                rest[1] += group.time_ns
        self._groups = largest

    def works(self, trace: RankTrace, signatures: Signatures) -> tuple[KernelWork, ...]:
        """Return what took time, most of it first, and at last the rest, by kind.

        ``trace`` is the one that work was of: texts are looked up there.
        """
        self._keep(MOST_GROUPS)
        groups = list(self._groups.values())
        on_host = not trace.kept["device_events"].num_rows
        own = trace.kept["annotations" if on_host else "device_events"]
        names = _texts(own, [group.row for group in groups], "name")
        ops = _texts(trace.kept["ops"], [group.op for group in groups], *_OP_TEXTS)
        sums: dict[_Key, tuple[int, int, int | None]] = {}
        for group, (name,), op in zip(groups, names, ops, strict=True):
            called = _called(*op)
            key = _Key(
                called.op or "" if group.row == NOTHING else (name or "")[:_LONGEST],
                called.op,
                called.shapes,
                KINDS[group.kind],
                group.call != NOTHING,
            )
            count, time_ns, num_bytes = sums.get(key, (0, 0, 0))
            more = _bytes_of(group, called, signatures)
            known = None if num_bytes is None or more is None else num_bytes + more
            sums[key] = count + group.count, time_ns + group.time_ns, known
        found = [KernelWork(*key, *told) for key, told in sums.items()]
        rest = (
            KernelWork(None, None, None, KINDS[kind], is_counted, *told)
            for (kind, is_counted), told in sorted(self._rest.items())
        )
        return (*sorted(found, key=_order), *rest)


class _Called(NamedTuple):
    """An operator for people, and what each run of it moves at least."""

    op: str | None
    shapes: str | None
    least_bytes: int | None


@lru_cache(maxsize=1 << 11)  # all ranks of a job call the same
def _called(op: str | None, dims: str | None, types: str | None) -> _Called:
    if op is None:
        return _Called(None, None, None)
    call = Call(op, read_inputs(dims), read_inputs(types))
    shapes = shapes_text(call.dims) or None  # none is recorded, or it was given no tensor
    return _Called(op[:_LONGEST], shapes, input_bytes(call))


def _bytes_of(group: _Group, called: _Called, signatures: Signatures) -> int | None:
    """Return what all runs of a group moved at least, where each has one kernel."""
    if not group.is_alone:
        return None
    counted = None if group.call == NOTHING else signatures[group.call]
    each = counted.least_bytes if counted else called.least_bytes
    return group.count * each if each else None


def _loose(
    idents: npt.NDArray[np.uint64], kinds: npt.NDArray[np.int8], lasts: Int64s, rows: Int64s
) -> _Events:
    """Return work that no operator is known of."""
    nothing = np.full(rows.size, NOTHING)
    return _Events(
        idents,
        np.zeros(rows.size, np.uint64),
        kinds,
        nothing.astype(np.int32),
        lasts,
        rows,
        nothing,
        np.zeros(rows.size, np.bool_),
    )


def _ops_above(rows: Rows, ops: Int64s) -> npt.NDArray[np.uint64]:
    """Tell operators apart by name, sizes and types; 0 for none."""
    found = rows["ident"][ops] * _MIX + rows["typed"][ops]
    return np.where(ops == NOTHING, _NO_IDENT, found)


def _texts(kept: Kept, rows: Sequence[int], *columns: str) -> list[tuple[str | None, ...]]:
    """Return some texts of some rows; ``None`` for ``NOTHING``."""
    wanted, which = np.unique(np.array(rows, np.int64), return_inverse=True)
    num_none = int(np.searchsorted(wanted, 0))
    found: list[tuple[str | None, ...]] = [(None,) * len(columns)] * num_none
    for part in picked(kept, wanted[num_none:], *columns):
        texts = (part[name].cast(pa.string()).to_pylist() for name in columns)
        found += zip(*texts, strict=True)
    return [found[at] for at in which.reshape(-1).tolist()]


def _size(item: tuple[int, _Group]) -> tuple[int, int]:
    key, group = item
    return group.time_ns, key


def _order(one: KernelWork) -> tuple[Any, ...]:
    return (-one.time_ns, one.name, one.op or "", one.shapes or "", one.kind, one.is_counted)
