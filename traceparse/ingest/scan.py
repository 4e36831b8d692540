"""A source of bytes to columns: the interface that every engine has.

``scan`` is the whole of it: what it returns does not say which engine ran. There is one now,
made of msgspec; a native one will return the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from traceparse.ingest.collect import Collector
from traceparse.ingest.document import BLOCK, Document
from traceparse.ingest.source import Source
from traceparse.tables import ArrowTable

__all__ = ["Scan", "scan"]


@dataclass(frozen=True, slots=True)
class Scan:
    """All that one pass over a file found.

    ``tables(base_ns)`` makes the tables, with times moved from the file's base to the Unix
    epoch: the base may stand behind the last event. ``rows`` is how many rows they have.
    """

    header: Mapping[str, Any]
    layout: str
    events: int
    skipped: Mapping[str, int]
    rows: int
    truncated: bool
    damage: tuple[str, ...]
    whole_us: bool
    first_ns: int
    tables: Callable[[int], dict[str, ArrowTable]]


def scan(source: Source, extras: frozenset[str], *, block: int = BLOCK) -> Scan:
    """Read every event of a source once, keeping what the tables need.

    Raises
    ------
    InputError
        It is no trace.
    """
    document = Document(source, block=block)
    collector = Collector(extras)
    for events in document.batches():
        collector.add(events)
    if document.undecodable:
        collector.skipped["undecodable"] += document.undecodable
    return Scan(
        header=document.header,
        layout=document.layout,
        events=collector.events + document.undecodable,
        skipped=collector.skipped,
        rows=collector.rows,
        truncated=document.truncated,
        damage=tuple(document.damage),
        whole_us=collector.whole_us,
        first_ns=collector.first_ns,
        tables=collector.finish,
    )
