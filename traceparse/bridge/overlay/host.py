"""What a rank's host did, thread by thread, and which of its launches led to which kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from traceparse.bridge.overlay.device import Events
from traceparse.bridge.overlay.job import Device, Drawn, Job, by_value
from traceparse.bridge.overlay.lanes import lanes, outside_in
from traceparse.bridge.overlay.lines import Event, Track, at_once, span
from traceparse.bridge.overlay.plan import FLOWS, LAUNCHES, OPERATORS, PYTHON, host_layer
from traceparse.bridge.overlay.rows import Ids, Rows, by_row
from traceparse.bridge.overlay.steps import Marked, Window
from traceparse.ingest import RankTrace
from traceparse.intervals import Int64s
from traceparse.rank.steps import markers
from traceparse.tables import ArrowTable

__all__ = ["LAUNCH", "Host", "draw_host", "draw_launches"]

LAUNCH: Final = "ac2g"  # the category of flows from launches, as Kineto has it
_PYTHON_TABLE: Final = "python_functions"
# tables, and from which amount on they are drawn
_TABLES: Final = {
    "annotations": LAUNCHES,
    "launches": LAUNCHES,
    "ops": OPERATORS,
    _PYTHON_TABLE: PYTHON,
}
_JSON: Final = {
    "Input Dims": "input_dims",
    "Input type": "input_types",
    "Concrete Inputs": "concrete_inputs",
}
_COUNTS: Final = {"Sequence number": "sequence_number", "Fwd thread id": "forward_thread"}
_IDS: Final = {"correlation": "correlation", "External id": "external_id"}
_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "annotations": frozenset({"input_dims", "input_types"}),
    "launches": frozenset({"correlation", "external_id"}),
    "ops": frozenset({"external_id", *_JSON.values(), *_COUNTS.values()}),
    _PYTHON_TABLE: frozenset(),
}


class Host(NamedTuple):
    """Host events in the order in which they are drawn: by step, thread and start.

    ``kinds`` are places in the tables, ``rows`` those of each; ``lanes`` number threads.
    """

    tables: Sequence[tuple[str, Rows]]
    kinds: Int64s
    rows: Int64s
    lanes: Int64s
    starts: Int64s
    ends: Int64s
    places: Int64s
    labels: Sequence[str]

    @property
    def amounts(self) -> Int64s:
        """From which amount on each event is drawn."""
        return np.array([_TABLES[name] for name, _ in self.tables], np.int64)[self.kinds]


def draw_host(
    job: Job, rank: Drawn, trace: RankTrace, tables: Mapping[str, ArrowTable], ids: Ids
) -> tuple[Host, Int64s]:
    """Draw a rank's host; return what was drawn, and on which thread."""
    host = _arranged(job, rank, trace, tables)
    used = np.unique(host.lanes).tolist()
    tids = np.zeros(len(host.labels), np.int64)
    for lane in used:
        tids[lane] = job.names.thread(rank.host_pid, host.labels[lane]).tid
    own = tids[host.lanes]
    amounts = host.amounts
    for place, every in by_value(host.places):
        window = Window(place, place)
        for some in at_once(every.size):
            at = every[some]
            events = _events(host, at, rank.host_pid, own, ids)
            for most in (LAUNCHES, OPERATORS, PYTHON):
                if job.plan.wants(host_layer(most), place, place):
                    kept = np.flatnonzero(amounts[at] <= most)
                    drawn = [events[row] for row in kept.tolist()]
                    job.plan.put(host_layer(most), drawn, host.starts[at[kept]], window)
    return host, own


def _arranged(
    job: Job, rank: Drawn, trace: RankTrace, tables: Mapping[str, ArrowTable]
) -> Host:
    """Put all that may be drawn in order, on lanes on which slices nest."""
    clock = rank.devices[0].place
    marked = _marked(trace)
    found: list[tuple[str, Rows]] = []
    columns: dict[str, list[Int64s]] = defaultdict(list)
    threads: dict[tuple[str | None, str | None], int] = {}
    for name in _TABLES:
        table = _python(job, marked, trace) if name == _PYTHON_TABLE else tables[name]
        if table is None:
            continue
        own = Rows(table)
        places = job.steps.of(marked, own.times("start_ns"))
        wanted = [p for p in np.unique(places).tolist() if _is_wanted(job, name, p)]
        rows = np.flatnonzero(np.isin(places, wanted))
        keys = zip(own.texts("pid", rows), own.texts("tid", rows), strict=True)
        columns["thread"].append(
            np.array([threads.setdefault(key, len(threads)) for key in keys], np.int64)
        )
        columns["kind"].append(np.full(rows.size, len(found)))
        columns["row"].append(rows)
        columns["place"].append(places[rows])
        columns["start"].append(job.aligned(clock, own.times("start_ns")[rows]))
        columns["end"].append(job.aligned(clock, own.times("end_ns")[rows]))
        found.append((name, own))
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    lane, labels = _lanes(joined, list(threads), rank)
    order = np.lexsort((-joined["end"], joined["start"], lane, joined["place"]))
    kind, row, start, end, place = (
        joined[name][order] for name in ("kind", "row", "start", "end", "place")
    )
    return Host(found, kind, row, lane[order], start, end, place, labels)


def _is_wanted(job: Job, table: str, place: int) -> bool:
    return any(
        job.plan.wants(host_layer(most), place, place)
        for most in range(_TABLES[table], PYTHON + 1)
    )


