"""Why was a device idle? What its host did meanwhile, as an exact partition of every gap.

A gap ends when a device event starts. Until the host launched that event (the earliest, if
several start at once), the gap is the host's, and one of three:

* ``data_loader``: it was fetching data, as spans of a thread that launches say;
* ``sync``: it had waited for the device. As many of the other nanoseconds as synchronizing
  calls took since the launch before: had they returned at once, the host would have launched
  that much earlier. Calls that had nothing to wait for are short, so what the host was late
  anyway is not blamed on them;
* ``launch``: the rest, and the call that launches, until it returns. The host was too slow:
  Python, operators, a kernel that had to be loaded first.

When that call has returned, nobody knows what the event still waited for (the way to the
device, another stream): ``unknown``. So is a gap that no event ends whose launch is known. Of
the host's own work, where there is no device, only fetching data is known; nothing is launched
there, and nothing waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.errors import Note
from traceparse.ingest import FileHealth, Kept
from traceparse.intervals import (
    EMPTY,
    Int64s,
    Intervals,
    covered_before,
    difference,
    from_spans,
)
from traceparse.ordered import Ordered
from traceparse.rank.classify import COPY
from traceparse.rank.link import UNLINKED, Linked
from traceparse.rank.rows import groups, picked, rows_where
from traceparse.rank.threads import Threads
from traceparse.rank.times import IdleTimes

__all__ = ["Idle", "Partition", "are_syncs"]

MOST_GAPS: Final = 1 << 20  # of a file, and as many calls and spans; there are some thousand
_NEVER = np.iinfo(np.int64).max
# cudaStreamSynchronize, cuCtxSynchronize, hipDeviceSynchronize …, and plain copies; Intel's
_SYNCS = (
    r"^(?:cuda|cu|hip)(?:\w*Synchronize|Memcpy)"
    r"|^ze\w*Synchronize$|^(?:ur|pi)(?:QueueFinish|EventWait|EventsWait)$"
)
_GOES_ON = "Async"
# copies that are said to go on, and wait where memory is pageable
_COPIES = r"^(?:cuda|cu|hip)Memcpy\w*Async"
# torch's DataLoader and data pipes; Lightning's; and what people call their own
_LOADS = (
    r"^enumerate\(|DataLoader\w*\.__next__|_dataloader_next$|\.(?:train|val|test|predict)_next$"
    r"|(?i:\bdata[ _-]?load(?:er|ing)?\b|\b(?:get|next|load|fetch)[ _-](?:\w+[ _-])?batch\b)"
)
_SPAN_COLUMNS = ("start_ns", "end_ns", "pid", "tid")


class _Spans(NamedTuple):
    """Spans of the host and the number of each one's thread."""

    starts: Int64s
    ends: Int64s
    threads: npt.NDArray[np.int32]

    def of(self, rows: npt.NDArray[np.bool_] | Int64s) -> _Spans:
        """Return some of them."""
        return _Spans(*(column[rows] for column in self))  # type: ignore[arg-type]


_NO_SPANS = _Spans(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))


