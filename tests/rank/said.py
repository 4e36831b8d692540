"""What traceparse says of a small trace: its doubts, by code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.traces import write
from traceparse.ingest import read_trace
from traceparse.rank import digest


def said(folder: Path, events: Iterable[dict[str, Any]], code: str) -> list[str]:
    """Return the messages of all notes of a code on a trace of these events."""
    trace = read_trace(write(folder / "rank0.json", list(events)))
    return [note.message for note in digest(trace).notes if note.code == code]
