"""What a device did as a chain of tasks: what can be run again under other conditions.

A task is one call of a collective, or a run of other work that the host handed to one stream
without anything in between: no other stream's work, no call that makes a stream or the host
wait, no start of a step. So all that waits, or is waited for, does so at the edge of a task,
and a trace has few of them, however many kernels it has.

Inside a task a kernel starts when the one before it is done, or, if that is later, when its
launch arrives. Both are linear in when the task starts, so three numbers keep them: how long
its work takes, when the launch arrived that held up its end most, and what follows from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest import Kept
from traceparse.intervals import EMPTY, Int64s, Intervals, from_spans, merged
from traceparse.ordered import Ordered, Rows
from traceparse.rank.classify import COMM, COMPUTE
from traceparse.rank.idle import are_syncs
from traceparse.rank.link import UNLINKED, Linked
from traceparse.rank.rows import groups, rows_where
from traceparse.rank.times import NEVER, SYNCS, TASKS
from traceparse.rank.works import Work
from traceparse.tables import ArrowTable

__all__ = ["MOST_TASKS", "Tasks"]

MOST_TASKS: Final = 1 << 18  # of a file; a run has some hundred a step
_MOST_MARKS = 1 << 20  # waits and synchronizing calls of a file, times its devices
_MOST_LATENCY_NS = 20_000  # from a launch to its kernel, if nothing holds that up
_WAITS = r"^(?:cuda|cu|hip)StreamWaitEvent"
_EVENT = (
    ("device", "i2"),
    ("launched", "i8"),
    ("order", "i8"),
    ("start", "i8"),
    ("end", "i8"),
    ("row", "i8"),
    ("stream", "u4"),
    ("is_comm", "?"),
    ("is_linked", "?"),
)
_AS_ASKED = ("device", "launched", "order")
_ON_STREAMS = ("device", "stream", "start")

Bools = npt.NDArray[np.bool_]


class _Marks(NamedTuple):
    """Where the host made something wait: calls in order of start; waits have no end."""

    waits: Int64s
    syncs: Intervals


class Tasks:
    """Takes work and launches; makes the tables of each device.

    ``are_too_many`` says that a file has more than could be kept: then there are none.
    """

    def __init__(self, num_devices: int) -> None:
        self.are_too_many = False
        self._events = Ordered(_EVENT, by=_AS_ASKED)
        self._num_linked = 0
        self._latency_ns = np.full(num_devices, _MOST_LATENCY_NS)
        self._marks = _Marks(np.empty(0, np.int64), EMPTY)
        self._num_host_calls = 0

    def add_calls(self, launches: Kept) -> None:
        """Add what of the host's calls makes a stream or the host wait."""
        waits: list[Int64s] = []
        syncs: list[tuple[Int64s, Int64s]] = []
        num = 0
        for part in launches.parts("name", "start_ns", "end_ns"):
            starts, ends = (part[name].to_numpy() for name in ("start_ns", "end_ns"))
            is_wait, is_sync = (
                rows_where(part, "name", are_such) for are_such in (_are_waits, are_syncs)
            )
            num += int(is_wait.sum() + is_sync.sum())
            if num * self._latency_ns.size > _MOST_MARKS:
                self.are_too_many = True
                return
            waits.append(starts[is_wait])
            syncs.append((starts[is_sync], ends[is_sync]))
        if syncs:
            starts, ends = map(np.concatenate, zip(*syncs, strict=True))
            order = np.argsort(starts, kind="stable")
            self._marks = _Marks(
                np.sort(np.concatenate(waits)), Intervals(starts[order], ends[order])
            )

    def add_linked(self, linked: Linked) -> None:
        """Add device events that came from links."""
        events, launched_ns = linked.events, linked.launched_ns
        is_linked = launched_ns != UNLINKED
        single = is_linked & ~linked.is_graph
        took = events["start"][single] - launched_ns[single]
        np.minimum.at(self._latency_ns, events["device"][single], np.maximum(took, 0))
        is_comm = events["kind"] == COMM
        self._num_linked += int(is_linked.sum())
        self._events.add(
            events.size,
            device=events["device"],
            launched=np.where(is_linked, launched_ns, events["start"]),
            # of a graph, what was done before a call began comes before it
            order=np.where(is_comm, events["start"], events["end"]),
            start=events["start"],
            end=events["end"],
            row=events["row"],
            stream=events["stream"],
            is_comm=is_comm,
            is_linked=is_linked,
        )

    def add_unlaunched(self, work: Work) -> None:
        """Add what of some work has no correlation: it begins when it begins."""
        rows = np.flatnonzero(work.keys == 0)
        self._events.add(
            rows.size,
            device=work.devices[rows],
            launched=work.starts[rows],
            order=work.starts[rows],
            start=work.starts[rows],
            end=work.ends[rows],
            row=work.rows[rows],
            stream=work.streams[rows],
            is_comm=work.kinds[rows] == COMM,
        )

    def add_host(self, work: Work) -> None:
        """Add calls that are spans of the host."""
        rows = np.flatnonzero(work.kinds == COMM)
        self._events.add(
            rows.size,
            launched=work.starts[rows],
            order=work.starts[rows],
            start=work.starts[rows],
            end=work.ends[rows],
            row=self._num_host_calls + np.arange(rows.size),
            stream=1 + work.streams[rows],
            is_comm=True,
        )
        self._num_host_calls += rows.size

    def tables(
        self, begins: Sequence[Int64s], host: Ordered | None
    ) -> list[tuple[ArrowTable, ArrowTable]]:
        """Return tasks and synchronizing calls of each device; ``begins`` are starts of steps.

        Tasks are in the order in which the host asked for them. ``host`` is all work of a host
        that has no device, in order of start.
        """
        if host is not None:
            self._add_computed(host, begins[0])
        waits = self._marks.waits
        marks = np.sort(np.concatenate([waits, self._marks.syncs.starts]))
        chains = [
            _Chain(waits, marks, own, int(latency_ns))
            for own, latency_ns in zip(begins, self._latency_ns, strict=True)
        ]
        nothing = [(TASKS.empty_table(), SYNCS.empty_table())] * len(chains)
        if self.are_too_many:
            return nothing
        for rows in self._as_asked().parts():
            for device, own in groups(rows["device"]):
                chains[device].add(rows[own])
            if sum(chain.num for chain in chains) > MOST_TASKS:
                self.are_too_many = True
                return nothing
        syncs = pa.table(list(self._marks.syncs), schema=SYNCS)
        return [(chain.table(), syncs) for chain in chains]

    def _as_asked(self) -> Ordered:
        """Return the events in the order in which the host asked for them.

        What has no launch was launched with what is before it on its stream, or before all.
        """
        if self._num_linked in (0, self._events.num_rows):
            return self._events
        on_streams, found = Ordered(_EVENT, by=_ON_STREAMS), Ordered(_EVENT, by=_AS_ASKED)
        names = [name for name, _ in _EVENT]
        for rows in self._events.parts():
            on_streams.add(rows.size, **{name: rows[name] for name in names})
        before, launched_ns = None, NEVER
        for rows in on_streams.parts():
            columns = {name: rows[name].copy() for name in names}
            launched = np.where(rows["is_linked"], rows["launched"], NEVER)
            stream = np.stack([rows["device"], rows["stream"]], axis=1).astype(np.int64)
            is_new = np.any(stream[1:] != stream[:-1], axis=1)
            edges = [0, *(1 + np.flatnonzero(is_new)).tolist(), rows.size]
            for first, last in pairwise(edges):
                if before == tuple(stream[first]):
                    launched[first] = max(launched[first], launched_ns)
                np.maximum.accumulate(launched[first:last], out=launched[first:last])
                before, launched_ns = tuple(stream[first]), int(launched[last - 1])
            columns["launched"] = launched
            found.add(rows.size, **columns)
        return found

    def _add_computed(self, spans: Ordered, begins: Int64s) -> None:
        """Add what the host computed; it may have waited for what ended while it idled."""
        parts = (rows[rows["kind"] == COMPUTE] for rows in spans.parts())
        sets = merged((rows["start"].copy(), rows["end"].copy()) for rows in parts)
        busy = from_spans(*map(np.concatenate, zip(EMPTY, *sets, strict=True)))
        self.are_too_many |= busy.starts.size > MOST_TASKS
        if self.are_too_many:
            return
        ends = [rows["end"].copy() for rows in self._events.parts()]
        ended = np.unique(np.concatenate([np.empty(0, np.int64), *ends]))
        self._marks = _Marks(ended[~_are_inside(ended, busy)], EMPTY)
        inner = begins[_are_inside(begins, busy)]
        starts, ends_of = np.sort(np.append(busy.starts, inner)), np.append(busy.ends, inner)
        self._events.add(
            starts.size, launched=starts, order=starts, start=starts, end=np.sort(ends_of)
        )


