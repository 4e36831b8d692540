"""Which call on the host launched this device event?

By ``correlation``, and only by it: flows are drawn for calls that launch nothing, and in
old traces ``External id`` is another number.
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
from traceparse.rank.rows import rows_where
from traceparse.tables import ArrowTable

__all__ = ["UNLINKED", "Linked", "Links"]

UNLINKED = np.iinfo(np.int64).min
_NEVER = np.iinfo(np.int64).max

# cudaLaunchKernel, hipExtLaunchKernel, cuLaunchKernelEx, cudaGraphLaunch, cudaMemcpyAsync …,
# but not a function launched onto the host, nor memsets: those of zero bytes run nothing
_LAUNCHES = r"^(?:cuda|cu|hip)\w*(?:Launch|Memcpy)"
_ON_HOST = "HostFunc"
_GRAPHS = r"^(?:cuda|cu|hip)GraphLaunch"

_FIELDS = (
    ("key", "u8"),
    ("start", "i8"),
    ("end", "i8"),
    ("row", "i8"),
    ("ident", "u8"),
    ("thread", "i4"),  # of a call
    ("stream", "u4"),
    ("device", "i2"),
    ("kind", "i1"),
    ("flags", "u1"),
    ("is_event", "?"),
    ("is_launch", "?"),
    ("is_graph", "?"),
)


class _Group(NamedTuple):
    """What is known of a correlation whose rows may go on."""

    key: int
    call_ns: int  # start of its earliest call
    thread: int  # of that
    is_graph: bool  # any of them launches a whole graph
    until_ns: int  # end of the last of its calls
    num_launches: int
    num_events: int


_NOTHING = _Group(0, _NEVER, 0, is_graph=False, until_ns=-1, num_launches=0, num_events=0)


class Linked(NamedTuple):
    """Device events, when each was launched, by which thread, and whether in a graph.

    ``launched_ns`` is the start of the earliest call of the same correlation; ``UNLINKED``
    where the file has none, and then ``threads`` mean nothing. ``until_ns`` is when the last
    of them returned.
    """

    events: Rows
    launched_ns: Int64s
    threads: npt.NDArray[np.int32]
    is_graph: npt.NDArray[np.bool_]
    until_ns: Int64s


class Links:
    """Ties device events to the earliest call of their correlation.

    Calls and events are added in any order; then :meth:`parts` gives the events back. All of a
    correlation is sorted to one place, so that memory does not grow with their number.
    """

    def __init__(self) -> None:
        self.num_unanswered = 0  # launches that left no event; complete after parts()
        self._rows = Ordered(_FIELDS, by=("key", "is_event"))
        self._open = _NOTHING

    def add_calls(
        self,
        keys: npt.NDArray[np.uint64],
        launches: ArrowTable,
        threads: npt.NDArray[np.int32] | int = 0,
    ) -> None:
        """Add rows of ``launches`` by correlation, 0 for none: times and name are looked at.

        ``threads`` has the number of each one's thread.
        """
        known = keys != 0
        self._rows.add(
            int(known.sum()),
            key=keys[known],
            start=launches["start_ns"].to_numpy()[known],
            end=launches["end_ns"].to_numpy()[known],
            thread=threads if isinstance(threads, int) else threads[known],
            is_launch=rows_where(launches, "name", _is_launch)[known],
            is_graph=rows_where(launches, "name", _is_graph)[known],
        )

    def add_events(self, keys: npt.NDArray[np.uint64], **facts: npt.NDArray[Any]) -> None:
        """Add device events by correlation, 0 for none, with what is to come back with them.

        That is any of ``start``, ``end``, ``row``, ``ident``, ``device``, ``stream``, ``kind``
        and ``flags``.
        """
        known = keys != 0
        self._rows.add(
            int(known.sum()),
            key=keys[known],
            is_event=True,
            **{name: column[known] for name, column in facts.items()},
        )

    def parts(self) -> Iterator[Linked]:
        """Yield the events that have a correlation."""
        self.num_unanswered = 0
        self._open = _NOTHING
        for rows in self._rows.parts():
            is_event = rows["is_event"]
            yield Linked(rows[is_event], *(told[is_event] for told in self._told(rows)))
        self._close(*(np.array([number]) for number in self._open[-2:]))

    def _told(self, rows: Rows) -> Iterator[npt.NDArray[Any]]:
        """Yield what calls tell all rows of their correlation, as :class:`Linked` has it."""
        keys, is_event = rows["key"], rows["is_event"]
        firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        sizes = np.diff(np.append(firsts, keys.size))
        called_ns = np.where(is_event, _NEVER, rows["start"])
        call_ns = np.minimum.reduceat(called_ns, firsts)
        is_earliest = called_ns == np.repeat(call_ns, sizes)
        threads = np.maximum.reduceat(np.where(is_earliest, rows["thread"], -1), firsts)
        is_graph = np.logical_or.reduceat(rows["is_graph"], firsts)
        until_ns = np.maximum.reduceat(np.where(is_event, -1, rows["end"]), firsts)
        num_launches = np.add.reduceat(rows["is_launch"], firsts, dtype=np.int64)
        num_events = np.add.reduceat(is_event, firsts, dtype=np.int64)
        if keys[0] == self._open.key:
            # of two at once the last thread, wherever rows are cut
            if (self._open.call_ns, -self._open.thread) < (call_ns[0], -threads[0]):
                call_ns[0], threads[0] = self._open.call_ns, self._open.thread
            is_graph[0] |= self._open.is_graph
            until_ns[0] = max(until_ns[0], self._open.until_ns)
            num_launches[0] += self._open.num_launches
            num_events[0] += self._open.num_events
        else:
            self._close(*(np.array([number]) for number in self._open[-2:]))
        self._close(num_launches[:-1], num_events[:-1])
        last = (call_ns, threads, is_graph, until_ns, num_launches, num_events)
        self._open = _Group(int(keys[-1]), *(column[-1].item() for column in last))
        call_ns[call_ns == _NEVER] = UNLINKED
        return (np.repeat(told, sizes) for told in (call_ns, threads, is_graph, until_ns))

    def _close(self, num_launches: Int64s, num_events: Int64s) -> None:
        """Count what of correlations that are complete is unanswered."""
        self.num_unanswered += int(num_launches[num_events == 0].sum())


def _is_launch(names: pa.Array) -> pa.Array:
    return pc.and_not(
        pc.match_substring_regex(names, _LAUNCHES), pc.match_substring(names, _ON_HOST)
    )


def _is_graph(names: pa.Array) -> pa.Array:
    return pc.match_substring_regex(names, _GRAPHS)
