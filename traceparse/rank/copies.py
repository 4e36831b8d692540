"""What was copied from where to where, and how much of it nothing hid?

Direction and kind of memory are told by the names of copies and memsets: libkineto's
(``Memcpy HtoD (Pageable -> Device)``), old ROCm's (``CopyHostToDevice``) and Intel's
(``zeCommandListAppendMemoryCopy(M2D)``, where M is the system's memory, which is pageable).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.rank.account import Account
from traceparse.rank.classify import COPY
from traceparse.rank.counted import CopyWork
from traceparse.rank.counts import total_ns
from traceparse.rank.rows import groups
from traceparse.rank.texts import used_texts
from traceparse.rank.works import Work

__all__ = ["Copies", "Way", "way_of"]

MOST_COPIES: Final = 1 << 18  # of a file whose exposure is told; a run has some hundred a step
_SHORT = re.compile(r"^Memcpy ([HDAP])to([HDAP])\b")
_LONG = re.compile(r"Copy(Host|Device|Peer)To(Host|Device|Peer)")
_INTEL = re.compile(r"\(([MHDS])2([MHDS])\)")
_MEMSET = re.compile(r"^(?:hip)?Memset|^Fill(?:Buffer)?\b|MemoryFill")
_SIDES = re.compile(r"\(([A-Za-z]+)(?: -> ([A-Za-z]+))?\)")
# an array is memory of the device, and so is a peer's
_ENDS = {"A": "D", "S": "D", "M": "H"}
_DIRECTIONS = frozenset({"HtoD", "DtoH", "DtoD", "PtoP", "HtoH"})
_MEMORIES = {
    "pageable": "pageable",
    "pinned": "pinned",
    "managed": "unified",
    "managedstatic": "unified",
    "device": "device",
    "devicestatic": "device",
    "array": "device",
    "m": "pageable",
    "h": "pinned",
    "s": "unified",
    "d": "device",
}


class Way(NamedTuple):
    """From where to where, and which memory of the host, or of the device where none is."""

    direction: str | None
    memory: str | None


@lru_cache(maxsize=1024)
def way_of(name: str) -> Way:
    """Say of a copy or memset, by its name, what it did; ``None`` where that is not said."""
    if _MEMSET.search(name):
        return Way("memset", _memory("memset", _sides(name)))
    intel = _INTEL.search(name)
    found = intel or _SHORT.match(name) or _LONG.search(name)
    if found is None:
        return Way(None, None)
    source, target = (_ENDS.get(end[0], end[0]) for end in found.groups())
    direction = f"{source}to{target}"
    if "P" in direction:
        direction = "PtoP"
    sides = [found[1].lower(), found[2].lower()] if intel else _sides(name)
    return Way(direction if direction in _DIRECTIONS else None, _memory(direction, sides))


def _sides(name: str) -> list[str]:
    found = _SIDES.search(name)
    return [side.lower() for side in found.groups() if side] if found else []


def _memory(direction: str, sides: Sequence[str]) -> str | None:
    """Which memory slows a copy: that of the host, if it has a part in it."""
    known = [_MEMORIES.get(side) for side in sides]
    of_host = [memory for memory in known if memory != "device"] if "H" in direction else known
    for memory in ("pageable", "unified", "pinned", "device"):
        if memory in of_host:
            return memory
    # of what is said to be copied on a device, nothing else is said by old writers
    return "device" if direction in ("DtoD", "PtoP") and not known else None


class _Events(NamedTuple):
    """Copies of one device, and the number of each one's way."""

    starts: Int64s
    ends: Int64s
    ways: npt.NDArray[np.int64]


class Copies:
    """Takes device events; adds up copies by their way.

    ``are_too_many`` says that exposure is not told, as nobody can keep as many.
    """

    def __init__(self, num_devices: int) -> None:
        self.are_too_many = False
        self._ways: dict[Way, int] = {}
        self._sums: list[CopyWork] = []
        self._events: list[list[_Events]] = [[] for _ in range(num_devices)]
        self._num = 0

    def add(self, work: Work) -> None:
        """Add the copies of some work."""
        rows = np.flatnonzero(work.kinds == COPY)
        if not rows.size:
            return
        texts, which = used_texts(work.copied["name"])
        ways = np.array([self._number(way_of(text or "")) for text in texts])[which]
        lasts = work.ends[rows] - work.starts[rows]
        moved = work.copied["copied_bytes"]
        is_told = moved.is_valid().to_numpy()
        num_bytes = moved.fill_null(0).to_numpy().astype(np.int64)
        for way, own in groups(ways):
            one = self._sums[way]
            known = one.num_bytes is not None and bool(is_told[own].all())
            self._sums[way] = replace(
                one,
                count=one.count + lasts[own].size,
                time_ns=one.time_ns + total_ns(lasts[own]),
                num_bytes=(one.num_bytes or 0) + total_ns(num_bytes[own]) if known else None,
            )
        self._num += rows.size
        self.are_too_many |= self._num > MOST_COPIES
        if self.are_too_many:
            self._events = [[] for _ in self._events]
            return
        for device, own in groups(work.devices[rows]):
            found = _Events(work.starts[rows][own], work.ends[rows][own], ways[own])
            self._events[device].append(found)

    def _number(self, way: Way) -> int:
        if way not in self._ways:
            self._ways[way] = len(self._ways)
            self._sums.append(CopyWork(*way, count=0, time_ns=0, num_bytes=0, exposed_ns=None))
        return self._ways[way]

    def edges(self, device: int) -> Int64s:
        """Return when copies begin and end: what an account needs to say of each."""
        some = [column for events in self._events[device] for column in events[:2]]
        return np.concatenate([np.empty(0, np.int64), *some])

    def works(self, accounts: Sequence[Account]) -> tuple[CopyWork, ...]:
        """Return what was copied, most time first; accounts have the edges as instants."""
        exposed = [0] * len(self._sums)
        for events, account in zip(self._events, accounts, strict=True):
            for starts, ends, ways in events:
                lone = ends - starts - account.covered(ends) + account.covered(starts)
                for way, own in groups(ways):
                    exposed[way] += total_ns(lone[own])
        found = (
            replace(one, exposed_ns=None if self.are_too_many else lone_ns)
            for one, lone_ns in zip(self._sums, exposed, strict=True)
        )
        return tuple(sorted(found, key=_order))


def _order(one: CopyWork) -> tuple[int, str, str]:
    return -one.time_ns, one.direction or "", one.memory or ""
