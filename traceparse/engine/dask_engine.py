"""The map stage on Dask's workers: of this machine, or of the cluster of a scheduler.

Workers are told paths and answer digests, as Arrow's stream: what crosses the network is bytes
of ours, which Dask moves and nobody runs. A worker that is lost loses nothing, as its files are
given to others; a file that takes one worker after another with it fails alone. The cache is
that of who asked, and workers keep nothing.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import sys
import tempfile
import time
import traceback
import uuid
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from traceparse import __version__
from traceparse.engine.cache import moved, source
from traceparse.engine.local import Outcome, digest_file, packed, unpacked
from traceparse.engine.processes import held
from traceparse.errors import (
    InputError,
    MissingExtraError,
    TraceparseError,
    UsageError,
    one_line,
)
from traceparse.ingest import Place, Remote, path_text, place_of
from traceparse.urls import redacted, shown

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["digested", "require_engine"]

_ADDRESS: Final = re.compile(r"dask://((?:tls://|tcp://)?[^\s/@]+:\d{1,5})")
_WORKERS_S: Final = 600  # that a queue may take to start one, at first or after the last ended
_LOOK_S: Final = 5  # between looks whether there is any, while nothing comes
_FAILED: Final = b"f"
_FRAMES: Final = 8  # of a failure that are told
_OTHER: Final = b"o"  # the answer of a worker whose code would make other digests


def require_engine(engine: str) -> None:
    """Refuse what names no engine.

    Raises
    ------
    UsageError
        It is none.
    """
    if engine != "dask" and _ADDRESS.fullmatch(engine) is None:
        raise UsageError(f"--engine {shown(engine)}: give local, dask or dask://HOST:PORT")


def digested(
    paths: Sequence[Place],
    order: Sequence[int],
    *,
    engine: str,
    jobs: int,
    rank: int | None,
) -> Generator[tuple[int, Outcome]]:
    """Yield the place of each file and its outcome, as they come; files are begun in order.

    ``engine`` is ``dask``, which starts as many workers as there are ``jobs`` and ends them, or
    ``dask://HOST:PORT``, a scheduler whose workers see the files.

    Raises
    ------
    MissingExtraError
        Dask is not installed.
    UsageError
        Workers cannot see a file by what it is, or Dask has no certificate for ``tls://``.
    TraceparseError
        The scheduler does not answer, has no workers, or theirs is another traceparse.
    """
    for index in order:
        path = paths[index]
        if isinstance(path, Remote) and path.is_of_this_process:
            raise UsageError(
                f"{path}: is in the memory of this process, where Dask's workers do not see "
                f"it; use --engine local"
            )
    with _connected(engine, min(jobs, len(order))) as client:
        ask = partial(_ask, client, uuid.uuid4().hex, paths, rank)
        futures = {ask(index): index for index in order}
        suspects = []
        for index, outcome in _outcomes(client, futures, paths, engine):
            if outcome is None:
                suspects.append(index)
            else:
                yield index, outcome
        # each by itself: what waits beside a file that kills a worker has lost one as well
        for index in suspects:
            yield from _alone(client, ask(index), index, paths, engine)


def digest_there(task: bytes, rank: int | None, expected: bytes) -> bytes:
    """Digest the file whose path is given: what a worker runs."""
    if source() != expected:
        return _OTHER + __version__.encode()
    path = place_of(os.fsdecode(task))
    if isinstance(path, Path) and not path.exists():
        return packed(
            InputError(
                f"{path}: is not there for the Dask worker on {socket.gethostname()}; put "
                f"traces where all workers see them: a shared folder, or s3://"
            )
        )
    try:
        return packed(digest_file(path, rank, lambda _: None))
    except Exception:  # noqa: BLE001 - told to who asked, as a failure of ours
        # an error that Dask cannot pickle, such as one too deep, would never arrive
        return _FAILED + traceback.format_exc(limit=-_FRAMES).encode("utf-8", "replace")


def _task(path: Place) -> bytes:
    """Name a file as a worker finds it, which may run in another folder."""
    return os.fsencode(path.url if isinstance(path, Remote) else path.absolute())


def _ask(
    client: Client, run: str, paths: Sequence[Place], rank: int | None, index: int
) -> Future:
    """Have a file digested; a name that was used before would give what it gave then."""
    name = f"traceparse-{run}-{index}-{uuid.uuid4().hex}"
    return client.submit(digest_there, _task(paths[index]), rank, source(), key=name)


def _outcomes(
    client: Client, futures: dict[Future, int], paths: Sequence[Place], engine: str
) -> Iterator[tuple[int, Outcome | None]]:
    """Yield places and outcomes as they come, ``None`` where workers were killed."""
    done: SimpleQueue[Future] = SimpleQueue()
    for future in futures:
        future.add_done_callback(done.put)
    while futures:
        future = _next(done, client, engine)
        index = futures.pop(future)
        outcome = _outcome(future, paths[index], engine)
        future.release()  # lest its bytes stay in the worker's memory
        yield index, outcome


def _next(done: SimpleQueue[Future], client: Client, engine: str) -> Future:
    """Wait for what is done next, as long as there are workers or some may still come.

    They may be started only now that there is work, and end before it does: at the end of the
    time that a queue gave them, all at once.
    """
    seen_s = time.monotonic()
    while True:
        try:
            return done.get(timeout=min(_LOOK_S, _WORKERS_S))
        except Empty:
            if client.scheduler_info()["workers"]:
                seen_s = time.monotonic()
            elif time.monotonic() - seen_s >= _WORKERS_S:
                raise TraceparseError(
                    f"--engine {engine}: its scheduler has had no worker for {_WORKERS_S} s; "
                    f"start some with `dask worker`"
                ) from None


def _alone(
    client: Client, future: Future, index: int, paths: Sequence[Place], engine: str
) -> Iterator[tuple[int, Outcome]]:
    for place, outcome in _outcomes(client, {future: index}, paths, engine):
        killed = InputError(
            f"{paths[index]}: each Dask worker that read it was killed (out of memory?), until "
            f"Dask gave it up; give workers more memory"
        )
        yield place, killed if outcome is None else outcome


def _outcome(future: Future, path: Place, engine: str) -> Outcome | None:
    from distributed import KilledWorker  # noqa: PLC0415 - not for the local engine

    try:
        answer = future.result()
    except KilledWorker:
        return None
    except CancelledError as error:
        raise TraceparseError(
            f"--engine {engine}: the Dask scheduler is gone or has dropped the work, so there "
            f"is no report; look at its log, and try again"
        ) from error
    if answer[:1] == _FAILED:
        print(redacted(answer[1:].decode()), file=sys.stderr)  # noqa: T201 - as any failure of ours
        raise TraceparseError(
            f"{path}: a Dask worker that read it failed, as it says above, so there is no "
            f"report"
        )
    if answer[:1] == _OTHER:
        raise TraceparseError(
            f"--engine {engine}: a worker has another traceparse ({answer[1:].decode()}; here "
            f"{__version__}) or other formulas, so its numbers might differ; install the same "
            f"on both"
        )
    return _as_given(unpacked(answer), path)


def _as_given(outcome: Outcome, path: Place) -> Outcome:
    """Return an outcome in which the file has the path that was given, as it has elsewhere."""
    if isinstance(path, Remote):
        return outcome
    if isinstance(outcome, TraceparseError):
        return type(outcome)(str(outcome).replace(str(path.absolute()), str(path)))
    before, now = path_text(path.absolute()), path_text(path)
    return [moved(digest, before, now) for digest in outcome]


@contextmanager
def _connected(engine: str, num_workers: int) -> Iterator[Client]:
    """Connect to a scheduler, or start one with workers; what was started ends."""
    address = _ADDRESS.fullmatch(engine)
    try:
        import dask  # noqa: PLC0415 - not for the local engine
        from distributed import Client, LocalCluster  # noqa: PLC0415 - as above
        from distributed.utils import silence_logging_cmgr  # noqa: PLC0415 - as above
    except ImportError as error:
        raise MissingExtraError(
            f"--engine {engine} takes Dask, which is not installed: "
            f"pip install 'traceparse[dask]'"
        ) from error
    if address is None:
        with ExitStack() as stack:
            enter = stack.enter_context
            folder = enter(tempfile.TemporaryDirectory(prefix="traceparse-dask-"))
            enter(dask.config.set({"temporary-directory": folder}))
            # Ctrl-C is for this process: workers would complain, and end all the same
            resource_tracker.ensure_running()  # which lets go of signals that are held
            with held(signal.SIGINT):
                cluster = enter(
                    LocalCluster(
                        n_workers=num_workers,
                        threads_per_worker=1,
                        host="127.0.0.1",
                        local_directory=folder,
                        silence_logs=logging.CRITICAL,
                        # no page, and a port that nobody else has
                        scheduler_kwargs={
                            "dashboard": False,
                            "dashboard_address": "127.0.0.1:0",
                        },
                    )
                )
            yield enter(Client(cluster, set_as_default=False))
        return
    # of a scheduler that is gone it would print what we say in a line
    with silence_logging_cmgr(logging.CRITICAL), _client(address[1], engine) as client:
        yield client


def _client(address: str, engine: str) -> Client:
    from distributed import Client  # noqa: PLC0415 - not for the local engine

    where = address if "://" in address else f"tcp://{address}"
    try:
        if where.startswith("tls://") and not _has_certificate():
            raise UsageError(
                f"--engine {engine}: Dask's settings name no certificate; set "
                f"distributed.comm.tls.ca-file, .client.cert and .client.key, in "
                f"~/.config/dask or as DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on"
            )
        return Client(where, set_as_default=False)
    except (OSError, ValueError) as error:
        raise TraceparseError(
            f"--engine {engine}: no Dask scheduler answers there ({one_line(error)[:200]}); "
            f"start one with `dask scheduler`, or check the address"
        ) from error


def _has_certificate() -> bool:
    """Say whether Dask's settings name one, or what makes one: without it hangs, then fails."""
    import dask  # noqa: PLC0415 - not for the local engine
    from distributed import Security  # noqa: PLC0415 - as above

    if dask.config.get("distributed.client.security-loader", None) is not None:
        return True
    return Security().get_connection_args("client").get("ssl_context") is not None
