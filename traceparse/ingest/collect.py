"""Decoded events to the Arrow tables of one file.

Each kind of event goes to one table or is counted by the reason why it goes to none, so that
``events == sum of rows + sum of skipped``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from types import NoneType
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest.calls import call_args
from traceparse.ingest.decode import NO_ARGS, Args, Event, decode_args, kept_text, num_bytes
from traceparse.ingest.kept import Kept
from traceparse.ingest.numbers import LIMIT, UNUSABLE, nanoseconds, unsigned
from traceparse.ingest.routes import (
    CALL_MARKS,
    COPIES,
    EXTRAS,
    LEGACY,
    SKIP,
    Route,
    depends_on_event,
    route,
    route_of_event,
)
from traceparse.ingest.store import Int32s, Store
from traceparse.intervals import Int64s

__all__ = ["Collector", "device_of", "label_of"]

_SPANS = ("device_events", "launches", "ops", "annotations", "python_functions")
_LONGEST_LABEL = 256


class Collector:
    """Takes events, a list at a time, and makes the tables of their file at the end."""

    def __init__(self, extras: frozenset[str] = frozenset(), *, on_disk: bool = False) -> None:
        self.skipped: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self.unfinished = 0
        self.events = 0
        self.rows = 0
        self.first_ns = 0
        self.whole_us = True
        self.store = Store(on_disk=on_disk)
        self._num_rows: Counter[str] = Counter()  # by table that has calls of collectives
        self._extras = extras

    def is_wanted(self, way: Route) -> bool:
        """Say whether any table takes what goes this way."""
        return way.table != SKIP and (way.table not in EXTRAS or way.table in self._extras)

    def add(self, events: list[Event]) -> None:
        """Sort events into their tables."""
        self.events += len(events)
        self.store.make_room()
        places: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        for place, event in enumerate(events):
            places[event.ph, event.cat].append(place)
        # a file may have any number of categories, but there are few ways to go
        ways: dict[Route, list[int]] = defaultdict(list)
        for key, group in places.items():
            for way, own in self._ways(route(*key), events, group):
                ways[way].extend(own)
        for table, order, categories in self.by_table(ways):
            chosen = [events[place] for place in order.tolist()]
            if table == "counters":
                self._add_counters(chosen)
            else:
                self._add_spans(table, chosen, categories)

    def by_table(
        self, ways: Mapping[Route, Sequence[int] | Int64s]
    ) -> Iterator[tuple[str, Int64s, Int32s]]:
        """Sort places of events, given by way, into tables: in order, with their categories.

        What no table takes is counted.
        """
        tables: dict[str, list[Route]] = defaultdict(list)
        for way, places in ways.items():
            if self.is_wanted(way):
                tables[way.table].append(way)
            else:
                self.skipped[way.label] += len(places)
        for table, own in tables.items():
            order = np.concatenate([np.asarray(ways[way], np.int64) for way in own])
            labels = self.store.ids(table, "category", (way.label for way in own))
            categories = np.repeat(labels, [len(ways[way]) for way in own])
            if np.any(order[1:] < order[:-1]):
                in_order = np.argsort(order, kind="stable")
                order, categories = order[in_order], categories[in_order]
            yield table, order, categories

    def _ways(
        self, way: Route, events: list[Event], group: list[int]
    ) -> Iterable[tuple[Route, list[int]]]:
        """Part events of which some go another way, for their name or process."""
        if not depends_on_event(way):
            return [(way, group)]
        parted: dict[Route, list[int]] = defaultdict(list)
        for place in group:
            event = events[place]
            own = route_of_event(way, event.name, event.pid)
            if way.table == LEGACY and own.table == "device_events":
                event.args = msgspec.Raw(msgspec.json.encode({"device": event.tid}))
            parted[own].append(place)
        return parted.items()

    def _add_spans(self, table: str, group: list[Event], categories: Int32s) -> None:
        starts = nanoseconds([event.ts for event in group])
        lasts = nanoseconds([event.dur for event in group])
        usable = self.add_times(
            table, starts.values, lasts.values, whole_us=starts.whole_us and lasts.whole_us
        )
        if not usable.any():
            return
        if not usable.all():
            group = list(compress(group, usable))
        self.store.append(table, category=categories[usable])
        self.store.append_texts(table, name=(event.name for event in group))
        self._add_args(table, group)

    def add_times(
        self, table: str, starts: Int64s, lasts: Int64s, *, whole_us: bool
    ) -> npt.NDArray[np.bool_]:
        """Add the times of some events to a table; say which can be right, and so are rows."""
        usable = self._usable(starts, lasts)
        if usable.any():
            start_ns = starts[usable]
            self.whole_us = self.whole_us and whole_us
            self.first_ns = self.first_ns or int(start_ns[0])
            self.rows += start_ns.size
            self.store.append(table, start_ns=start_ns, end_ns=start_ns + lasts[usable])
        return usable

    def _usable(self, starts: Int64s, lasts: Int64s) -> npt.NDArray[np.bool_]:
        """Say which times can be right; count the others, each under its first reason."""
        usable = np.ones(starts.size, np.bool_)
        for reason, wrong in (
            ("time_missing", starts <= UNUSABLE),
            ("time_negative", starts < 0),
            ("time_zero", starts == 0),
            ("duration_missing", lasts <= UNUSABLE),
            ("duration_negative", lasts < 0),
            ("time_too_large", lasts >= LIMIT - np.maximum(starts, 0)),
        ):
            hit = usable & wrong
            if hit.any():
                self.skipped[reason] += int(hit.sum())
                usable &= ~wrong
        return usable

    def _add_args(self, table: str, group: list[Event]) -> None:
        put = partial(self.store.append, table)
        put_texts = partial(self.store.append_texts, table)
        if table != "device_events":
            put_texts(
                pid=(label_of(event.pid) for event in group),
                tid=(label_of(event.tid) for event in group),
            )
        if table == "python_functions":
            return
        args, repaired = decode_args(group)
        self.repaired.update(repaired)
        self.unfinished += sum(a.finished is False for a in args)
        if table == "annotations":
            self._add_inputs_of_calls(group, args)
            return
        self.add_calls(
            table,
            [
                (place, call_args(bytes(event.args)))
                for place, (event, a) in enumerate(zip(group, args, strict=True))
                if a.is_call
            ],
            num_rows=len(group),
        )
        external = [a.external_id_old if a.external_id is None else a.external_id for a in args]
        put(external_id=_numbers(external, zero=False))
        if table == "ops":
            self._add_inputs(args)
            return
        put(correlation=_numbers([a.correlation for a in args], zero=False))
        if table == "device_events":
            put(
                stream=_numbers([a.stream for a in args]),
                copied_bytes=_numbers(
                    [
                        num_bytes(a.copied) if _is_copy(event.cat) else None
                        for event, a in zip(group, args, strict=True)
                    ]
                ),
            )
            put_texts(
                collective=(a.collective for a in args),
                device=(
                    device_of(event.pid if a.device is None else a.device)
                    for event, a in zip(group, args, strict=True)
                ),
            )

    def _add_inputs_of_calls(self, group: Sequence[Event], args: Sequence[Args]) -> None:
        """Add what collectives were given, of annotations: all that tells it of gloo's."""
        own = [
            a if event.name.startswith(CALL_MARKS) else NO_ARGS
            for event, a in zip(group, args, strict=True)
        ]
        self.store.append_texts(
            "annotations",
            input_dims=(kept_text(a.input_dims, a.input_dims_old) for a in own),
            input_types=(kept_text(a.input_types) for a in own),
        )

    def _add_inputs(self, args: Sequence[Args]) -> None:
        """Add what operators were given, and what pairs backward with forward."""
        self.store.append_texts(
            "ops",
            input_dims=(kept_text(a.input_dims, a.input_dims_old) for a in args),
            input_types=(kept_text(a.input_types) for a in args),
            concrete_inputs=(kept_text(a.concrete_inputs) for a in args),
        )
        self.store.append(
            "ops",
            sequence_number=_numbers([a.sequence_number for a in args]),
            forward_thread=_numbers([a.forward_thread for a in args]),
        )

    def add_calls(
        self, table: str, calls: Sequence[tuple[int, Mapping[str, str]]], *, num_rows: int
    ) -> None:
        """Add the arguments of those among so many new rows of a table that are collectives."""
        before = self._num_rows[table]
        self._num_rows[table] += num_rows
        found = [
            (before + place, key, value) for place, args in calls for key, value in args.items()
        ]
        if not found:
            return
        rows, keys, values = zip(*found, strict=True)
        self.store.append("collective_args", row=pa.array(rows, pa.uint64()))
        self.store.append_texts(
            "collective_args", of=[table] * len(found), key=keys, value=values
        )

    def _add_counters(self, group: list[Event]) -> None:
        times = nanoseconds([event.ts for event in group]).values
        good = times > UNUSABLE
        if not good.all():
            self.skipped["time_missing"] += int((~good).sum())
        kept = list(compress(group, good))
        self.store.append("counters", start_ns=times[good])
        self.store.append_texts(
            "counters",
            name=(event.name for event in kept),
            pid=(label_of(event.pid) for event in kept),
            values=(bytes(event.args).decode() for event in kept),
        )

    def finish(self, base_ns: int) -> dict[str, Kept]:
        """Return the tables of the file, times moved by ``base_ns``."""
        wanted = (
            name
            for name in (*_SPANS, "collective_args", "counters")
            if name not in EXTRAS or name in self._extras
        )
        return self.store.finish(wanted, base_ns)


def _is_copy(category: str | None) -> bool:
    return route("X", category).label in COPIES


def _numbers(values: list[Any], *, zero: bool = True) -> pa.Array:
    """Make a column of ids up to 2^64-1; what is none is null, as is 0 where it means none."""
    if not set(map(type, values)) <= {int, NoneType}:  # Arrow would take 1.5 for 1
        values = unsigned(values)
    try:
        column = pa.array(values, pa.uint64())
    except (pa.ArrowInvalid, OverflowError):
        column = pa.array(unsigned(values), pa.uint64())
    if zero:
        return column
    nothing = pa.scalar(None, pa.uint64())
    return pc.if_else(pc.equal(column, pa.scalar(0, pa.uint64())), nothing, column)


def device_of(value: object) -> str:
    """Name a device, given its number, or the process where there is none."""
    return label_of(value) or "unknown"


def label_of(value: object) -> str | None:
    """Write a process, thread or device as text: ``0.0`` like ``0``, and nothing endless."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)[:_LONGEST_LABEL]
