"""One trace file as tables: the way from a path to a :class:`RankTrace`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from traceparse.errors import EmptyTraceError, Note, UsageError
from traceparse.ingest import sniff
from traceparse.ingest.collect import EXTRAS
from traceparse.ingest.header import Header, read_header, who
from traceparse.ingest.health import LOSSES, FileHealth
from traceparse.ingest.scan import Scan, scan
from traceparse.ingest.source import Source
from traceparse.tables import ArrowTable

__all__ = ["RankTrace", "read_trace"]

# Relative times count from a base a few months back at most; 1e15 us after 1970 is 2001
_ABSOLUTE_FROM_NS = 10**18


@dataclass(frozen=True, slots=True)
class RankTrace:
    """One file, read: its header facts, its events as Arrow tables by kind, its health.

    ``tables`` has ``device_events``, ``launches``, ``ops``, ``annotations`` and what was asked
    for besides, with the columns of stage ``ingest`` in :mod:`traceparse.tables`.
    """

    header: Header
    tables: Mapping[str, ArrowTable]
    health: FileHealth
    notes: tuple[Note, ...]


def read_trace(
    path: str | Path,
    *,
    rank: int | None = None,
    extras: frozenset[str] = frozenset(),
    on_bytes: Callable[[int], object] | None = None,
) -> RankTrace:
    """Read one trace file of any layout and compression.

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

    Raises
    ------
    InputError
        The file cannot be read, is no trace, or holds no event with a duration.
    """
    if unknown := extras - EXTRAS:
        raise UsageError(
            f"no such extra table: {', '.join(sorted(unknown))}; "
            f"there are {', '.join(sorted(EXTRAS))}"
        )
    path = Path(path)
    with Source(path, on_bytes) as source:
        found = scan(source, extras)
        size = source.size
    _require_spans(path, found)
    header = read_header(found.header)
    is_absolute = found.first_ns >= _ABSOLUTE_FROM_NS
    base_ns = 0 if is_absolute else header.base_ns or 0
    tables = found.tables(base_ns)
    known_rank, rank_source = who(header, path, rank)
    health = FileHealth(
        path=str(path),
        rank=known_rank,
        rank_source=rank_source,
        layout=_layout(found, tables),
        bytes=size,
        events=found.events,
        skipped=dict(sorted(found.skipped.items())),
        truncated=found.truncated,
        time_resolution_ns=1000 if found.whole_us else 1,
        gpu_events=tables["device_events"].num_rows,
    )
    notes = _notes(found, header, health, given=rank, is_absolute=is_absolute)
    return RankTrace(header, tables, health, notes)


def _require_spans(path: Path, found: Scan) -> None:
    if found.rows:
        return
    if found.events and found.skipped.get("no_phase") == found.events:
        raise sniff.document(path, [])
    if found.truncated:
        raise sniff.empty(path, found.damage[0], 1)
    raise EmptyTraceError(
        f"{path}: the trace holds metadata only, no duration events that could be used "
        f"({_counts(found.skipped) or 'no events at all'}); nothing was recorded: check that "
        f"the profiler was active while the job ran"
    )


def _layout(found: Scan, tables: Mapping[str, ArrowTable]) -> str:
    """Tell the old autograd profiler's list of events from a list of today's events."""
    rows = tables["ops"]
    if found.layout == "list" and rows.num_rows:
        pids = rows["pid"].unique()
        if pc.all(pc.equal(pids.cast("string"), "CPU functions")).as_py():
            return "legacy"
    return found.layout


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