def _are_waits(names: pa.Array) -> pa.Array:
    return pc.match_substring_regex(names, _WAITS)


def _are_inside(instants: Int64s, busy: Intervals) -> Bools:
    """Say of each instant whether it is inside an interval, and not its start or end."""
    at = np.searchsorted(busy.starts, instants, "left") - 1
    found: Bools = (at >= 0) & (np.append(busy.ends, 0)[at] > instants)
    return found


class _Chain:
    """The tasks of one device, made of its events in the order of their launches."""

    def __init__(self, waits: Int64s, marks: Int64s, begins: Int64s, latency_ns: int) -> None:
        self.num = 0
        self._waits, self._marks, self._begins = waits, marks, begins
        self._latency_ns = latency_ns
        self._last: Rows | None = None  # event
        self._made: list[dict[str, npt.NDArray[Any]]] = []  # the last of them may go on

    def add(self, rows: Rows) -> None:
        """Add events that follow those before."""
        before = rows[:1] if self._last is None else self._last
        joined = np.concatenate([before, rows])
        is_new = self._are_new(joined)
        if self._last is None:
            is_new[0] = True
        before_ns = joined["end"][:-1]
        gaps = np.where(is_new, 0, rows["start"] - before_ns)
        arrives = np.where(rows["is_linked"], rows["launched"] + self._latency_ns, NEVER)
        is_late = ~is_new & (gaps > 0) & (arrives > before_ns)
        arrives = np.where(is_late, rows["start"], arrives)
        gaps = np.where(is_late, 0, gaps)
        firsts = np.unique(np.append(0, np.flatnonzero(is_new)))
        found = _gathered(rows, firsts, gaps, np.where(is_new, NEVER, arrives))
        found["ready_ns"] = arrives[firsts]
        found["waits"] = np.searchsorted(self._waits, found["launched_ns"], "right")
        if not is_new[0]:
            _go_on(self._made[-1], found)
            found = {name: column[1:] for name, column in found.items()}
        if found["start_ns"].size:
            self._made.append(found)
            self.num += found["start_ns"].size
        self._last = rows[-1:]

    def _are_new(self, joined: Rows) -> Bools:
        """Say of all but the first event whether it begins a task."""
        marks = np.searchsorted(self._marks, joined["launched"], "right")
        changes = (joined["stream"][1:] != joined["stream"][:-1]) | (marks[1:] != marks[:-1])
        comm = joined["is_comm"][1:] | joined["is_comm"][:-1]
        found: Bools = changes | comm | np.isin(joined["start"][1:], self._begins)
        return found

    def table(self) -> ArrowTable:
        """Return all tasks; ``call`` counts calls in order of start, ties by end."""
        if not self._made:
            return TASKS.empty_table()
        found = {
            name: np.concatenate([one[name] for one in self._made]) for name in self._made[0]
        }
        calls = np.flatnonzero(found["is_comm"])
        order = np.lexsort([found[name][calls] for name in ("row", "end_ns", "start_ns")])
        numbers = np.full(found["is_comm"].size, -1, np.int32)
        numbers[calls[order]] = np.arange(calls.size)
        _, streams = np.unique(found["stream"], return_inverse=True)
        columns: dict[str, npt.NDArray[Any]] = {
            **found,
            "call": numbers,
            "stream": streams.reshape(-1).astype(np.int32),
            "waits": np.diff(found["waits"], prepend=0).astype(np.int32),
        }
        return pa.table([columns[name] for name in TASKS.names], schema=TASKS)


