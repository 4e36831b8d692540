"""Files and their health on the page, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from traceparse.ingest import FileHealth
from traceparse.report.cells import Cell, Column, Table, Words, count, megabytes
from traceparse.report.notes import health_text
from traceparse.units import UNKNOWN, format_count

__all__ = ["FileRow", "file_row", "file_table", "folder_of"]

_MAX_FILES = 64


@dataclass(frozen=True, slots=True)
class FileRow:
    """One file's health, in words."""

    path: str
    rank: Words
    layout: str
    numbers: Sequence[Cell]
    skipped: str
    health: str


def file_row(index: int, file: FileHealth) -> FileRow:
    """Write one file out; ``index`` is its place in the report."""
    path = f"files.{index}"
    return FileRow(
        path=file.path,
        rank=_rank(file),
        layout=file.layout,
        numbers=[
            megabytes(file.bytes, f"{path}.bytes"),
            count(file.events, f"{path}.events"),
            count(file.gpu_events, f"{path}.gpu_events"),
            count(file.launches_without_gpu_event, f"{path}.launches_without_gpu_event"),
            count(file.gpu_events_without_launch, f"{path}.gpu_events_without_launch"),
        ],
        skipped=_reasons(file.skipped),
        health=health_text(file) or "whole",
    )


def folder_of(files: Sequence[FileHealth]) -> str:
    """Return the folder that all files are in, with the slash at its end; else nothing."""
    if len(files) < 2:
        return ""
    paths = [file.path for file in files]
    # what the first and the last in order share, all share
    pairs = zip(min(paths), max(paths), strict=False)
    shared = "".join(char for char, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared[: shared.rfind("/") + 1]


def file_table(files: Sequence[FileHealth]) -> Table:
    """Write all files there is room for, those in need of attention first."""
    folder = folder_of(files)
    ordered = sorted(enumerate(files), key=lambda item: health_text(item[1]) is None)
    rows = [file_row(index, file) for index, file in ordered[:_MAX_FILES]]
    return Table(
        key="files-table",
        label="Files",
        columns=[
            Column("file", "", "text"),
            Column("rank", "the rank, and where it was read from", "text"),
            Column("layout", "", "text"),
            Column("size"),
            Column("events", "elements of traceEvents"),
            Column("device events"),
            Column("launches alone", "launches whose device event is not in the file"),
            Column("device events alone", "device events whose launch is not in the file"),
            Column("left out", "events that are in no table, by reason", "text"),
            Column("health", "", "text"),
        ],
        rows=[
            [
                Words(row.path.removeprefix(folder)),
                row.rank,
                Words(row.layout),
                *row.numbers,
                Words(row.skipped),
                Words(row.health),
            ]
            for row in rows
        ],
        left=len(files) - len(rows),
        what="file",
    )


def _rank(file: FileHealth) -> Words:
    rank = UNKNOWN if file.rank is None else str(file.rank)
    return Words(rank, file.rank_source or "", value=file.rank)


def _reasons(counts: Mapping[str, int]) -> str:
    said = ", ".join(f"{format_count(n)} {name}" for name, n in counts.items() if n)
    return said or "none"
