"""The native engine: events that are valid JSON go straight from text to columns.

The scanner (``_scanner.c``) reads as long as every event is beyond doubt, and stops in front of
the first that is not: that one is the Python engine's. So the two never disagree, and where no
scanner was built the Python engine does all of it.
"""

from __future__ import annotations

import os
import secrets
from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.errors import UsageError
from traceparse.ingest.calls import call_args
from traceparse.ingest.collect import Collector, device_of, label_of
from traceparse.ingest.decode import copied_bytes
from traceparse.ingest.lookup import Lookup
from traceparse.ingest.numbers import UNUSABLE
from traceparse.ingest.routes import (
    CALL_MARKS,
    COPIES,
    Route,
    depends_on_event,
    route,
    route_of_event,
)
from traceparse.ingest.scanned import Rows
from traceparse.ingest.store import Int32s
from traceparse.intervals import Int64s

if TYPE_CHECKING:
    from traceparse.ingest._scanner import Scanner

__all__ = ["CLOSED", "DOUBTFUL", "MORE", "NativeEngine", "Rows", "Taken", "engine", "is_built"]

MORE, CLOSED, DOUBTFUL, _FULL = range(4)  # why a scan ended
_HAS_STREAM, _HAS_CORRELATION, _HAS_EXTERNAL, _HAS_FRACTION, _UNFINISHED = 1, 2, 4, 8, 16
_IS_CALL, _HAS_SEQUENCE, _HAS_FORWARD = 32, 64, 128
_CAPACITY: Final = 1 << 15  # rows that are collected at a time
_MOST_TEXTS: Final = 1 << 16
_MOST_BYTES: Final = 1 << 24


@cache
def _scanner_type() -> type[Scanner] | None:
    """Return the scanner, if there was a compiler when this was installed."""
    try:
        from traceparse.ingest._scanner import Scanner  # noqa: PLC0415 - it may not be there
    except ImportError:
        return None
    return Scanner


def is_built() -> bool:
    """Say whether there was a compiler for the native engine."""
    return _scanner_type() is not None


def engine() -> str:
    """Return which engine reads: ``native``, or ``msgspec`` where no scanner was built.

    ``TRACEPARSE_ENGINE`` chooses.

    Raises
    ------
    UsageError
        It names no engine, or one that is not there.
    """
    wanted = os.environ.get("TRACEPARSE_ENGINE") or ("native" if is_built() else "msgspec")
    if wanted not in ("native", "msgspec"):
        raise UsageError(f"TRACEPARSE_ENGINE={wanted}: no such engine; use native or msgspec")
    if wanted == "native" and not is_built():
        raise UsageError(
            "TRACEPARSE_ENGINE=native: it was not built, for want of a C compiler; install "
            "one and traceparse again, or use msgspec"
        )
    return wanted


class Taken(NamedTuple):
    """How far a text was read: up to ``at``; ``last`` is where the last event taken begins."""

    status: int
    at: int
    last: int