def _gathered(
    rows: Rows, firsts: Int64s, gaps: Int64s, arrives: Int64s
) -> dict[str, npt.NDArray[Any]]:
    """Gather events into tasks that begin at ``firsts``; ``gaps`` are before each of them."""
    lasts = rows["end"] - rows["start"]
    works = lasts + gaps
    sizes = np.diff(np.append(firsts, rows.size))
    done = np.cumsum(works)  # from the first event of all on
    all_done = done[firsts + sizes - 1]
    tails = np.repeat(all_done, sizes) - done + lasts
    # what holds up the end most: the latest of all arrivals with what follows them
    holds = np.where(arrives == NEVER, NEVER, arrives + tails)
    most = np.repeat(np.maximum.reduceat(holds, firsts), sizes)
    place = np.where(holds == most, np.arange(rows.size), rows.size)
    holder = np.minimum.reduceat(place, firsts)
    return {
        # not of the first: kernels that overlap on one stream may end the other way round
        "start_ns": np.minimum.reduceat(rows["start"], firsts),
        "end_ns": np.maximum.reduceat(rows["end"], firsts),
        "stream": rows["stream"][firsts],
        "is_comm": rows["is_comm"][firsts],
        "row": rows["row"][firsts],
        "launched_ns": rows["launched"][firsts],
        "work_ns": np.add.reduceat(works, firsts),
        "gaps_ns": np.add.reduceat(np.maximum(gaps, 0), firsts),
        "arrival_ns": arrives[holder],
        "tail_ns": np.where(arrives[holder] == NEVER, 0, tails[holder]),
    }


def _go_on(made: dict[str, npt.NDArray[Any]], found: dict[str, npt.NDArray[Any]]) -> None:
    """Let the last task that was made go on with the first that was found."""
    more = {name: column[0] for name, column in found.items()}
    made["start_ns"][-1] = min(made["start_ns"][-1], more["start_ns"])
    made["end_ns"][-1] = max(made["end_ns"][-1], more["end_ns"])
    for name in ("work_ns", "gaps_ns"):
        made[name][-1] += more[name]
    if made["arrival_ns"][-1] != NEVER:
        made["tail_ns"][-1] += more["work_ns"]
    if made["arrival_ns"][-1] + made["tail_ns"][-1] < more["arrival_ns"] + more["tail_ns"]:
        made["arrival_ns"][-1], made["tail_ns"][-1] = more["arrival_ns"], more["tail_ns"]
