"""Events of a Chrome trace as lines of JSON, and names of processes and threads.

An encoder writes every event, so that no name from a trace can break out of its string. Times
are whole nanoseconds here, and become microseconds digit by digit, never through a float. When
an event begins is put in last (:func:`timed`): only then is it known what the file begins with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from traceparse.intervals import Int64s

__all__ = [
    "MOST_AROUND",
    "OWN",
    "Event",
    "Names",
    "encoded",
    "in_us",
    "instant",
    "span",
    "timed",
]

OWN = "traceparse"  # the category of what is drawn in: no reader takes it for work
_LONGEST_TS = 17  # 13 digits, a point and three more: a century
MOST_AROUND = len('{"ts":,,\n') + _LONGEST_TS
_MOST_AT_ONCE = 1 << 14  # events that are objects


class Event(msgspec.Struct, omit_defaults=True):
    """One event without its ``ts``; fields are those of the Trace Event Format."""

    ph: str
    name: str
    pid: int
    tid: int = 0
    cat: str = ""
    dur: msgspec.Raw | None = None
    id: int | None = None
    bp: str | None = None
    s: str | None = None
    args: Mapping[str, Any] | None = None


_ENCODER = msgspec.json.Encoder()


def in_us(ns: int) -> bytes:
    """Write nanoseconds as microseconds, exactly: ``12``, ``12.345``."""
    whole, part = divmod(ns, 1000)
    return b"%d.%03d" % (whole, part) if part else b"%d" % whole


def span(
    name: str, category: str, place: tuple[int, int], ns: int, args: Mapping[str, Any] | None
) -> Event:
    """Return a slice of so many ns on a track, which is a process and a thread."""
    pid, tid = place
    return Event("X", name, pid, tid, category, dur=msgspec.Raw(in_us(ns)), args=args)


def instant(name: str, place: tuple[int, int], args: Mapping[str, Any]) -> Event:
    """Return a mark on a track."""
    pid, tid = place
    return Event("i", name, pid, tid, OWN, s="t", args=args)


def encoded(events: Sequence[Event]) -> bytes:
    """Write events, one a line."""
    return _ENCODER.encode_lines(events)


def timed(lines: bytes, starts_ns: Int64s | None, *, base_ns: int, first_ns: int) -> bytes:
    """Put into each line when its event begins, from the base on; a comma after each.

    What has no time of its own gets that of the first event.
    """
    own = lines.split(b"\n")[:-1]
    if starts_ns is None:
        stamps: Iterable[bytes] = [in_us(first_ns - base_ns)] * len(own)
    else:
        stamps = map(in_us, (starts_ns - base_ns).tolist())
    return b"".join(
        b'{"ts":%s,%s,\n' % (stamp, line[1:]) for stamp, line in zip(stamps, own, strict=True)
    )


def at_once(num: int) -> Iterator[slice]:
    """Cut so many rows into as many as may be objects at one time."""
    for first in range(0, num, _MOST_AT_ONCE):
        yield slice(first, first + _MOST_AT_ONCE)


class Track(NamedTuple):
    """Where slices are drawn."""

    pid: int
    tid: int


class Names:
    """Hands out processes and threads, in the order in which they are to be shown.

    No number is given twice, be it to a process or a thread: Perfetto took threads of one
    number for one thread once, whatever their process.
    """

    def __init__(self) -> None:
        self._next = 1
        self._events: list[Event] = []

    def process(self, name: str, labels: str) -> int:
        """Return the number of a new process."""
        pid = self._take()
        for kind, args in (
            ("process_name", {"name": name}),
            ("process_labels", {"labels": labels}),
            ("process_sort_index", {"sort_index": pid}),
        ):
            self._events.append(Event("M", kind, pid, args=args))
        return pid

    def thread(self, pid: int, name: str) -> Track:
        """Return a new thread of a process."""
        tid = self._take()
        for kind, args in (
            ("thread_name", {"name": name}),
            ("thread_sort_index", {"sort_index": tid}),
        ):
            self._events.append(Event("M", kind, pid, tid, args=args))
        return Track(pid, tid)

    def taken(self) -> list[Event]:
        """Return what names were given since this was last asked."""
        events, self._events = self._events, []
        return events

    def _take(self) -> int:
        number, self._next = self._next, self._next + 1
        return number