def _marked(trace: RankTrace) -> list[Marked]:
    return [
        Marked(one.step, one.start_ns, one.end_ns)
        for one in markers(trace.kept["annotations"], trace.health.path)
        if one.step is not None
    ]


def _python(job: Job, marked: Sequence[Marked], trace: RankTrace) -> ArrowTable | None:
    """Return the Python calls of steps that may be drawn; there may be many of the others."""
    kept = trace.kept.get(_PYTHON_TABLE)
    if kept is None or not job.plan.wants_layer(host_layer(PYTHON)):
        return None
    parts = []
    for part in kept.parts(*kept.schema.names):
        places = job.steps.of(marked, part["start_ns"].to_numpy())
        some = [p for p in np.unique(places).tolist() if _is_wanted(job, _PYTHON_TABLE, p)]
        parts.append(part.filter(pa.array(np.isin(places, some))))
    return pa.concat_tables(parts) if parts else None


def _lanes(
    columns: Mapping[str, Int64s],
    threads: Sequence[tuple[str | None, str | None]],
    rank: Drawn,
) -> tuple[Int64s, list[str]]:
    """Find a lane for each event: its thread's, or where it crosses another event one more."""
    process = rank.devices[0].part.digest.process
    found = np.zeros(columns["start"].size, np.int64)
    labels: list[str] = []
    for number, every in by_value(columns["thread"]):
        pid, tid = threads[number]
        rows = every[outside_in(columns["start"][every], columns["end"][every])]
        lane = lanes(columns["start"][rows], columns["end"][rows], may_nest=True)
        found[rows] = lane + len(labels)
        label = f"thread {tid}" if pid == process else f"{pid} {tid}"
        num = int(lane.max(initial=0)) + 1
        labels += [f"{label} ({at + 1})" if at else label for at in range(num)]
    return found, labels


def _events(host: Host, at: Int64s, pid: int, tids: Int64s, ids: Ids) -> list[Event]:
    drawn: list[Event | None] = [None] * at.size
    lasts = (host.ends - host.starts)[at]
    for kind, (name, table) in enumerate(host.tables):
        mine = np.flatnonzero(host.kinds[at] == kind)
        rows = host.rows[at[mine]]
        for to, *values in zip(
            mine.tolist(),
            table.texts("name", rows),
            table.texts("category", rows),
            tids[at[mine]].tolist(),
            lasts[mine].tolist(),
            by_row(_columns(name, table, rows, ids), rows.size),
            strict=True,
        ):
            text, category, tid, ns, args = values
            drawn[to] = span(text or "", category or "", Track(pid, tid), ns, args or None)
    return [event for event in drawn if event is not None]


def _columns(name: str, table: Rows, rows: Int64s, ids: Ids) -> dict[str, list[Any]]:
    """Return the arguments that rows of a table have."""
    own = _COLUMNS[name]
    found = {
        key: ids.of(table.numbers(column, rows))
        for key, column in _IDS.items()
        if column in own
    }
    json = {key: table.json(column, rows) for key, column in _JSON.items() if column in own}
    counts = {
        key: table.numbers(column, rows) for key, column in _COUNTS.items() if column in own
    }
    return {**found, **json, **counts}


def draw_launches(
    job: Job,
    rank: Drawn,
    host: Host,
    tids: Int64s,
    events: Sequence[tuple[Device, Events, Rows]],
) -> None:
    """Draw a flow from each launch to each device event that it led to."""
    kind = next((n for n, (name, _) in enumerate(host.tables) if name == "launches"), None)
    if kind is None or not job.plan.wants_layer(FLOWS):
        return
    mine = np.flatnonzero(host.kinds == kind)
    keys = host.tables[kind][1].ids("correlation")[host.rows[mine]]
    # the earliest call of a correlation launches; of those at one instant, the outermost
    order = np.lexsort((-host.ends[mine], host.starts[mine], keys))
    keys, mine = keys[order], mine[order]
    is_first = np.append(True, keys[1:] != keys[:-1])[: keys.size] & (keys != 0)
    keys, mine = keys[is_first], mine[is_first]
    if not keys.size:
        return
    by_window: dict[Window, list[tuple[Event, int]]] = defaultdict(list)
    for device, drawn, table in events:
        wanted = table.ids("correlation")[drawn.rows]
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        launch = mine[at]
        tied = np.flatnonzero((keys[at] == wanted) & (drawn.starts >= host.starts[launch]))
        places = job.steps.of(device.marked, drawn.own_starts)
        for event in tied.tolist():
            calls = int(launch[event])
            ends = sorted((int(places[event]), int(host.places[calls])))
            flow = job.next_flow()
            by_window[Window(*ends)] += [
                _end("s", flow, rank.host_pid, int(tids[calls]), int(host.starts[calls])),
                _end("f", flow, device.pid, int(drawn.tids[event]), int(drawn.starts[event])),
            ]
    for window, found in by_window.items():
        for some in at_once(len(found)):
            starts = np.array([start for _, start in found[some]], np.int64)
            job.plan.put(FLOWS, [event for event, _ in found[some]], starts, window)


def _end(phase: str, flow: int, pid: int, tid: int, start_ns: int) -> tuple[Event, int]:
    bind = "e" if phase == "f" else None
    return Event(phase, LAUNCH, pid, tid, LAUNCH, id=flow, bp=bind), start_ns
