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
from typing import NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from traceparse import errors
from traceparse.engine.cache import Cache
from traceparse.errors import TraceparseError
from traceparse.ingest import Place, Remote, place_of, read_traces
from traceparse.rank import RankDigest, digest, from_table, to_table
from traceparse.tables import spare_pandas

__all__ = ["Outcome", "Progress", "digest_file", "digest_files", "packed", "unpacked"]

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
    engine: str = "local",
) -> list[Outcome]:
    """Digest every file, in the order given; an error takes the place of its digests.

    With ``jobs`` above 1 that many processes work, the largest file first; with another
    ``engine`` than ``local``, Dask's workers. What the cache holds is not read again; what it
    does not is put there.
    """
    if engine != "local":
        from traceparse.engine.dask_engine import require_engine  # noqa: PLC0415 - as below

        require_engine(engine)
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
    how = _How(engine, jobs, rank, shown)
    with closing(_digested(paths, missing, sizes, how)) as outcomes:
        for index, outcome in outcomes:
            found[index] = outcome
            entry = entries[index]
            if cache and entry and not isinstance(outcome, TraceparseError):
                cache.put(entry, paths[index], outcome)
            shown.file_done()
    return [found[index] for index in range(len(paths))]


class _How(NamedTuple):
    engine: str
    jobs: int
    rank: int | None
    shown: Progress


def _digested(
    paths: Sequence[Place], order: Sequence[int], sizes: Sequence[int], how: _How
) -> Generator[tuple[int, Outcome]]:
    if how.engine != "local":
        if order:
            yield from _on_workers(paths, order, sizes, how)
        return
    if min(how.jobs, len(order)) > 1 and all(_is_for_all(paths[index]) for index in order):
        yield from _in_processes(paths, order, how)
        return
    for index in order:
        yield index, digest_file(paths[index], how.rank, how.shown.advance)


def _on_workers(
    paths: Sequence[Place], order: Sequence[int], sizes: Sequence[int], how: _How
) -> Generator[tuple[int, Outcome]]:
    from traceparse.engine.dask_engine import digested  # noqa: PLC0415 - not for most

    found = digested(paths, order, engine=how.engine, jobs=how.jobs, rank=how.rank)
    # closed, lest workers stay
    with closing(found) as outcomes:
        for index, outcome in outcomes:
            how.shown.advance(sizes[index])
            yield index, outcome


def _is_for_all(path: Place) -> bool:
    """Say whether other processes see a file, as they do unless it is in our memory."""
    return not (isinstance(path, Remote) and path.is_of_this_process)


def _size(path: Place) -> int:
    try:
        return path.size() or 0 if isinstance(path, Remote) else path.stat().st_size
    except (OSError, TraceparseError):  # reading it will say so, in its place
        return 0


def digest_file(path: Place, rank: int | None, on_bytes: Callable[[int], object]) -> Outcome:
    """Digest what a file holds, or return why that cannot be."""
    try:
        return [
            digest(trace)
            for trace in read_traces(path, rank=rank, on_bytes=on_bytes, on_disk=True)
        ]
    except TraceparseError as error:
        return error


def _in_processes(
    paths: Sequence[Place], order: Sequence[int], how: _How
) -> Generator[tuple[int, Outcome]]:
    from traceparse.engine.processes import answers  # noqa: PLC0415 - one process needs none

    work = partial(_work, how.rank)
    if any(isinstance(path, Remote) for path in paths):
        # what they are forked from may be older than the credentials that are set here
        work = partial(_work_in, dict(os.environ), how.rank)

    for place, packed in answers(
        work,
        [_task(paths[index]) for index in order],
        num=min(how.jobs, len(order)),
        told=lambda num_bytes: how.shown.advance(int(num_bytes)),
    ):
        yield order[place], unpacked(packed)


def _task(path: Place) -> bytes:
    return os.fsencode(path.url if isinstance(path, Remote) else path)


def _work(rank: int | None, task: bytes, tell: Callable[[bytes], None]) -> bytes:
    """Digest the file whose path is given: what a process does over and over."""
    spare_pandas()
    count = _Count(tell)
    outcome = digest_file(place_of(os.fsdecode(task)), rank, count.add)
    count.tell()
    return packed(outcome)


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


def packed(outcome: Outcome) -> bytes:
    """Write digests as Arrow's stream, which is read in one go and runs nothing."""
    if isinstance(outcome, TraceparseError):
        return _ERROR + json.dumps([type(outcome).__name__, str(outcome)]).encode()
    table = to_table(outcome)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return _DIGESTS + packed


def unpacked(packed: bytes) -> Outcome:
    """Read what :func:`packed` wrote."""
    kind, content = packed[:1], memoryview(packed)[1:]
    if kind == _ERROR:
        name, text = json.loads(bytes(content))
        refused: TraceparseError = getattr(errors, name)(text)
        return refused
    return from_table(pa.ipc.open_stream(content).read_all())
