"""Bytes to tables: finds trace files, opens and decodes them, and says what became of each."""

from __future__ import annotations

from traceparse.ingest.header import Header
from traceparse.ingest.health import LOSSES, FileHealth
from traceparse.ingest.kept import Kept
from traceparse.ingest.listing import Place, find, path_text, place_of
from traceparse.ingest.native import engine, is_built
from traceparse.ingest.ranks import MOST_RANKS, ranks_text
from traceparse.ingest.remote import Remote
from traceparse.ingest.routes import CALL_MARKS, FRAME, STEP_MARK
from traceparse.ingest.sidecar import read_sidecar
from traceparse.ingest.trace import RankTrace, read_trace, read_traces

__all__ = [
    "CALL_MARKS",
    "FRAME",
    "LOSSES",
    "MOST_RANKS",
    "STEP_MARK",
    "FileHealth",
    "Header",
    "Kept",
    "Place",
    "RankTrace",
    "Remote",
    "engine",
    "find",
    "is_built",
    "path_text",
    "place_of",
    "ranks_text",
    "read_sidecar",
    "read_trace",
    "read_traces",
]
