"""Map over ranks, then reduce: from paths to a report, on one machine."""

from __future__ import annotations

from traceparse.engine.cache import default_folder
from traceparse.engine.local import Progress
from traceparse.engine.pipeline import analyze, read

__all__ = ["Progress", "analyze", "default_folder", "read"]
