"""Traces, or a report of them that was stored: commands that need a report take either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traceparse.errors import UsageError
from traceparse.ingest import Place, Remote, place_of
from traceparse.run.stored_report import is_report

__all__ = ["stored_in"]


def stored_in(paths: str | Path | Sequence[str | Path]) -> Place | None:
    """Return the stored report that was given in the place of traces; ``None`` for traces.

    Raises
    ------
    UsageError
        It is given together with something else, which would be another job's.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found = [place for place in map(place_of, given) if _may_be_one(place) and is_report(place)]
    if not found:
        return None
    if len(given) > 1:
        raise UsageError(
            f"{found[0]}: is a stored report, which stands alone; give it or traces, not both"
        )
    return found[0]


def _may_be_one(place: Place) -> bool:
    """Tell what a URL may be by its name alone, as to look would take a request."""
    if isinstance(place, Remote):
        return place.name.endswith(".json") and not any(mark in place.name for mark in "*?[")
    return place.is_file()
