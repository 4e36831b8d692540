"""The map stage on this machine: one trace file at a time, or one a process.

``file -> RankDigest`` is a pure function of the file, so processes are told paths and answer
digests, as Arrow's stream. A file that fails, fails alone.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Protocol, TypeAlias

import pyarrow as pa

from traceparse import errors
from traceparse.engine.cache import Cache
from traceparse.errors import TraceparseError
from traceparse.ingest import Place, Remote, place_of, read_traces
from traceparse.rank import RankDigest, digest, from_table, to_table
from traceparse.tables import spare_pandas

__all__ = ["Outcome", "Progress", "digest_files"]

Outcome: TypeAlias = list[RankDigest] | TraceparseError
_TELL_S = 0.05  # between what a process tells of the bytes it has read
_DIGESTS, _ERROR = b"d", b"e"


class Progress(Protocol):
    """Whoever shows how far the work is; all calls come from one thread."""

    def start(self, num_files: int, num_bytes: int) -> None:
        """Files and bytes that will be read."""

    def advance(self, num_bytes: int) -> None:
        """So many bytes more were read."""

    def file_done(self) -> None:
        """One more file is digested, or has failed."""


class _Silent:
    """Shows nothing."""

    def start(self, num_files: int, num_bytes: int) -> None: ...

    def advance(self, num_bytes: int) -> None: ...

    def file_done(self) -> None: ...


def digest_files(
    paths: Sequence[Place],
    *,
    jobs: int,
    rank: int | None,
    progress: Progress | None,
    cache: Cache | None = None,
) -> list[Outcome]:
    """Digest every file, in the order given; an error takes the place of its digests.

    With ``jobs`` above 1 that many processes work, the largest file first. What the cache
    holds is not read again; what it does not is put there.
    """
    shown = progress or _Silent()
    sizes = [_size(path) for path in paths]
    shown.start(len(paths), sum(sizes))
    found: dict[int, Outcome] = {}
    # known before a file is read: one that changes meanwhile is kept as what it was
    entries = [cache.entry(path, rank) if cache else None for path in paths]
    for index, (path, entry) in enumerate(zip(paths, entries, strict=True)):
        kept = cache.get(entry, path) if cache and entry else None
        if kept is not None:
            found[index] = kept
            shown.advance(sizes[index])
            shown.file_done()
    missing = sorted(set(range(len(paths))) - found.keys(), key=lambda index: -sizes[index])
    # closed, lest processes stay for as long as somebody looks at an error
    with closing(_digested(paths, missing, jobs=jobs, rank=rank, shown=shown)) as outcomes:
        for index, outcome in outcomes:
            found[index] = outcome
            entry = entries[index]
            if cache and entry and not isinstance(outcome, TraceparseError):
                cache.put(entry, paths[index], outcome)
            shown.file_done()
    return [found[index] for index in range(len(paths))]


def _digested(
    paths: Sequence[Place],
    order: Sequence[int],
    *,
    jobs: int,
    rank: int | None,
    shown: Progress,
) -> Generator[tuple[int, Outcome]]:
    if min(jobs, len(order)) > 1 and all(_is_for_all(paths[index]) for index in order):
        yield from _in_processes(paths, order, jobs=jobs, rank=rank, shown=shown)
        return
    for index in order:
        yield index, _digest_file(paths[index], rank, shown.advance)


def _is_for_all(path: Place) -> bool:
    """Say whether other processes see a file, as they do unless it is in our memory."""
    return not (isinstance(path, Remote) and path.is_of_this_process)


def _size(path: Place) -> int:
    try:
        return path.size() or 0 if isinstance(path, Remote) else path.stat().st_size
    except (OSError, TraceparseError):  # reading it will say so, in its place
        return 0


def _digest_file(path: Place, rank: int | None, on_bytes: Callable[[int], object]) -> Outcome:
    try:
        return [
            digest(trace)
            for trace in read_traces(path, rank=rank, on_bytes=on_bytes, on_disk=True)
        ]
    except TraceparseError as error:
        return error


def _in_processes(
    paths: Sequence[Place],
    order: Sequence[int],
    *,
    jobs: int,
    rank: int | None,
    shown: Progress,
) -> Generator[tuple[int, Outcome]]:
    from traceparse.engine.processes import answers  # noqa: PLC0415 - one process needs none

    work = partial(_work, rank)
    if any(isinstance(path, Remote) for path in paths):
        # what they are forked from may be older than the credentials that are set here
        work = partial(_work_in, dict(os.environ), rank)

    for place, packed in answers(
        work,
        [_task(paths[index]) for index in order],
        num=min(jobs, len(order)),
        told=lambda num_bytes: shown.advance(int(num_bytes)),
    ):
        yield order[place], _unpacked(packed)


def _task(path: Place) -> bytes:
    return os.fsencode(path.url if isinstance(path, Remote) else path)


def _work(rank: int | None, task: bytes, tell: Callable[[bytes], None]) -> bytes:
    """Digest the file whose path is given: what a process does over and over."""
    spare_pandas()
    count = _Count(tell)
    outcome = _digest_file(place_of(os.fsdecode(task)), rank, count.add)
    count.tell()
    return _packed(outcome)


def _work_in(
    environment: Mapping[str, str],
    rank: int | None,
    task: bytes,
    tell: Callable[[bytes], None],
) -> bytes:
    """Digest a file as :func:`_work` does, with the variables of who asked."""
    os.environ.update(environment)
    return _work(rank, task, tell)


class _Count:
    """Bytes that were read, told not each time but every now and then."""

    def __init__(self, tell: Callable[[bytes], None]) -> None:
        self._tell = tell
        self._num = 0
        self._told_at = time.monotonic()

    def add(self, num_bytes: int) -> None:
        self._num += num_bytes
        if time.monotonic() - self._told_at > _TELL_S:
            self.tell()

    def tell(self) -> None:
        self._tell(b"%d" % self._num)
        self._num = 0
        self._told_at = time.monotonic()


def _packed(outcome: Outcome) -> bytes:
    """Write digests as Arrow's stream, which is read in one go and runs nothing."""
    if isinstance(outcome, TraceparseError):
        return _ERROR + json.dumps([type(outcome).__name__, str(outcome)]).encode()
    table = to_table(outcome)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return _DIGESTS + packed


def _unpacked(packed: bytes) -> Outcome:
    kind, content = packed[:1], memoryview(packed)[1:]
    if kind == _ERROR:
        name, text = json.loads(bytes(content))
        refused: TraceparseError = getattr(errors, name)(text)
        return refused
    return from_table(pa.ipc.open_stream(content).read_all())
