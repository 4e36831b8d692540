"""The clean trace that every damage starts from, and the words to say what came of it.

A kind of damage is a function from a layout to a :class:`Damaged`: the bytes of its files, the
outcome that is right, and the traces that must still come out. What must come out is given as
events, never as numbers, so that the brute-force oracle of the tests can account for it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import EllipsisType
from typing import Any

from tools.layouts import LAYOUTS, Event, Num, write_layout

__all__ = [
    "ANY",
    "BASE_NS",
    "EVENTS",
    "KINETO",
    "LINED",
    "OBJECTS",
    "REGISTRY",
    "TEXTUAL",
    "Damaged",
    "Expect",
    "Kind",
    "Trace",
    "damaged",
    "end_of",
    "kind",
    "last_end",
    "raw",
    "refused",
    "write",
]

BASE_NS = 217 * 7_889_238 * 10**9

OBJECTS = tuple(name for name in LAYOUTS if name not in ("list", "leg"))
EVENTS = (*OBJECTS, "list")
KINETO = ("k-2021", "k-old", "k-new")
LINED = (*KINETO, "py", "jd1", "jd2", "jd4", "jd8")  # a line break between events
TEXTUAL = (*KINETO, "py")  # writers that put their text together by hand
ANY = ("any",)  # damage that has no layout: the file is something else

_PRIVATE = re.compile(rb"\xee([\x80-\x83])([\x80-\xbf])")  # U+E000 to U+E0FF


def raw(text: str) -> Num:
    r"""Return text that goes into the file as it is, quotes and all.

    The characters U+E000 to U+E0FF stand for the bytes 0x00 to 0xFF.
    """
    return Num(text)


@dataclass(frozen=True, slots=True)
class Trace:
    """Events by handle, and the keys of the header; ``after`` names those behind the events."""

    events: Mapping[str, Event]
    header: Mapping[str, Any] = field(default_factory=dict)
    after: frozenset[str] = frozenset({"traceName"})

    def edit(self, handle: str, **fields: object) -> Trace:
        """Return the trace with fields of one event replaced; those given as ``...`` go."""
        merged = {**self.events[handle], **fields}
        event = {key: value for key, value in merged.items() if value is not ...}
        return replace(self, events={**self.events, handle: event})

    def args(self, handle: str, **args: object) -> Trace:
        """Return the trace with arguments of one event set; ``_`` is a blank, ``...`` gone."""
        named = {key.replace("_", " "): value for key, value in args.items()}
        merged = {**self.events[handle].get("args", {}), **named}
        left = {key: value for key, value in merged.items() if value is not ...}
        return self.edit(handle, args=left)

    def without(self, *handles: str) -> Trace:
        """Return the trace less some of its events."""
        left = {key: event for key, event in self.events.items() if key not in handles}
        return replace(self, events=left)

    def add(self, **events: Event) -> Trace:
        """Return the trace with more events, before those that end it."""
        last = {key: self.events[key] for key in _ENDING if key in self.events}
        first = {key: event for key, event in self.events.items() if key not in last}
        return replace(self, events={**first, **events, **last})

    def head(self, **header: object) -> Trace:
        """Return the trace with keys of its header set; those given as ``...`` go."""
        merged = {**self.header, **header}
        return replace(self, header={k: v for k, v in merged.items() if v is not ...})

    def behind(self, *keys: str) -> Trace:
        """Return the trace with some header keys written after its events."""
        return replace(self, after=self.after | set(keys))

    def first(self, count: int) -> Trace:
        """Return the trace as it is when it ends after so many events, and with them."""
        kept = {key: value for key, value in self.header.items() if key not in self.after}
        return replace(self, events=dict(list(self.events.items())[:count]), header=kept)


_ENDING = ("span", "begin", "end")


def write(trace: Trace, layout: str) -> bytes:
    """Return the bytes of a trace in a layout; a list has no place for the header."""
    text = write_layout(list(trace.events.values()), trace.header, layout, trailing=trace.after)
    return _PRIVATE.sub(
        lambda found: bytes([(found[1][0] & 3) << 6 | (found[2][0] & 0x3F)]), text
    )


def end_of(trace: Trace, layout: str, count: int) -> int:
    """Return where so many events end in the file of a trace: bytes from its beginning."""
    whole = write(trace, layout)
    events = dict(list(trace.events.items())[:count])
    shorter = write(replace(trace, events=events), layout)
    # the two differ first in the comma to the next event, against the end of the list
    same = bisect_left(range(len(shorter)), 1, key=lambda n: whole[: n + 1] != shorter[: n + 1])
    return whole.rindex(b"}", 0, same) + 1


def last_end(data: bytes) -> int:
    """Return where the last event of a file ends."""
    return data.rindex(b"}", 0, data.rindex(b"]")) + 1


@dataclass(frozen=True, slots=True)
class Expect:
    """The outcome that is right.

    ``notes`` are the codes that are there besides those of the clean trace, ``gone`` those of
    the clean trace that are not. ``says`` has to stand in some note, or in the error if
    ``refused``. ``strict`` says whether ``--strict`` refuses; ``None`` leaves that open.
    """

    repaired: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    truncated: bool = False
    notes: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    refused: bool = False
    says: tuple[str, ...] = ()
    missing_ranks: tuple[int, ...] = ()
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class Damaged:
    """Files, what has to be said about them, and the traces that they still hold.

    ``target`` is what to give to traceparse: a name among the files, or ``"."`` for all.
    """

    files: Mapping[str, bytes]
    expect: Expect
    kept: tuple[Trace, ...] = ()
    target: str = "."

    def place(self, folder: Path) -> Path:
        """Write the files below a folder; return the path to give to traceparse."""
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return folder / self.target


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of damage, numbered as in section 5 of the format page."""

    number: int
    title: str
    layouts: tuple[str, ...]
    build: Callable[[str], Damaged]

    @property
    def name(self) -> str:
        """A short name, unique among all kinds."""
        return self.build.__name__.replace("_", "-").strip("-")

    def make(self, folder: Path, layout: str) -> Path:
        """Write the damaged files below a folder; return the path to give to traceparse."""
        return self.build(layout).place(folder)

    def expect(self, layout: str) -> Expect:
        """Return the outcome that is right for a layout."""
        return self.build(layout).expect

    def kept(self, layout: str) -> tuple[Trace, ...]:
        """Return the traces that must still come out."""
        return self.build(layout).kept