class Idle:
    """Takes calls and spans of the host, then all work, then links; partitions idle time.

    ``are_too_many`` says that a file has more than could be kept: then nothing is known.
    """

    def __init__(self, num_devices: int, threads: Threads, *, on_host: bool) -> None:
        self.are_too_many = False
        self._threads = threads
        self._on_host = on_host
        self._calls, self._loads = _NO_SPANS, _NO_SPANS
        self._are_syncs = np.empty(0, np.bool_)
        self._next_ns = np.empty(0, np.int64)  # the first launch after each call
        self._launching = np.zeros(0, np.bool_)  # by thread
        self._gaps = [EMPTY] * num_devices
        # of what ends each gap: when its launch began, and returned
        self._launched = [(np.empty(0, np.int64),) * 2] * num_devices
        self._reach_ns = [0] * num_devices

    def add_calls(self, launches: Kept) -> None:
        """Add all calls of the runtime or driver, once."""
        calls, are_first = self._spans(launches, are_syncs, _are_copies)
        order = np.argsort(calls.starts, kind="stable")
        self._calls, self._are_syncs = calls.of(order), are_first[order]
        self._next_ns = np.full(order.size, _NEVER)

    def add_loads(self, spans: Kept) -> None:
        """Add what of annotations or operators fetches data."""
        self._loads = _joined([self._loads, self._spans(spans, _are_loads)[0]])

    def _spans(
        self, spans: Kept, *are_wanted: Callable[[pa.Array], pa.Array]
    ) -> tuple[_Spans, npt.NDArray[np.bool_]]:
        """Return spans whose name is wanted in any way, and which are so in the first way.

        Most of a file is not: of that nothing but names is looked at.
        """
        rows, are_first = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
        done = num = 0
        for part in spans.parts("name"):
            ways = [rows_where(part, "name", are) for are in are_wanted]
            own = np.flatnonzero(np.logical_or.reduce(ways))
            num += own.size
            if num > MOST_GAPS:
                self.are_too_many = True
                return _NO_SPANS, are_first[0]
            rows.append(done + own)
            are_first.append(ways[0][own])
            done += part.num_rows
        found = [_NO_SPANS]
        if num:
            for part in picked(spans, np.concatenate(rows), *_SPAN_COLUMNS):
                starts, ends = (part[name].to_numpy() for name in ("start_ns", "end_ns"))
                found.append(_Spans(starts, ends, self._threads.of(part)))
        return _joined(found), np.concatenate(are_first)

    def add_work(self, spans: Ordered) -> None:
        """Add all work, once: rows by start, with ``end`` and ``device``."""
        found: list[list[Intervals]] = [[] for _ in self._gaps]
        num = 0
        for rows in spans.parts():
            for device, own in groups(rows["device"]):
                starts, ends = rows["start"][own], rows["end"][own]
                # not beyond its first start, of a device that had none before
                before = self._reach_ns[device] if found[device] else int(starts[0])
                reach = np.maximum.accumulate(np.append(before, ends))
                free = np.flatnonzero(starts > reach[:-1])
                found[device].append(Intervals(reach[free], starts[free]))
                self._reach_ns[device] = int(reach[-1])
                num += free.size
            if num > MOST_GAPS:
                self.are_too_many = True
                return
        self._gaps = [
            Intervals(*map(np.concatenate, zip(EMPTY, *own, strict=True))) for own in found
        ]
        self._launched = [
            (np.full(gaps.starts.size, _NEVER), np.full(gaps.starts.size, _NEVER))
            for gaps in self._gaps
        ]

    def add_linked(self, linked: Linked) -> None:
        """Add when device events were launched, and by which thread."""
        if self.are_too_many:
            return
        is_linked = linked.launched_ns != UNLINKED
        events, launched_ns = linked.events[is_linked], linked.launched_ns[is_linked]
        self._launching = _either(self._launching, np.bincount(linked.threads[is_linked]) > 0)
        for device, own in groups(events["device"]):
            ends = self._gaps[device].ends
            at, hit = _found(ends, events["start"][own])
            for edges, told in zip(
                self._launched[device], (launched_ns, linked.until_ns[is_linked]), strict=True
            ):
                np.minimum.at(edges, at, told[own][hit])
        calls = self._calls.starts
        before = np.searchsorted(calls, launched_ns) - 1
        np.minimum.at(self._next_ns, before[before >= 0], launched_ns[before >= 0])
        copies = events["kind"] == COPY
        at, hit = _found(calls, launched_ns[copies])
        waited = events["end"][copies][hit] <= self._calls.ends[at]
        self._are_syncs[at[waited]] = True

    def partitions(self, cuts: Sequence[Int64s]) -> list[Partition | None]:
        """Return what is known of each device's gaps between its cuts."""
        if self.are_too_many:
            return [None] * len(cuts)
        loads, calls, are_syncs = self._loads, self._calls, self._are_syncs
        if not self._on_host:
            loads = loads.of(self._launch(loads.threads))
            are_syncs = are_syncs & self._launch(calls.threads)
        loading = from_spans(loads.starts, loads.ends)
        syncs = calls.of(are_syncs)
        next_ns = np.minimum.accumulate(self._next_ns[::-1])[::-1][are_syncs]
        waiting = difference(from_spans(syncs.starts, syncs.ends), loading)
        found: list[Partition | None] = []
        for gaps, launched, reach_ns, own in zip(
            self._gaps, self._launched, self._reach_ns, cuts, strict=True
        ):
            # behind all work there is no end
            starts, ends = np.append(gaps.starts, reach_ns), np.append(gaps.ends, _NEVER)
            launched_ns, until_ns = (np.append(edges, _NEVER) for edges in launched)
            known = launched_ns != _NEVER
            first = np.searchsorted(next_ns, launched_ns)
            has_waited = known & (np.append(next_ns, -1)[first] == launched_ns)
            begin_ns = np.append(syncs.starts, 0)[first]
            waited = covered_before(waiting, launched_ns) - covered_before(waiting, begin_ns)
            own_ns, until_ns = (
                ends if self._on_host else np.where(known, np.clip(edge, starts, ends), starts)
                for edge in (launched_ns, until_ns)
            )
            of_gaps = _Gaps(starts, ends, own_ns, until_ns, np.where(has_waited, waited, 0))
            found.append(Partition(of_gaps, loading, np.unique(own), on_host=self._on_host))
        return found

    def notes(self, health: FileHealth) -> Iterator[Note]:
        """Say what is not known."""
        if self.are_too_many:
            yield Note(
                "idle_untold",
                f"{health.path}: more than {MOST_GAPS:,} gaps, calls that synchronize or spans "
                f"of a data loader, which nobody has in a trace; why it was idle is not told",
                health.rank,
                health.path,
            )

    def _launch(self, threads: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Say of threads whether they launch any work."""
        known = np.zeros(max(self._launching.size, int(threads.max(initial=0)) + 1), np.bool_)
        known[: self._launching.size] = self._launching
        return known[threads]


class _Gaps(NamedTuple):
    """Gaps of a device, until when each is the host's, and how long that had waited before."""

    starts: Int64s
    ends: Int64s
    launched_ns: Int64s
    until_ns: Int64s  # when the launch had returned
    waited: Int64s

    def of(self, rows: Int64s) -> _Gaps:
        """Return some of them."""
        return _Gaps(*(column[rows] for column in self))


class Partition:
    """All gaps of a device, parted: of its time between any two of some instants, the ``cuts``.

    In a gap, as far as it is the host's, what was waited for comes before what was late; of
    instants of a gap that is cut, so much is exact.
    """

    def __init__(self, gaps: _Gaps, loading: Intervals, cuts: Int64s, *, on_host: bool) -> None:
        self._loading, self._on_host, self._cuts = loading, on_host, cuts
        rows = np.searchsorted(gaps.starts, cuts, "right") - 1
        within = gaps.of(np.maximum(rows, 0))
        full = self._parts(gaps.of(np.arange(gaps.starts.size - 1)), gaps.ends[:-1])
        before = np.concatenate([np.zeros((4, 1), np.int64), np.cumsum(full, axis=1)], axis=1)
        parts = self._parts(within, np.minimum(cuts, within.ends))
        self._before = np.where(rows < 0, 0, before[:, np.maximum(rows, 0)] + parts)

    def _parts(self, gaps: _Gaps, cuts: Int64s) -> Int64s:
        """Return the four parts of gaps up to an instant of each."""
        own_ns = np.minimum(cuts, gaps.launched_ns)
        loaded = covered_before(self._loading, own_ns) - covered_before(
            self._loading, gaps.starts
        )
        rest = own_ns - gaps.starts - loaded
        waited = np.minimum(rest, gaps.waited)
        late = rest - waited + np.minimum(cuts, gaps.until_ns) - own_ns
        unknown = np.maximum(cuts - gaps.until_ns, 0)
        if self._on_host:
            late, unknown = unknown, late
        return np.stack([loaded, waited, late, unknown])

    def between(self, start_ns: int, end_ns: int) -> IdleTimes:
        """Return what idle time of ``[start_ns, end_ns)`` was, both of them cuts."""
        first, last = np.searchsorted(self._cuts, [start_ns, end_ns])
        return IdleTimes(*(self._before[:, last] - self._before[:, first]).tolist())


def are_syncs(names: pa.Array) -> pa.Array:
    """Say of names of calls whether the host waits in them for the device."""
    return pc.and_not(
        pc.match_substring_regex(names, _SYNCS), pc.match_substring(names, _GOES_ON)
    )


def _are_copies(names: pa.Array) -> pa.Array:
    return pc.match_substring_regex(names, _COPIES)


def _are_loads(names: pa.Array) -> pa.Array:
    return pc.match_substring_regex(names, _LOADS)


def _joined(spans: Sequence[_Spans]) -> _Spans:
    return _Spans(*map(np.concatenate, zip(*spans, strict=True)))


def _either(one: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    size = max(one.size, other.size)
    return np.pad(one, (0, size - one.size)) | np.pad(other, (0, size - other.size))


def _found(values: Int64s, wanted: Int64s) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Return where in ascending values those wanted are that are there, and which these are."""
    at = np.searchsorted(values, wanted)
    hit = np.append(values, _NEVER)[at] == wanted
    return at[hit], hit
