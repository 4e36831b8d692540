"""FLOP, bytes and peaks. Knows operators, shapes and accelerators; knows nothing of traces."""

from __future__ import annotations

from traceparse.work.call import Call, NotKnownError, Work
from traceparse.work.operators import Formula, formulas, work_of

__all__ = ["Call", "Formula", "NotKnownError", "Work", "formulas", "work_of"]