REGISTRY: list[Kind] = []


def kind(
    number: int, title: str, layouts: Sequence[str] = EVENTS
) -> Callable[[Callable[[str], Damaged]], Callable[[str], Damaged]]:
    """Register a kind of damage under its number."""

    def register(build: Callable[[str], Damaged]) -> Callable[[str], Damaged]:
        REGISTRY.append(Kind(number, title, tuple(layouts), build))
        return build

    return register


# notes that --strict does not accept: what was not whole, and doubts that move numbers
_STRICT = frozenset(
    {
        *("duplicate_rank", "events_lost", "events_repaired", "file_unusable"),
        *("header_damaged", "missing_ranks", "truncated", "world_size_disagrees"),
        *("repeated_capture", "device_events_missing", "device_events_outside_window"),
        *("events_unfinished", "kernels_overlap_on_stream", "launches_without_device_event"),
        *("names_unknown", "profiler_overhead", "several_processes", "steps_missing"),
        *("steps_overlap", "steps_repeated"),
    }
)


def damaged(
    data: bytes | Mapping[str, bytes],
    kept: Trace | Sequence[Trace],
    *,
    repaired: Mapping[str, int] | None = None,
    lost: Mapping[str, int] | None = None,
    truncated: bool = False,
    notes: Sequence[str] = (),
    gone: Sequence[str] = (),
    says: Sequence[str] = (),
    missing_ranks: Sequence[int] = (),
    strict: bool | EllipsisType | None = ...,
) -> Damaged:
    """Describe what can still be used; the notes on repairs and losses need not be named."""
    said = set(notes)
    said |= {"events_repaired"} if repaired else set()
    said |= {"events_lost"} if lost else set()
    said |= {"truncated"} if truncated else set()
    expect = Expect(
        repaired=dict(repaired or {}),
        lost=dict(lost or {}),
        truncated=truncated,
        notes=frozenset(said),
        gone=frozenset(gone),
        says=tuple(says),
        missing_ranks=tuple(missing_ranks),
        strict=bool(said & _STRICT) if isinstance(strict, EllipsisType) else strict,
    )
    one = isinstance(data, bytes)
    return Damaged(
        {"trace.json": data} if isinstance(data, bytes) else data,
        expect,
        (kept,) if isinstance(kept, Trace) else tuple(kept),
        "trace.json" if one else ".",
    )


def refused(data: bytes | Mapping[str, bytes], *says: str, name: str = "trace.json") -> Damaged:
    """Describe what has to be refused, with words that the error must have."""
    expect = Expect(refused=True, says=says, strict=True)
    if isinstance(data, bytes):
        return Damaged({name: data}, expect, target=name)
    return Damaged(data, expect)
