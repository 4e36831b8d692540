"""Which operator owns a kernel, which of its runs count, and which repeat earlier work?

Operators lie as the host ran them; a device event lies where the host launched it. All of a
thread passes by in order of start, so what encloses what is known, and of a run all is known
when it has ended.

A kernel is owned by the innermost counted operator around its launch. Of counted operators in
one another the innermost that owns kernels counts, and those around it do not: one product has
several names (``aten::matmul``, ``aten::mm``), and works once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.intervals import Int64s
from traceparse.ordered import Ordered, Rows
from traceparse.rank.classify import COMPUTE, kinds_on_host
from traceparse.rank.nesting import NOTHING
from traceparse.rank.rows import by_text, groups, hashes_of
from traceparse.rank.signatures import CALL_COLUMNS, Signatures
from traceparse.rank.tree import Bools, Is, Tree
from traceparse.tables import ArrowTable

__all__ = ["OP_COLUMNS", "Attributed", "Attribution"]

OP_COLUMNS = ("start_ns", "end_ns", *CALL_COLUMNS, "sequence_number", "forward_thread")

_ENGINE = "autograd::engine::evaluate_function: "
_CHECKPOINT = "CheckpointFunctionBackward"
_RECORDER = "record_param_comms"  # around a collective, with all that is known of it
_DETACHES = ("aten::detach", "detach")

_FIELDS = (
    ("thread", "i4"),
    ("typed", "u4"),  # tells operators of one ident apart by the types of their inputs
    ("start", "i8"),  # of a device event: its launch
    ("order", "i8"),  # of what starts at once: operators, the longest first, then events
    ("row", "i8"),
    ("ident", "u8"),  # tells names of kernels apart, and operators by name and shapes
    ("first", "i8"),  # of a device event: its own start
    ("end", "i8"),
    ("call", "i4"),  # the number of an operator's signature
    ("device", "i2"),
    ("kind", "i1"),  # of what is work: of an operator where that is no event
    ("flags", "u2"),  # of a device event: hints at its data type
    ("is_event", "?"),
)
_LAST = 1  # the order of events: that of operators is negative
_MOST_LAUNCHES = 1 << 22  # 32 MiB


class Attributed(NamedTuple):
    """Some rows: operators and device events, mixed; those that are done, once.

    ``operators`` has the place of the innermost operator around each, ``owners`` that of the
    innermost countable one, ``NOTHING`` where there is none. ``counts`` are operators whose
    work counts; ``is_missed`` those that worked and could not be counted. ``is_in_frame`` is
    what Python's stack says to be recomputation, where it was recorded. ``comm`` has the places
    of events that communicate, ``recorders`` and ``marks`` of what tells of each.
    """

    rows: Rows
    operators: Int64s
    owners: Int64s
    comm: Int64s
    recorders: Int64s
    marks: Int64s
    counts: Bools
    is_recompute: Bools
    is_in_frame: Bools
    is_outside_engine: Bools
    is_missed: Bools
    is_done: Bools


class Attribution:
    """Takes operators and launched device events in any order; attributes them part by part.

    ``on_host`` is whether operators themselves are the work, as there is no device.
    ``is_complete`` keeps operators by which nothing can be told, ``with_records`` those that
    record collectives, of which some say nothing. What is innermost around a launch is kept if
    the launch was added before.
    """

    def __init__(
        self,
        signatures: Signatures,
        *,
        on_host: bool,
        is_complete: bool = False,
        with_records: bool = True,
    ) -> None:
        self._with_records = with_records
        self._signatures = signatures
        self._on_host = on_host
        self._is_complete = is_complete
        self._rows = Ordered(_FIELDS, by=("thread", "start", "order"))
        self._launches = _Launches()
        self._num_ops = 0

    def add_ops(self, ops: ArrowTable, threads: npt.NDArray[np.int32]) -> None:
        """Add rows of ``ops``, in the order of the file, with the number of each one's thread.

        Of the columns :data:`OP_COLUMNS` are looked at.
        """
        starts, ends = ops["start_ns"].to_numpy(), ops["end_ns"].to_numpy()
        calls = self._signatures.numbers(ops)
        flags = _flags(ops)
        if not self._with_records:
            flags &= ~Is.RECORDER
        flags[self._signatures.are_countable(calls)] |= Is.COUNTABLE
        rows = np.arange(self._num_ops, self._num_ops + ops.num_rows)
        self._num_ops += ops.num_rows
        kept = np.ones(rows.size, np.bool_)
        if not (self._on_host or self._is_complete):
            kept = (calls != NOTHING) | (flags != 0) | ~_are_inside(threads, starts, ends)
            rest = np.flatnonzero(~kept)
            kept[rest] = self._launches.are_in(threads[rest], starts[rest], ends[rest])
        self._rows.add(
            int(kept.sum()),
            thread=threads[kept],
            typed=hashes_of(ops, "input_types")[kept].astype(np.uint32),
            start=starts[kept],
            order=-ends[kept],
            row=rows[kept],
            ident=_idents(ops)[kept],
            end=ends[kept],
            call=calls[kept],
            kind=kinds_on_host(ops, other=COMPUTE)[kept] if self._on_host else COMPUTE,
            flags=flags[kept],
        )

    def add_spans(
        self,
        spans: ArrowTable,
        threads: npt.NDArray[np.int32],
        rows: Int64s,
        flag: np.uint16,
    ) -> None:
        """Add what is no operator: rows of ``annotations``, and what they are."""
        ends = spans["end_ns"].to_numpy()
        self._rows.add(
            ends.size,
            thread=threads,
            start=spans["start_ns"].to_numpy(),
            order=-ends,
            row=rows,
            end=ends,
            call=NOTHING,
            flags=int(flag),
        )

    def add_events(
        self, threads: npt.NDArray[np.int32], launched_ns: Int64s, **facts: npt.NDArray[Any]
    ) -> None:
        """Add device events, each with the thread and the instant of its launch.

        ``facts`` are any of ``row``, ``ident``, ``first`` and ``end`` (its own), ``device``,
        ``kind`` and ``flags``.
        """
        self._launches.add(threads, launched_ns)
        self._rows.add(
            launched_ns.size,
            thread=threads,
            start=launched_ns,
            order=_LAST,
            is_event=True,
            call=NOTHING,
            **facts,
        )

    def parts(self) -> Iterator[Attributed]:
        """Yield all rows, thread by thread; each of them is done in one part only."""
        held = np.empty(0, np.dtype(list(_FIELDS), align=True))
        for part in self._rows.parts():
            joined = np.concatenate([held, part]) if held.size else part
            attributed = self._attributed(joined)
            yield attributed
            held = attributed.rows[~attributed.is_done]
        if held.size:
            yield self._attributed(held, is_last=True)

    def _attributed(self, rows: Rows, *, is_last: bool = False) -> Attributed:
        tree = Tree(rows.copy())
        is_pending = np.zeros(rows.size, np.bool_)
        if self._on_host:
            tree.learn_calls()
            is_pending = tree.is_stopped
            has_worked = tree.is_op & ~is_pending
        else:
            has_worked = tree.worked_on_device()
        tree.learn_work(has_worked)
        return Attributed(
            rows=tree.rows,
            operators=tree.operators,
            owners=tree.owners,
            comm=tree.comm,
            recorders=tree.recorders,
            marks=tree.marks,
            counts=tree.counts(has_worked),
            is_recompute=tree.is_recompute,
            is_in_frame=tree.is_in_frame,
            is_outside_engine=tree.engines == NOTHING,
            is_missed=tree.is_missed(has_worked),
            is_done=tree.are_done(is_pending, is_last=is_last),
        )


class _Launches:
    """When each thread launched what left device events: operators around that are owners.

    Of more than ``_MOST_LAUNCHES``, which would take much memory, nothing is kept: any operator
    may be around one then.
    """

    def __init__(self) -> None:
        self._added: list[tuple[npt.NDArray[np.int32], Int64s]] = []
        self._num = 0
        self._by_thread: dict[int, Int64s] | None = None

    def add(self, threads: npt.NDArray[np.int32], launched_ns: Int64s) -> None:
        """Add launches in any order; several device events may have one."""
        self._num += launched_ns.size
        self._by_thread = None
        if self._num > _MOST_LAUNCHES:
            self._added.clear()
        else:
            self._added.append((threads, launched_ns))

    def are_in(self, threads: npt.NDArray[np.int32], starts: Int64s, ends: Int64s) -> Bools:
        """Say which spans are around any launch of their thread, or may be."""
        if self._num > _MOST_LAUNCHES:
            return np.ones(starts.size, np.bool_)
        if self._by_thread is None:
            self._by_thread = self._sorted()
        found = np.zeros(starts.size, np.bool_)
        for thread, rows in groups(threads):
            own = self._by_thread.get(thread)
            if own is not None:
                found[rows] = own[np.searchsorted(own, starts[rows])] < ends[rows]
        return found

    def _sorted(self) -> dict[int, Int64s]:
        if not self._added:
            return {}
        threads, launched_ns = map(np.concatenate, zip(*self._added, strict=True))
        never = np.iinfo(np.int64).max
        return {
            thread: np.append(np.sort(launched_ns[rows]), never)
            for thread, rows in groups(threads)
        }


def _idents(ops: ArrowTable) -> npt.NDArray[np.uint64]:
    return hashes_of(ops, "name") ^ (hashes_of(ops, "input_dims") << np.uint64(1))


def _are_inside(threads: npt.NDArray[np.int32], starts: Int64s, ends: Int64s) -> Bools:
    """Say which spans are surely inside an earlier one of their thread.

    Of threads whose spans are not in order of start nothing is said.
    """
    found = np.zeros(starts.size, np.bool_)
    for _, rows in groups(threads):
        own_starts, own_ends = starts[rows], ends[rows]
        if np.all(own_starts[1:] >= own_starts[:-1]):
            reach = np.maximum.accumulate(own_ends[:-1])
            found[rows] = np.append(False, own_ends[1:] <= reach)
    return found


def _flags(ops: ArrowTable) -> npt.NDArray[np.uint16]:
    """Say what is known of operators by name, and by what autograd noted of them."""
    flags = by_text(ops, "name", _flags_of_names, null=0)
    numbered = ops["sequence_number"].is_valid().to_numpy()
    threads = ops["forward_thread"].fill_null(1).to_numpy()
    flags[numbered & (threads == 0)] |= Is.FORWARD
    return flags


def _flags_of_names(names: pa.Array) -> npt.NDArray[np.uint16]:
    flags = np.zeros(len(names), np.uint16)
    engine = pc.starts_with(names, _ENGINE)
    for flag, told in (
        (Is.ENGINE, engine),
        (Is.CHECKPOINT, pc.and_(engine, pc.match_substring(names, _CHECKPOINT))),
        (Is.RECORDER, pc.equal(names, _RECORDER)),
        (Is.DETACH, pc.is_in(names, pa.array(_DETACHES))),
    ):
        flags[told.to_numpy(zero_copy_only=False)] |= flag
    return flags
