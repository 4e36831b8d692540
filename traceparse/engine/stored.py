"""Traces, or a report of them that was stored: commands that need a report take either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traceparse.errors import UsageError
from traceparse.run.stored_report import is_report

__all__ = ["stored_in"]


def stored_in(paths: str | Path | Sequence[str | Path]) -> Path | None:
    """Return the stored report that was given in the place of traces; ``None`` for traces.

    Raises
    ------
    UsageError
        It is given together with something else, which would be another job's.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found = [path for path in map(Path, given) if path.is_file() and is_report(path)]
    if not found:
        return None
    if len(given) > 1:
        raise UsageError(
            f"{found[0]}: is a stored report, which stands alone; give it or traces, not both"
        )
    return found[0]
