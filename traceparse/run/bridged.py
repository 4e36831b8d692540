"""What a run asks of bridges to other tools, which this room must not import.

A bridge is an entry point of group ``traceparse.bridges``; ours are in ``traceparse.bridge``.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from traceparse.errors import MissingExtraError
from traceparse.tables import ArrowTable

if TYPE_CHECKING:
    from traceparse.run.run import Run

__all__ = ["queried"]

_BRIDGES = "traceparse.bridges"


def queried(run: Run, query: str) -> ArrowTable:
    """Return what a query finds in a run: the bridge ``sql`` is a function of the two.

    Raises
    ------
    MissingExtraError
        No installed package has that bridge.
    """
    for point in entry_points(group=_BRIDGES, name="sql"):
        found: ArrowTable = point.load()(run, query)
        return found
    raise MissingExtraError(
        "no installed package queries a run; install traceparse again: "
        "pip install 'traceparse[sql]'"
    )