class NativeEngine:
    """Takes events off texts, into the collector of their file."""

    def __init__(self, collector: Collector, *, with_counters: bool = False) -> None:
        self._collector = collector
        self._with_counters = with_counters
        self._rows = Rows.empty(_CAPACITY)
        scanner = _scanner_type()
        assert scanner is not None  # as engine() has found
        self._scanner = scanner(
            self._rows, _CAPACITY, _MOST_TEXTS, _MOST_BYTES, secrets.randbits(64)
        )
        self._num_rows = 0
        self._calls: dict[int, dict[str, str]] = {}  # arguments of collectives, by row
        self._copied = np.full(_CAPACITY, -1)  # bytes of copies, by row
        self._values: list[object] = []  # of the scanner's texts
        self._raws: list[object] = []  # its raw texts, as they are
        self._ways: list[Route] = []  # of its kinds
        self._epoch = collector.store.epoch
        self._columns: dict[tuple[str, str], Lookup] = {}  # ids in the store, by column
        self._moves: dict[Route, Lookup] = {}  # of ways that a name may change
        self._call_marks = Lookup(
            _MOST_TEXTS,
            lambda names: [str(name).startswith(CALL_MARKS) for name in names],
            none=0,
        )
        self._last_name = ""

    def take(self, text: bytes) -> Taken:
        """Take events off the front of a text that begins between two of them.

        If it is ``CLOSED``, the last one is not handed on before :meth:`flush`: whether the
        bracket behind it closes the list, this does not know.
        """
        at = last = 0
        cleared_at = -1
        while True:
            before = self._num_rows
            status, self._num_rows, at, last = self._scanner.scan(text, at, before)
            self._read_calls(text, slice(before, self._num_rows))
            self._read_copies(text, slice(before, self._num_rows))
            if status != _FULL:
                break
            if self._num_rows < _CAPACITY and at == cleared_at:
                status = DOUBTFUL  # an event that has no room anywhere
                break
            if self._num_rows < _CAPACITY:
                cleared_at = at
                self.flush(text)
                self._forget_texts()
            else:
                self.flush(text)
        if self._with_counters and status != CLOSED:
            self.flush(text)
        return Taken(status, at, last)

    def _read_calls(self, text: bytes, rows: slice) -> None:
        """Read the arguments of collectives while their text is here."""
        calls = rows.start + np.flatnonzero(self._rows.flags[rows] & _IS_CALL)
        for row, (start, end) in zip(
            calls.tolist(), self._rows.args[calls].tolist(), strict=True
        ):
            self._calls[row] = call_args(text[start:end])

    def _read_copies(self, text: bytes, rows: slice) -> None:
        """Read how much copies move while their text is here."""
        self._learn()
        kinds = self._rows.kinds[rows]
        own = [kind for kind, way in enumerate(self._ways) if way.label in COPIES]
        copies = rows.start + np.flatnonzero(np.isin(kinds, own))
        if copies.size:
            places = self._rows.args[copies].tolist()
            found = copied_bytes([text[start:end] for start, end in places])
            self._copied[copies] = [-1 if num is None else num for num in found]

    def give_back(self) -> None:
        """Forget the event that was taken last."""
        self._num_rows -= 1
        self._calls.pop(self._num_rows, None)
        self._copied[self._num_rows] = -1

    @property
    def last_name(self) -> str:
        """The name of the event that was taken last."""
        if self._num_rows:
            self._learn()
            return str(self._values[self._rows.names[self._num_rows - 1]])
        return self._last_name

    def flush(self, text: bytes = b"") -> None:
        """Hand on what was taken; ``text`` is what the arguments of counters are in."""
        if not self._num_rows:
            return
        self._last_name = self.last_name
        rows = self._rows.first(self._num_rows)
        self._num_rows = 0
        self._collector.events += rows.kinds.size
        self._make_room()
        for table, order, categories in self._collector.by_table(self._by_way(rows)):
            if table == "counters":
                self._add_counters(rows, order, text)
            else:
                self._add_spans(table, rows, order, categories)
        self._calls.clear()
        self._copied.fill(-1)

    def _make_room(self) -> None:
        store = self._collector.store
        store.make_room()
        if self._epoch != store.epoch:
            self._epoch = store.epoch
            for lookup in self._columns.values():
                lookup.forget()

    def _learn(self) -> None:
        """Decode the texts that are new, and find the ways of the kinds that are."""
        texts = self._scanner.texts(len(self._values))
        self._values += msgspec.json.decode(b"[" + b",".join(texts) + b"]")
        self._raws += [raw.decode() for raw in self._scanner.raws(len(self._raws))]
        for phase, category in self._scanner.kinds(len(self._ways)):
            name = None if category < 0 else self._values[category]
            self._ways.append(route(self._values[phase], name))

    def _forget_texts(self) -> None:
        self._scanner.clear()
        self._values.clear()
        self._raws.clear()
        self._ways.clear()
        for lookup in (*self._columns.values(), *self._moves.values(), self._call_marks):
            lookup.forget()

    def _by_way(self, rows: Rows) -> dict[Route, Int64s]:
        found: dict[Route, list[Int64s]] = defaultdict(list)
        for kind in np.flatnonzero(np.bincount(rows.kinds)).tolist():
            way, places = self._ways[kind], np.flatnonzero(rows.kinds == kind)
            if depends_on_event(way):
                is_moved = self._move(way).of(rows.names[places], self._values) == 1
                if is_moved.any():
                    name = str(self._values[rows.names[places[is_moved][0]]])
                    found[route_of_event(way, name)].append(places[is_moved])
                    places = places[~is_moved]
            found[way].append(places)
        return {way: np.concatenate(groups) for way, groups in found.items()}

    def _move(self, way: Route) -> Lookup:
        """Return what says 1 of names of events that go another way."""
        if way not in self._moves:
            self._moves[way] = Lookup(
                _MOST_TEXTS,
                lambda names: [route_of_event(way, str(name)) != way for name in names],
                none=0,
            )
        return self._moves[way]

    def _add_spans(self, table: str, rows: Rows, order: Int64s, categories: Int32s) -> None:
        """Add the rows at some places to a table, column by column."""
        collector, put = self._collector, partial(self._collector.store.append, table)
        ids = partial(self._ids, table)
        flags = rows.flags[order]
        has_fraction = bool((flags & _HAS_FRACTION).any())
        usable = collector.add_times(
            table, rows.starts[order], rows.lasts[order], whole_us=not has_fraction
        )
        if not usable.any():
            return
        if not usable.all():
            order, flags, categories = order[usable], flags[usable], categories[usable]
        put(name=ids("name", rows.names[order]), category=categories)
        if table != "device_events":
            put(
                pid=ids("pid", rows.pids[order], label_of),
                tid=ids("tid", rows.tids[order], label_of),
            )
        if table == "python_functions":
            return
        collector.unfinished += int(np.count_nonzero(flags & _UNFINISHED))
        if table == "annotations":
            self._add_inputs_of_calls(rows, order)
            return
        calls = np.flatnonzero(flags & _IS_CALL).tolist()
        collector.add_calls(
            table,
            [
                (place, self._calls[row])
                for place, row in zip(calls, order[calls].tolist(), strict=True)
            ],
            num_rows=order.size,
        )
        put(external_id=_ids(rows.externals[order], flags & _HAS_EXTERNAL != 0))
        if table == "ops":
            self._add_inputs(rows, order, flags)
            return
        put(correlation=_ids(rows.correlations[order], flags & _HAS_CORRELATION != 0))
        if table == "device_events":
            devices = rows.devices[order]
            devices = np.where(devices < 0, rows.pids[order], devices)
            put(
                stream=_numbers(rows.streams[order], flags & _HAS_STREAM != 0),
                copied_bytes=self._copied_bytes(order),
                collective=ids("collective", rows.collectives[order]),
                device=self._devices(table, devices),
            )

    def _copied_bytes(self, order: Int64s) -> pa.Array:
        copied = self._copied[order]
        return _numbers(copied.astype(np.uint64), copied >= 0)

    def _add_inputs_of_calls(self, rows: Rows, order: Int64s) -> None:
        """Add what collectives were given, of annotations: all that tells it of gloo's."""
        names = rows.names[order]
        is_call = self._call_marks.of(names, self._values) == 1
        raws = partial(self._ids, "annotations", values=self._raws)
        self._collector.store.append(
            "annotations",
            input_dims=raws("input_dims", np.where(is_call, rows.dims[order], -1)),
            input_types=raws("input_types", np.where(is_call, rows.types[order], -1)),
        )

    def _add_inputs(self, rows: Rows, order: Int64s, flags: npt.NDArray[np.uint8]) -> None:
        """Add what operators were given, and what pairs backward with forward."""
        raws = partial(self._ids, "ops", values=self._raws)
        self._collector.store.append(
            "ops",
            input_dims=raws("input_dims", rows.dims[order]),
            input_types=raws("input_types", rows.types[order]),
            concrete_inputs=raws("concrete_inputs", rows.concretes[order]),
            sequence_number=_numbers(rows.sequences[order], flags & _HAS_SEQUENCE != 0),
            forward_thread=_numbers(rows.forwards[order], flags & _HAS_FORWARD != 0),
        )

    def _ids(
        self,
        table: str,
        column: str,
        ids: Int32s,
        text_of: Callable[[object], str | None] = str,
        *,
        values: list[object] | None = None,
    ) -> Int32s:
        """Return what the scanner's texts are in a column of the store, for ids of them.

        ``values`` are what the ids count, if that is not the decoded texts.
        """
        if (table, column) not in self._columns:
            store = self._collector.store
            self._columns[table, column] = Lookup(
                _MOST_TEXTS,
                lambda values: store.ids(table, column, map(text_of, values)),
                none=-1,
            )
        return self._columns[table, column].of(ids, self._values if values is None else values)

    def _devices(self, table: str, ids: Int32s) -> Int32s:
        found = self._ids(table, "device", ids, device_of)
        nowhere = found < 0
        if nowhere.any():
            found[nowhere] = self._collector.store.ids(table, "device", [device_of(None)])[0]
        return found

    def _add_counters(self, rows: Rows, order: Int64s, text: bytes) -> None:
        good = order[rows.starts[order] > UNUSABLE]
        if good.size < order.size:
            self._collector.skipped["time_missing"] += order.size - good.size
        places = rows.args[good].tolist()
        store = self._collector.store
        store.append(
            "counters",
            start_ns=rows.starts[good],
            name=self._ids("counters", "name", rows.names[good]),
            pid=self._ids("counters", "pid", rows.pids[good], label_of),
        )
        store.append_texts(
            "counters", values=(text[start:end].decode() for start, end in places)
        )


def _numbers(values: npt.NDArray[np.uint64], is_there: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=~is_there)


def _ids(values: npt.NDArray[np.uint64], is_there: npt.NDArray[np.bool_]) -> pa.Array:
    """Make a column of ids; 0 means none."""
    return _numbers(values, is_there & (values != 0))
