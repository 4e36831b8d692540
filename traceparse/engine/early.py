"""What can be settled before traces are found: where digests are kept, who may be needed.

Whether processes will be needed to read is a guess here. To know it, the package that finds
and reads traces has to be imported, which takes as long as they take to be there. A wrong guess
costs either that time or a process in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["default_folder", "get_ready"]


def default_folder() -> Path:
    """Return where this user's programs keep what they can make again."""
    from platformdirs import user_cache_path  # noqa: PLC0415 - not for who keeps nothing

    return user_cache_path("traceparse")


def get_ready(paths: Sequence[str], *, jobs: int, cache: Path | None) -> None:
    """Start what reading processes are forked from, if they are likely to be needed.

    They are if several may work, on what is not just one file, and none of it can be in the
    cache, as there is nothing in it. Nothing is lost but time where they are not started here.
    """
    is_one_file = len(paths) == 1 and Path(paths[0]).is_file()
    if jobs > 1 and not is_one_file and (cache is None or _is_empty(cache)):
        from traceparse.engine.processes import get_ready as start  # noqa: PLC0415 - if at all

        start()


def _is_empty(folder: Path) -> bool:
    try:
        return next(folder.iterdir(), None) is None
    except OSError:  # whoever uses it will say so
        return True
