"""The map stage on this machine: one trace file at a time, or one a process.

``file -> RankDigest`` is a pure function of the file, so processes share nothing but a count
of bytes for the progress bar. A file that fails, fails alone.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Protocol, TypeAlias

import pyarrow as pa

from traceparse.engine.cache import Cache
from traceparse.errors import TraceparseError
from traceparse.ingest import read_traces
from traceparse.rank import RankDigest, digest, from_table, to_table
from traceparse.tables import spare_pandas

__all__ = ["Outcome", "Progress", "digest_files"]

Outcome: TypeAlias = list[RankDigest] | TraceparseError
_Packed: TypeAlias = bytes | TraceparseError
_Counter: TypeAlias = "Synchronized[int]"
_POLL_S = 0.1


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
    paths: Sequence[Path],
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
    for index, outcome in _digested(paths, missing, jobs=jobs, rank=rank, shown=shown):
        found[index] = outcome
        entry = entries[index]
        if cache and entry and not isinstance(outcome, TraceparseError):
            cache.put(entry, paths[index], outcome)
        shown.file_done()
    return [found[index] for index in range(len(paths))]


def _digested(
    paths: Sequence[Path],
    order: Sequence[int],
    *,
    jobs: int,
    rank: int | None,
    shown: Progress,
) -> Iterator[tuple[int, Outcome]]:
    if min(jobs, len(order)) > 1:
        yield from _in_processes(paths, order, jobs=jobs, rank=rank, shown=shown)
        return
    for index in order:
        yield index, _digest_file(paths[index], rank, shown.advance)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # reading it will say so, in its place
        return 0


def _digest_file(path: Path, rank: int | None, on_bytes: Callable[[int], object]) -> Outcome:
    try:
        return [
            digest(trace)
            for trace in read_traces(path, rank=rank, on_bytes=on_bytes, on_disk=True)
        ]
    except TraceparseError as error:
        return error


def _in_processes(
    paths: Sequence[Path],
    order: Sequence[int],
    *,
    jobs: int,
    rank: int | None,
    shown: Progress,
) -> Iterator[tuple[int, Outcome]]:
    # spawn: a forked copy of a process that has run Arrow's threads can hang
    context = multiprocessing.get_context("spawn")
    read = context.Value("q", 0)
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(order)), mp_context=context, initializer=_share, initargs=(read,)
    )
    try:
        with _workers_ignore_interrupts():
            running: dict[Future[_Packed], int] = {
                pool.submit(_digest_counted, paths[index], rank): index for index in order
            }
        yield from _as_they_end(running, read, shown)
    except BrokenProcessPool as error:
        raise TraceparseError(
            "a process that read traces was killed (out of memory?), so there is no report; "
            "try again with --jobs 1"
        ) from error
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _workers_ignore_interrupts() -> Iterator[None]:
    """Let processes that start now leave Ctrl-C to their parent, which ends them.

    Ignored signals are inherited; handlers are not. Only a main thread may change them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _as_they_end(
    running: dict[Future[_Packed], int], read: _Counter, shown: Progress
) -> Iterator[tuple[int, Outcome]]:
    reported = 0
    while running:
        done, _ = wait(running, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        now = read.value
        shown.advance(now - reported)
        reported = now
        for future in done:
            yield running.pop(future), _unpacked(future.result())


_bytes_read: list[_Counter] = []  # in a worker: the count that it shares with its parent


def _share(read: _Counter) -> None:
    spare_pandas()
    _bytes_read[:] = [read]


def _digest_counted(path: Path, rank: int | None) -> _Packed:
    read = _bytes_read[0]

    def count(num_bytes: int) -> None:
        with read.get_lock():
            read.value += num_bytes

    outcome = _digest_file(path, rank, count)
    return outcome if isinstance(outcome, TraceparseError) else _packed(outcome)


def _packed(digests: Sequence[RankDigest]) -> bytes:
    """Write digests as Arrow's stream, which is read in one go and runs nothing."""
    table = to_table(digests)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(packed: _Packed) -> Outcome:
    if isinstance(packed, TraceparseError):
        return packed
    return from_table(pa.ipc.open_stream(packed).read_all())
