"""A trace file as HTA counts it: every event that lasted, in the order of the file.

The tables of :mod:`traceparse.tables` leave out what is no work (synchronization as the device
shows it, annotations drawn on it, most Python calls) and where in the file an event stands. HTA
counts the former and names events by the latter, so its columns are read of the same decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from traceparse.errors import InputError
from traceparse.ingest import Place
from traceparse.ingest.decode import Event
from traceparse.ingest.document import Document
from traceparse.ingest.numbers import UNUSABLE, nanoseconds
from traceparse.ingest.source import Source
from traceparse.ingest.window import BLOCK, Window
from traceparse.intervals import Int64s

__all__ = ["Argument", "Events", "read_events"]

COUNTERS = "cuda_profiler_range"  # the category whose arguments are all counters
_TRACE = "Trace"  # the profiler's own span, which HTA drops
_NULL = b"null"
_NO_COUNTER = -1


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of events: its column, its name in the trace, what it is where absent."""

    column: str
    raw_name: str
    default: Any


@dataclass(frozen=True, slots=True)
class Events:
    """All events of a trace that have a duration and a category, in the order of the file.

    ``index`` is the place of each among ``traceEvents``. ``is_whole_us`` says that every event
    of the file has a time and all are written as whole numbers: HTA rounds the times of others.
    ``header`` holds the other top-level keys.
    """

    header: Mapping[str, Any]
    index: Int64s
    categories: Sequence[str]
    names: Sequence[str]
    pids: Sequence[Any]
    tids: Sequence[Any]
    start_ns: Int64s
    dur_ns: Int64s
    arguments: Mapping[str, Sequence[Any]]
    is_whole_us: bool
    num_events: int


def read_events(path: Place, arguments: Sequence[Argument], *, place: int = 0) -> Events:
    """Read one trace of a file: the first, unless ``place`` says otherwise.

    Raises
    ------
    InputError
        The file cannot be read, or has no such trace.
    """
    with Source(path) as source:
        window = Window(source, BLOCK)
        for _ in range(place):
            document = Document(window)
            for _events in document.batches():
                pass  # another trace of the file
            window.skip_blanks()
        document = Document(window)
        taken = _Taken(arguments)
        for events in document.batches():
            taken.add(events)
    return taken.finish(document)


class _Taken:
    """What is taken of events, a list of them at a time."""

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self._arguments = {argument.column: argument for argument in arguments}
        self._decoder = _decoder(arguments)
        self._num = 0
        self._is_whole_us = True
        self._places: list[Int64s] = []
        self._starts: list[Int64s] = []
        self._lasts: list[Int64s] = []
        self._texts: tuple[list[str], ...] = ([], [])
        self._owners: tuple[list[Any], ...] = ([], [])
        self._values: list[list[Any]] = [[] for _ in arguments]
        self._counted: dict[int, Mapping[str, Any]] = {}

    def add(self, events: Sequence[Event]) -> None:
        first = self._num
        self._num += len(events)
        self._is_whole_us = self._is_whole_us and all(_is_whole(event.ts) for event in events)
        places = [
            place
            for place, event in enumerate(events)
            if event.cat is not None and event.cat != _TRACE and event.dur
        ]
        starts = nanoseconds([events[place].ts for place in places]).values
        lasts = nanoseconds([events[place].dur for place in places]).values
        is_usable = (starts > UNUSABLE) & (lasts > UNUSABLE)
        chosen = [events[place] for place in np.asarray(places, np.int64)[is_usable].tolist()]
        if not chosen:
            return
        self._places.append(first + np.asarray(places, np.int64)[is_usable])
        self._starts.append(starts[is_usable])
        self._lasts.append(lasts[is_usable])
        self._texts[0].extend(str(event.cat) for event in chosen)
        self._texts[1].extend(event.name for event in chosen)
        self._owners[0].extend(event.pid for event in chosen)
        self._owners[1].extend(event.tid for event in chosen)
        self._add_arguments(chosen)

    def _add_arguments(self, chosen: Sequence[Event]) -> None:
        start = len(self._texts[0]) - len(chosen)
        for place, event in enumerate(chosen, start):
            if event.cat == COUNTERS:
                self._counted[place] = _object(event.args)
        found = self._decoder([event.args or _NULL for event in chosen])
        for values, column in zip(self._values, zip(*found, strict=True), strict=True):
            values.extend(column)

    def finish(self, document: Document) -> Events:
        if not self._places:
            raise InputError("the trace has no event with a duration and a category")
        arguments = dict(zip(self._arguments, self._values, strict=True))
        arguments.update(self._counters())
        return Events(
            header=document.header,
            index=np.concatenate(self._places),
            categories=self._texts[0],
            names=self._texts[1],
            pids=self._owners[0],
            tids=self._owners[1],
            start_ns=np.concatenate(self._starts),
            dur_ns=np.concatenate(self._lasts),
            arguments=arguments,
            is_whole_us=self._is_whole_us,
            num_events=self._num + document.undecodable,
        )

    def _counters(self) -> Iterator[tuple[str, list[Any]]]:
        """Give a column for each counter that any range of CUPTI's profiler has."""
        names = dict.fromkeys(name for own in self._counted.values() for name in own)
        for name in names:
            if name not in self._arguments:
                column: list[Any] = [_NO_COUNTER] * len(self._texts[0])
                for place, own in self._counted.items():
                    column[place] = own.get(name, _NO_COUNTER)
                yield name, column


def _is_whole(text: bytes | msgspec.Raw) -> bool:
    """Say whether Python's reader of JSON would make an integer of this."""
    return bool(text) and bytes(text).isdigit()


def _object(text: bytes | msgspec.Raw) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(text or _NULL)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _decoder(
    arguments: Sequence[Argument],
) -> Callable[[Sequence[Any]], list[tuple[Any, ...]]]:
    """Make what reads the texts of arguments into tuples of their values."""
    fields = [(f"a{place}", Any, argument.default) for place, argument in enumerate(arguments)]
    names = {f"a{place}": argument.raw_name for place, argument in enumerate(arguments)}
    kind = msgspec.defstruct("Arguments", fields, rename=names, gc=False)
    decoder: Any = msgspec.json.Decoder(list[kind | None])  # type: ignore[valid-type]
    empty = kind()
    none = msgspec.structs.astuple(empty)
    one = msgspec.json.Decoder(kind)

    def odd(text: bytes) -> tuple[Any, ...]:
        try:
            return msgspec.structs.astuple(one.decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return none

    def decode(texts: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            found = decoder.decode(b"[" + b",".join(texts) + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return [odd(bytes(text)) for text in texts]
        return [msgspec.structs.astuple(own or empty) for own in found]

    return decode
