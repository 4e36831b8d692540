"""What every command that reads traces takes for it, and does before it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import typer

from traceparse.errors import UsageError

__all__ = [
    "Cache",
    "Debug",
    "Engine",
    "Jobs",
    "NoCache",
    "Quiet",
    "Reading",
    "Strict",
    "reading",
]

Jobs: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Processes that read traces; 0: one a processor.")
]
Engine: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="local|dask[://HOST:PORT]",
        help="Who reads traces: processes of this machine, Dask's workers on it, or those of "
        "the Dask scheduler that is named.",
    ),
]
Cache: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Keep what was digested here, not in the user's cache folder."
    ),
]
NoCache: TypeAlias = Annotated[
    bool, typer.Option("--no-cache", help="Read every trace, and keep nothing.")
]
Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="Refuse input that is incomplete or damaged.")
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no notes on standard error.")
]
Debug: TypeAlias = Annotated[
    bool, typer.Option("--debug", help="Show a traceback when something fails.")
]


class Reading(NamedTuple):
    """How traces are read: by whom, how many, and where digests are kept, if anywhere."""

    jobs: int
    engine: str
    cache: Path | None


@contextmanager
def reading(
    paths: Sequence[str],
    *,
    jobs: int,
    cache: Path | None,
    no_cache: bool,
    engine: str = "local",
) -> Iterator[Reading]:
    """Start the processes that read, while this one goes on; pandas is spared.

    Raises
    ------
    UsageError
        A cache is named, and none is wanted.
    """
    if cache and no_cache:
        raise UsageError("--cache and --no-cache contradict each other; give one of them")
    from traceparse.engine import default_folder, readers_ready

    jobs = jobs or os.cpu_count() or 1
    folder = None if no_cache else cache or default_folder()
    with readers_ready(paths, jobs=jobs if engine == "local" else 1, cache=folder):
        # numpy would start threads for linear algebra, of which there is none
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from traceparse.tables import spare_pandas

        spare_pandas()
        yield Reading(jobs, engine, folder)
