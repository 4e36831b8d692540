"""Map over ranks, then reduce: from paths to a report, on one machine.

Loaded when it is first used: processes that read traces need no report.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceparse.engine.between import compare, scaling
    from traceparse.engine.early import default_folder, readers_ready
    from traceparse.engine.local import Progress
    from traceparse.engine.pipeline import Explored, analyze, explore, read

__all__ = [
    "Explored",
    "Progress",
    "analyze",
    "compare",
    "default_folder",
    "explore",
    "read",
    "readers_ready",
    "scaling",
]

_HOME = {
    "Explored": "traceparse.engine.pipeline",
    "Progress": "traceparse.engine.local",
    "analyze": "traceparse.engine.pipeline",
    "default_folder": "traceparse.engine.early",
    "compare": "traceparse.engine.between",
    "explore": "traceparse.engine.pipeline",
    "readers_ready": "traceparse.engine.early",
    "read": "traceparse.engine.pipeline",
    "scaling": "traceparse.engine.between",
}


def __getattr__(name: str) -> object:
    """Load a name from the module it lives in."""
    if name not in _HOME:
        raise AttributeError(f"module 'traceparse.engine' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
