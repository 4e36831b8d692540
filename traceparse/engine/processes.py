"""Processes that answer messages: there early, one task each at a time, and ended for certain.

They are forked from a server that has imported what they need and has run nothing: never from
this process, as a copy of one that has run Arrow's threads can hang. Where a system has no such
server, each is started on its own. They keep no files, and hold no end of a pipe but their own:
so they may be killed at any instant, and end by themselves once this process is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from traceparse.errors import TraceparseError

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

    _Context: TypeAlias = ForkServerContext | SpawnContext

__all__ = ["Work", "answers", "end_server", "get_ready", "held"]

Tell: TypeAlias = Callable[[bytes], None]
Work: TypeAlias = Callable[[bytes, Tell], bytes]  # a task to its answer, telling how far it is

_HAS_SERVER = "forkserver" in multiprocessing.get_all_start_methods()
_NEEDED = "traceparse.engine.nursery"  # imported by the server, in place of each of its forks
_TOLD, _ANSWER = b"+", b"="


def get_ready() -> None:
    """Start what the processes are forked from, to import what they need in the meantime."""
    if not _HAS_SERVER:
        return
    from multiprocessing import forkserver, resource_tracker  # noqa: PLC0415 - not everywhere

    resource_tracker.ensure_running()  # which lets go of signals that are held
    with held(signal.SIGINT), _one_thread():
        forkserver.set_forkserver_preload([_NEEDED])
        forkserver.ensure_running()


def end_server() -> None:
    """End what the processes are forked from, if it runs: for a program that is about to end.

    By itself it would notice that, and then take its time, with our output still open: whoever
    reads that to its end would wait. It has nothing to undo.
    """
    if not _HAS_SERVER:
        return
    from multiprocessing.forkserver import _forkserver  # noqa: PLC0415 - as above

    server: Any = _forkserver
    if server._forkserver_pid is not None:
        os.kill(server._forkserver_pid, signal.SIGKILL)
        server._stop()


@contextmanager
def held(*signals: signal.Signals) -> Iterator[None]:
    """Hold signals to this thread back; a process that starts meanwhile never gets them.

    So Ctrl-C, which goes to every process of a terminal, is for this one to act on.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let numpy start no threads for linear algebra, of which there is none, to fork beside."""
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


def answers(
    work: Work, tasks: Sequence[bytes], *, num: int, told: Tell
) -> Generator[tuple[int, bytes]]:
    """Yield the place of each task and its answer, as they come; tasks are begun in order.

    Parameters
    ----------
    work
        What the processes run: a function of a module.
    num
        How many of them there are.
    told
        Is given what they tell while they work.

    Raises
    ------
    TraceparseError
        One of them was killed, or failed.
    """
    with _team(work, num) as workers:
        waiting = iter(enumerate(tasks))
        busy: dict[Connection, int] = {}
        for connection in workers:
            _feed(connection, waiting, busy)
        while busy:
            for connection in cast("list[Connection]", wait(list(busy))):
                message = _heard(connection, workers[connection])
                if message[:1] == _TOLD:
                    told(message[1:])
                    continue
                place = busy.pop(connection)
                _feed(connection, waiting, busy)  # first, as it need not wait for this one
                yield place, message[1:]


def _feed(
    connection: Connection, waiting: Iterator[tuple[int, bytes]], busy: dict[Connection, int]
) -> None:
    place, task = next(waiting, (None, b""))
    if place is not None:
        busy[connection] = place
        with suppress(OSError):  # it is gone, as who hears from it finds
            connection.send_bytes(task)


_Process: TypeAlias = multiprocessing.process.BaseProcess


def _heard(connection: Connection, process: _Process) -> bytes:
    try:
        return connection.recv_bytes()
    except (EOFError, OSError) as error:
        process.join()
        if process.exitcode == 1:
            raise TraceparseError(
                "a process that read traces failed, as it says above, so there is no report"
            ) from error
        raise TraceparseError(
            "a process that read traces was killed (out of memory?), so there is no report; "
            "try again with --jobs 1"
        ) from error


@contextmanager
def _team(work: Work, num: int) -> Iterator[dict[Connection, _Process]]:
    """Start processes, and see to it that they end, however the block does."""
    get_ready()
    get_context = multiprocessing.get_context
    context = get_context("forkserver") if _HAS_SERVER else get_context("spawn")
    workers: dict[Connection, _Process] = {}
    try:
        # one that is not told what it is for, as this is interrupted here, would complain
        with held(signal.SIGINT, signal.SIGTERM):
            for _ in range(num):
                connection, process = _start(context, work)
                workers[connection] = process
        yield workers
    except BaseException:
        for process in workers.values():
            process.kill()
        raise
    finally:
        for connection in workers:
            connection.close()
        for process in workers.values():
            process.join()


def _start(context: _Context, work: Work) -> tuple[Connection, _Process]:
    here, there = context.Pipe()
    process = context.Process(target=_answer, args=(there, work), daemon=True)
    process.start()
    there.close()
    return here, process


def _answer(connection: Connection, work: Work) -> None:
    """Answer tasks until nobody asks: what a process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where somebody else started the server

    def tell(message: bytes) -> None:
        connection.send_bytes(_TOLD + message)

    with suppress(BrokenPipeError, ConnectionResetError):  # who asked is gone
        while (task := _next_task(connection)) is not None:
            connection.send_bytes(_ANSWER + work(task, tell))


def _next_task(connection: Connection) -> bytes | None:
    try:
        return connection.recv_bytes()
    except EOFError:
        return None
