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

from traceparse.ingest import Kept
from traceparse.intervals import Int64s
from traceparse.ordered import Ordered, Rows
from traceparse.rank.rows import numbers_of, rows_where
from traceparse.tables import ArrowTable

__all__ = ["UNLINKED", "Links", "launches_of"]

UNLINKED = np.iinfo(np.int64).min
_NEVER = np.iinfo(np.int64).max

# cudaLaunchKernel, hipExtLaunchKernel, cuLaunchKernelEx, cudaGraphLaunch, cudaMemcpyAsync …,
# but not a function launched onto the host, nor memsets: those of zero bytes run nothing
_LAUNCHES = r"^(?:cuda|cu|hip)\w*(?:Launch|Memcpy)"
_ON_HOST = "HostFunc"

_FIELDS = (
    ("key", "u8"),
    ("start", "i8"),
    ("end", "i8"),
    ("row", "i8"),
    ("device", "i2"),
    ("kind", "i1"),
    ("is_event", "?"),
    ("is_launch", "?"),
)


class _Group(NamedTuple):
    """What is known of a correlation whose rows may go on."""

    key: int
    call_ns: int  # start of its earliest call
    num_launches: int
    num_events: int


_NOTHING = _Group(0, _NEVER, 0, 0)


class Links:
    """Ties device events to the earliest call of their correlation.

    Calls and events are added in any order; then :meth:`parts` gives the events back. All of a
    correlation is sorted to one place, so that memory does not grow with their number.
    """

    def __init__(self) -> None:
        self.num_unanswered = 0  # launches that left no event; complete after parts()
        self._rows = Ordered(_FIELDS, by=("key", "is_event"))
        self._open = _NOTHING

    def add_calls(self, launches: ArrowTable) -> None:
        """Add rows of ``launches``: correlation, start and name are looked at."""
        keys = numbers_of(launches, "correlation")
        known = keys != 0
        self._rows.add(
            int(known.sum()),
            key=keys[known],
            start=launches["start_ns"].to_numpy()[known],
            is_launch=rows_where(launches, "name", _is_launch)[known],
        )

    def add_events(self, keys: npt.NDArray[np.uint64], **facts: npt.NDArray[Any]) -> None:
        """Add device events by correlation, 0 for none, with what is to come back with them.

        That is any of ``start``, ``end``, ``row``, ``device`` and ``kind``.
        """
        known = keys != 0
        self._rows.add(
            int(known.sum()),
            key=keys[known],
            is_event=True,
            **{name: column[known] for name, column in facts.items()},
        )

    def parts(self) -> Iterator[tuple[Rows, Int64s]]:
        """Yield the events that have a correlation, and when each was launched.

        That is the start of its earliest call, in ns; ``UNLINKED`` where the file has none.
        """
        self.num_unanswered = 0
        self._open = _NOTHING
        for rows in self._rows.parts():
            launched_ns = self._launched(rows)
            is_event = rows["is_event"]
            yield rows[is_event], launched_ns[is_event]
        self._close(*(np.array([number]) for number in self._open[2:]))

    def _launched(self, rows: Rows) -> Int64s:
        keys, is_event = rows["key"], rows["is_event"]
        firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        call_ns = np.minimum.reduceat(np.where(is_event, _NEVER, rows["start"]), firsts)
        num_launches = np.add.reduceat(rows["is_launch"], firsts, dtype=np.int64)
        num_events = np.add.reduceat(is_event, firsts, dtype=np.int64)
        if keys[0] == self._open.key:
            call_ns[0] = min(call_ns[0], self._open.call_ns)
            num_launches[0] += self._open.num_launches
            num_events[0] += self._open.num_events
        else:
            self._close(*(np.array([number]) for number in self._open[2:]))
        self._close(num_launches[:-1], num_events[:-1])
        self._open = _Group(
            int(keys[-1]), int(call_ns[-1]), int(num_launches[-1]), int(num_events[-1])
        )
        call_ns[call_ns == _NEVER] = UNLINKED
        return np.repeat(call_ns, np.diff(np.append(firsts, keys.size)))

    def _close(self, num_launches: Int64s, num_events: Int64s) -> None:
        """Count what of correlations that are complete is unanswered."""
        self.num_unanswered += int(num_launches[num_events == 0].sum())


def launches_of(device_events: Kept, launches: Kept) -> Int64s:
    """When was each row of ``device_events`` launched? As :meth:`Links.parts` says."""
    links = Links()
    for part in launches.parts("correlation", "start_ns", "name"):
        links.add_calls(part)
    num = 0
    for part in device_events.parts("correlation"):
        links.add_events(
            numbers_of(part, "correlation"), row=np.arange(num, num + part.num_rows)
        )
        num += part.num_rows
    found = np.full(num, UNLINKED)
    for rows, launched_ns in links.parts():
        found[rows["row"]] = launched_ns
    return found


def _is_launch(names: pa.Array) -> pa.Array:
    return pc.and_not(
        pc.match_substring_regex(names, _LAUNCHES), pc.match_substring(names, _ON_HOST)
    )
