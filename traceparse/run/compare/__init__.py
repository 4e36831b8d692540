"""``compare``: two runs or groups of runs, and what changed between them."""

from __future__ import annotations

from traceparse.run.compare.comparison import (
    Comparison,
    SideSummary,
    Verdict,
    compare_of,
    require_sides,
)

__all__ = ["Comparison", "SideSummary", "Verdict", "compare_of", "require_sides"]
