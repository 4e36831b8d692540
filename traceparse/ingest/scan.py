"""A source of bytes to columns: the interface that every engine has.

``scan`` is the whole of it: what it returns does not say which engine ran, the native one or
the one made of msgspec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from traceparse.errors import InputError
from traceparse.ingest.collect import Collector
from traceparse.ingest.document import Document
from traceparse.ingest.kept import Kept
from traceparse.ingest.native import NativeEngine, engine
from traceparse.ingest.source import Source
from traceparse.ingest.window import BLOCK, Window

__all__ = ["Scan", "scan"]

_MOST_DOCUMENTS = 1024  # that one file may hold, one after another


@dataclass(frozen=True, slots=True)
class Scan:
    """All that one pass over a document found.

    ``tables(base_ns)`` makes the tables, with times moved from the file's base to the Unix
    epoch: the base may stand behind the last event. ``rows`` is how many rows they have.
    ``is_followed`` says that something that is no JSON stands behind it.
    ``unfinished`` counts events that were still open when the profiler stopped,
    ``headers_inside`` headers found among the events.
    """

    header: Mapping[str, Any]
    layout: str
    events: int
    skipped: Mapping[str, int]
    repaired: Mapping[str, int]
    rows: int
    unfinished: int
    headers_inside: int
    truncated: bool
    is_followed: bool
    damage: tuple[str, ...]
    whole_us: bool
    first_ns: int
    tables: Callable[[int], dict[str, Kept]]


def scan(
    source: Source, extras: frozenset[str], *, block: int = BLOCK, on_disk: bool = False
) -> Iterator[Scan]:
    """Read every event of a source once, keeping what the tables need.

    A file may hold several documents, one after another; there is one scan for each.
    ``on_disk`` keeps what is much of the tables in a temporary file.

    Raises
    ------
    InputError
        It is no trace, or holds more documents than is believed. (What follows a trace and is
        none ends the scan without a word.)
    """
    window = Window(source, block)
    yield _scan_document(window, extras, on_disk=on_disk)
    for _ in range(_MOST_DOCUMENTS - 1):
        window.skip_blanks()
        if not window.text.startswith((b"{", b"[")):
            return
        try:
            yield _scan_document(window, extras, on_disk=on_disk)
        except InputError:
            return
    window.skip_blanks()
    if window.text:
        raise InputError(
            f"{source.path}: more than {_MOST_DOCUMENTS:,} traces in one file, which is past "
            f"belief; give a trace that torch.profiler exported"
        )


def _scan_document(window: Window, extras: frozenset[str], *, on_disk: bool) -> Scan:
    collector = Collector(extras, on_disk=on_disk)
    native = None
    if engine() == "native":
        native = NativeEngine(collector, with_counters="counters" in extras)
    document = Document(window, native)
    for events in document.batches():
        if events:
            collector.add(events)
    window.skip_blanks()
    if document.undecodable:
        collector.skipped["undecodable"] += document.undecodable
    return Scan(
        header=document.header,
        layout=document.layout,
        events=collector.events + document.undecodable,
        skipped=collector.skipped,
        repaired=document.repaired + collector.repaired,
        rows=collector.rows,
        unfinished=collector.unfinished,
        headers_inside=document.headers_inside,
        truncated=document.truncated,
        is_followed=bool(window.text[:64].strip(b"\0")) and window.text[:1] not in (b"{", b"["),
        damage=tuple(document.damage),
        whole_us=collector.whole_us,
        first_ns=collector.first_ns,
        tables=collector.finish,
    )
