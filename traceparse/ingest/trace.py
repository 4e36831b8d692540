"""One trace file as tables: the way from a path to a :class:`RankTrace`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from traceparse.errors import EmptyTraceError, InputError, Note, UsageError
from traceparse.ingest import sniff
from traceparse.ingest.header import Header, read_header, who
from traceparse.ingest.health import LOSSES, FileHealth
from traceparse.ingest.kept import Kept
from traceparse.ingest.listing import Place, path_text, place_of
from traceparse.ingest.routes import EXTRAS
from traceparse.ingest.scan import Scan, scan
from traceparse.ingest.sidecar import Sidecar, read_sidecar
from traceparse.ingest.source import Source
from traceparse.tables import ArrowTable

__all__ = ["RankTrace", "read_trace", "read_traces"]

# Relative times count from a base a few months back at most; 1e15 us after 1970 is 2001
_ABSOLUTE_FROM_NS = 10**18


@dataclass(frozen=True, slots=True)
class RankTrace:
    """One file, read: its header facts, its events by kind, its health.

    ``kept`` has ``device_events``, ``launches``, ``ops``, ``annotations`` and what was asked
    for besides, with the columns of stage ``ingest`` in :mod:`traceparse.tables`.
    """

    header: Header
    kept: Mapping[str, Kept]
    health: FileHealth
    notes: tuple[Note, ...]
    unfinished: int = 0

    @property
    def tables(self) -> dict[str, ArrowTable]:
        """The events as Arrow tables, in memory."""
        return {name: kept.table() for name, kept in self.kept.items()}


def read_trace(
    path: str | Place,
    *,
    rank: int | None = None,
    extras: frozenset[str] = frozenset(),
) -> RankTrace:
    """Read a file that holds one trace; see :func:`read_traces`.

    Raises
    ------
    InputError
        As there; or the file holds several traces.
    """
    traces = read_traces(path, rank=rank, extras=extras)
    if len(traces) > 1:
        raise InputError(f"{path}: the file holds {len(traces)} traces, not one")
    return traces[0]


def read_traces(
    path: str | Place,
    *,
    rank: int | None = None,
    extras: frozenset[str] = frozenset(),
    on_bytes: Callable[[int], object] | None = None,
    on_disk: bool = False,
) -> list[RankTrace]:
    """Read one trace file of any layout and compression.

    Facts that capture left beside it are read with it, as far as they can be. Almost always a
    file holds one trace. Where several documents stand one after another, each is
    read on its own, and the path of the second one in its health is ``PATH#2``.

    Parameters
    ----------
    path
        The file.
    rank
        Its rank, for a file that does not say, neither inside nor in its name.
    extras
        Tables to read besides: ``python_functions``, ``counters``.
    on_bytes
        Called with the number of bytes read from the disk, again and again.
    on_disk
        Keep what is much of the tables in a temporary file, so that memory stays flat.

    Raises
    ------
    InputError
        The file cannot be read, is no trace, holds no event with a duration, or was written
        by several processes at the same time.
    """
    if unknown := extras - EXTRAS:
        raise UsageError(
            f"no such extra table: {', '.join(sorted(unknown))}; "
            f"there are {', '.join(sorted(EXTRAS))}"
        )
    path = place_of(path)
    beside = read_sidecar(path)
    traces: list[RankTrace] = []
    with Source(path, on_bytes) as source:
        first: Scan | None = None
        for found in scan(source, extras, on_disk=on_disk):
            first = first or found
            if found.headers_inside:
                raise _torn(path, f"{found.headers_inside + 1} headers", found)
            if found.rows:
                name = path_text(path) + (f"#{len(traces) + 1}" if traces else "")
                traces.append(_trace(found, name, path, source.size, beside, given=rank))
    if not traces:
        assert first is not None
        raise _without_spans(path, first)
    if len(traces) > 1:
        traces = [_with_several(trace, len(traces)) for trace in traces]
    return traces


def _torn(path: Place, evidence: str, found: Scan) -> InputError:
    return InputError(
        f"{path}: several ranks wrote this file at the same time ({evidence}, "
        f"{found.skipped['undecodable']} torn events), so their events cannot be told apart; "
        f"capture again with a file for each rank"
    )


def _pids(*tables: Kept) -> list[str]:
    """Return all process ids of some tables."""
    found: set[str] = set()
    for kept in tables:
        for part in kept.parts("pid"):
            found.update(part["pid"].unique().drop_null().to_pylist())
    return sorted(found)


def _trace(
    found: Scan, name: str, path: Place, size: int, beside: Sidecar | None, *, given: int | None
) -> RankTrace:
    header = read_header(found.header)
    known_rank, rank_source = who(header, path, given)
    unread = None
    if beside:
        facts, unread = beside.facts(known_rank)
        header = read_header(found.header, facts)
    is_absolute = found.first_ns >= _ABSOLUTE_FROM_NS
    kept = found.tables(0 if is_absolute else header.base_ns or 0)
    if (
        found.skipped.get("undecodable")
        and len(pids := _pids(kept["ops"], kept["launches"])) > 1
    ):
        raise _torn(path, f"events of processes {', '.join(pids[:4])}", found)
    health = FileHealth(
        path=name,
        rank=known_rank,
        rank_source=rank_source,
        layout=_layout(found, kept),
        bytes=size,
        events=found.events,
        skipped=dict(sorted(found.skipped.items())),
        repaired=dict(sorted(found.repaired.items())),
        truncated=found.truncated,
        time_resolution_ns=1000 if found.whole_us else 1,
        gpu_events=kept["device_events"].num_rows,
    )
    notes = _notes(found, header, health, given=given, is_absolute=is_absolute)
    if beside and unread:
        message = f"{path_text(Path(beside.name))} beside it is not used: {unread}"
        notes += (Note("facts_unreadable", message, health.rank, health.path),)
    return RankTrace(header, kept, health, notes, found.unfinished)


def _with_several(trace: RankTrace, count: int) -> RankTrace:
    note = Note(
        "several_traces",
        f"the file holds {count} traces, one after another: each is read on its own",
        trace.health.rank,
        trace.health.path,
    )
    return replace(trace, notes=(note, *trace.notes))


def _without_spans(path: Place, found: Scan) -> InputError:
    if found.events and found.skipped.get("no_phase") == found.events:
        return sniff.document(path, [])
    if found.truncated:
        return sniff.empty(path, found.damage[0], 1)
    return EmptyTraceError(
        f"{path}: the trace holds metadata only, no duration events that could be used "
        f"({_counts(found.skipped) or 'no events at all'}); nothing was recorded: check that "
        f"the profiler was active while the job ran"
    )


def _layout(found: Scan, kept: Mapping[str, Kept]) -> str:
    """Tell the old autograd profiler's list of events from a list of today's events."""
    is_legacy = found.layout == "list" and _pids(kept["ops"]) == ["CPU functions"]
    return "legacy" if is_legacy else found.layout


def _notes(
    found: Scan, header: Header, health: FileHealth, *, given: int | None, is_absolute: bool
) -> tuple[Note, ...]:
    said = [
        *_about_content(found, health),
        *_about_rank(health, given),
        *_about_times(header, is_absolute=is_absolute),
    ]
    return tuple(Note(code, message, health.rank, health.path) for code, message in said)


def _about_content(found: Scan, health: FileHealth) -> Iterator[tuple[str, str]]:
    if health.truncated:
        yield "truncated", f"{found.damage[0]}; the {found.events} events before that are used"
    elif found.damage:
        yield "header_damaged", found.damage[0]
    if found.is_followed:
        yield (
            "trailing_data",
            "something that is no JSON follows the trace: did another rank write into the "
            "file?",
        )
    if health.repaired:
        yield "events_repaired", f"repaired to be read: {_counts(health.repaired)}"
    lost = {reason: n for reason, n in health.skipped.items() if reason in LOSSES}
    if lost:
        yield "events_lost", f"events that could not be used: {_counts(lost)}"


def _about_rank(health: FileHealth, given: int | None) -> Iterator[tuple[str, str]]:
    if health.rank is None:
        yield (
            "rank_unknown",
            "neither the trace nor its file name says which rank this is; give --rank",
        )
    elif health.rank_source == "file name":
        yield "rank_from_file_name", f"rank {health.rank} is read off the file name"
    if given is not None and health.rank not in (None, given):
        yield (
            "rank_contradicted",
            f"--rank {given} is not used: its {health.rank_source} says rank {health.rank}",
        )


def _about_times(header: Header, *, is_absolute: bool) -> Iterator[tuple[str, str]]:
    if is_absolute and header.base_ns:
        yield (
            "time_base_ignored",
            "its times are dates already, so its baseTimeNanoseconds is not added to them",
        )
    if not is_absolute and header.base_ns is None:
        yield (
            "time_relative",
            "its times count from an unknown instant, so start_ns and end_ns are no dates",
        )


def _counts(skipped: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in skipped.items())
