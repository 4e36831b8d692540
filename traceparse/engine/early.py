"""What can be settled before traces are found: where digests are kept, who may be needed.

Whether processes will be needed to read is a guess here. To know it, the package that finds
and reads traces has to be imported, which takes as long as they take to be there. A wrong guess
costs either that time or a process in vain.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from traceparse.urls import is_url

__all__ = ["default_folder", "readers_ready"]


_ENDINGS = (".json", ".json.gz", ".json.zst")


def default_folder() -> Path:
    """Return where this user's programs keep what they can make again."""
    from platformdirs import user_cache_path  # noqa: PLC0415 - not for who keeps nothing

    return user_cache_path("traceparse")


@contextmanager
def readers_ready(paths: Sequence[str], *, jobs: int, cache: Path | None) -> Iterator[None]:
    """Start what reading processes are forked from, if they are likely to be needed.

    They are if several may work, on what is not just one file, and none of it can be in the
    cache, as there is nothing in it. Else they are started once it is known. When the block
    ends, all of it has ended: for programs that run nothing else.
    """
    is_one_file = len(paths) == 1 and _is_file(paths[0])
    if jobs > 1 and not is_one_file and (cache is None or _is_empty(cache)):
        from traceparse.engine.processes import get_ready  # noqa: PLC0415 - if at all

        get_ready()
    try:
        yield
    finally:
        if processes := sys.modules.get("traceparse.engine.processes"):
            processes.end_server()


def _is_file(path: str) -> bool:
    if is_url(path):  # which would have to be asked: its name tells well enough for a guess
        return path.lower().endswith(_ENDINGS) and not any(mark in path for mark in "*?[")
    return Path(path).is_file()


def _is_empty(folder: Path) -> bool:
    try:
        return next(folder.iterdir(), None) is None
    except OSError:  # whoever uses it will say so
        return True
