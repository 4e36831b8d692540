"""Every collective and point-to-point call of a trace, with what the trace tells of it.

Kernels have metadata since torch 2.2, all or nothing; what they lack, the operator that
launched them may have, or the backend's span around the launch, and at last their name. gloo
and MPI have no kernels: their spans are the calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.errors import Note
from traceparse.ingest import FileHealth, RankTrace
from traceparse.intervals import EMPTY, Int64s
from traceparse.rank.account import Account
from traceparse.rank.attribute import Attributed
from traceparse.rank.call_table import SOURCES, Call, Calls, Gathered, Told, call_table
from traceparse.rank.classify import COMM
from traceparse.rank.facts import (
    FACT,
    Facts,
    Words,
    are_incomplete,
    merge,
    read_args,
    read_spans,
)
from traceparse.rank.link import UNLINKED, Linked
from traceparse.rank.nesting import NOTHING
from traceparse.rank.rows import numbers_of, picked
from traceparse.rank.steps import Marker
from traceparse.rank.texts import Texts
from traceparse.rank.times import CALLS, EXPOSED
from traceparse.rank.works import Work
from traceparse.tables import ArrowTable

__all__ = ["MOST_CALLS", "Collectives"]

MOST_CALLS = 1 << 20  # of a file; a run has some thousand a step
_SPAN_COLUMNS = ("name", "input_dims", "input_types")

_Any = TypeVar("_Any", bound=np.generic)
Bools = npt.NDArray[np.bool_]


class Collectives:
    """Takes work, then links, then what is attributed; makes the table of each device.

    ``are_too_many`` says that a file has more than anybody can have measured: none is kept.
    """

    def __init__(self, trace: RankTrace, num_devices: int) -> None:
        self.are_too_many = False
        self._trace = trace
        self._num_devices = num_devices
        self._on_host = not trace.kept["device_events"].num_rows
        self._names = Texts()
        self._words = Words()
        self._added: list[Calls] = []
        self._told: list[Facts] = []  # by spans that are the calls
        self._num = 0
        self._calls: Calls | None = None  # all, once links come

    def add(self, work: Work) -> None:
        """Add what communicates of some work, in the order of the file."""
        at = np.flatnonzero(work.kinds == COMM)
        self._num += at.size
        if self._num > MOST_CALLS:
            self.are_too_many = True
            self._added.clear()
            self._told.clear()
        if self.are_too_many or not at.size:
            return
        calls = np.zeros(at.size, Call)
        calls["row"], calls["device"] = work.rows[at], work.devices[at]
        calls["start"], calls["end"] = work.starts[at], work.ends[at]
        calls["name"] = self._names.numbers(work.comm["name"])
        calls["op"] = calls["mark"] = NOTHING
        calls["launched"] = calls["start"] if self._on_host else UNLINKED
        if self._on_host:
            self._told.append(read_spans(work.comm, self._words)[0])
        else:
            calls["stream"] = numbers_of(work.comm, "stream")
            calls["has_stream"] = work.comm["stream"].is_valid().to_numpy()
        self._added.append(calls)

    @property
    def _all(self) -> Calls:
        if self._calls is None:
            self._calls = np.concatenate([np.empty(0, Call), *self._added])
            self._added.clear()
        return self._calls

    def add_linked(self, linked: Linked) -> None:
        """Add when calls were launched."""
        own = (linked.events["kind"] == COMM) & (linked.launched_ns != UNLINKED)
        if own.any() and not self.are_too_many:
            self._all["launched"][self._places(linked.events["row"][own])] = linked.launched_ns[
                own
            ]

    def add_attributed(self, part: Attributed) -> None:
        """Add what was around their launches."""
        if self.are_too_many:
            return
        for field, around in (("op", part.recorders), ("mark", part.marks)):
            own = (around != NOTHING) & part.is_done[part.comm]
            if own.any():
                places = self._places(part.rows["row"][part.comm[own]])
                self._all[field][places] = part.rows["row"][around[own]]

    def _places(self, rows: Int64s) -> Int64s:
        return np.searchsorted(self._all["row"], rows)

    def tables(self, steps: Sequence[Marker]) -> list[ArrowTable]:
        """Return the calls of each device, in order of start, with all that is told.

        Once: what they were made of is forgotten.
        """
        calls = self._all
        if self.are_too_many or not calls.size:
            return [CALLS.empty_table()] * self._num_devices
        order = np.lexsort([calls["end"], calls["start"], calls["device"]])
        gathered = self._gathered().take(order)
        self._calls = calls = gathered.calls
        firsts = np.searchsorted(calls["device"], np.arange(self._num_devices + 1))
        told = Told(
            self._names, self._words, self._trace.header.groups, self._trace.health.rank
        )
        return [call_table(gathered.take(slice(*own)), told, steps) for own in pairwise(firsts)]

    def _gathered(self) -> Gathered:
        """Gather what is told of each call, who told it, and whether of several at once."""
        calls = self._all
        if self._on_host:
            told_by = np.full(calls.size, SOURCES.index("span"), np.int32)
            return Gathered(
                calls, np.concatenate(self._told), told_by, np.zeros(calls.size, np.bool_)
            )
        args, words = self._trace.kept["collective_args"], self._words
        facts = read_args(args, "device_events", np.ascontiguousarray(calls["row"]), words)
        told_by = np.full(calls.size, SOURCES.index("name"), np.int32)
        told_by[facts["has"] != 0] = SOURCES.index("kernel")
        lack = are_incomplete(facts, self._trace.header.groups, words)
        around_op = np.where(lack, calls["op"], NOTHING)
        ops, marks = (
            np.unique(around[around != NOTHING]) for around in (around_op, calls["mark"])
        )
        spans, are_several = self._read_marks(marks)
        for source, found, rows, around in (
            ("operator", read_args(args, "ops", ops, words), ops, around_op),
            ("span", spans, marks, calls["mark"]),
        ):
            if rows.size:
                told = _at(found, rows, around)
                told_by[(facts["has"] == 0) & (told["has"] != 0)] = SOURCES.index(source)
                merge(facts, told)
        return Gathered(calls, facts, told_by, _at(are_several, marks, calls["mark"]))

    def _read_marks(self, rows: Int64s) -> tuple[Facts, Bools]:
        """Read some rows of ``annotations``, given in order."""
        found, are_several = np.zeros(rows.size, FACT), np.zeros(rows.size, np.bool_)
        done = 0
        for spans in picked(self._trace.kept["annotations"], rows, *_SPAN_COLUMNS):
            own = slice(done, done + spans.num_rows)
            if spans.num_rows:
                found[own], are_several[own] = read_spans(spans, self._words)
            done = own.stop
        return found, are_several

    def exposed(self, account: Account) -> ArrowTable:
        """Return when a device communicated and did not compute, as far as that is kept."""
        found = account.exposed
        self.are_too_many |= found is None
        return pa.table(list(found or EMPTY), schema=EXPOSED)

    def notes(self, health: FileHealth) -> Iterator[Note]:
        """Say what was not kept."""
        if self.are_too_many:
            yield Note(
                "collectives_too_many",
                f"{health.path}: more than {MOST_CALLS:,} calls or waits of communication, "
                f"which nobody has in a trace; they count as communication, and are not told "
                f"apart",
                health.rank,
                health.path,
            )


def _at(found: npt.NDArray[_Any], rows: Int64s, wanted: Int64s) -> npt.NDArray[_Any]:
    """Return what was found of these rows, of all others nothing."""
    result = np.zeros(wanted.size, found.dtype)
    known = wanted != NOTHING
    result[known] = found[np.searchsorted(rows, wanted[known])]
    return result
