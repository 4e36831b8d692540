"""Files that no reader ever sees half of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident

__all__ = ["whole", "whole_new"]


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give the block a temporary name to write to, and rename what it wrote when it ends.

    If the block fails, what was there before stays. The name is this process's and thread's
    own, as others may write the same file.
    """
    temporary = _temporary(path)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_new(path: Path) -> Iterator[Path]:
    """Do the same, and never replace a file that is there.

    Raises
    ------
    FileExistsError
        There is one, if need be since a moment ago.
    """
    temporary = _temporary(path)
    try:
        yield temporary
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: then a moment is left to chance
            if path.exists():
                raise FileExistsError(path) from None
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}.tmp")
