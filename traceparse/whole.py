"""Files that no reader ever sees half of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident

__all__ = ["whole"]


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give the block a temporary name to write to, and rename what it wrote when it ends.

    If the block fails, what was there before stays. The name is this process's and thread's
    own, as others may write the same file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
