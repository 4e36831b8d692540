"""FLOP, bytes and peaks. Knows operators, shapes and accelerators; knows nothing of traces."""

from __future__ import annotations

from traceparse.work.accelerators import (
    DTYPES,
    Accelerator,
    Dtype,
    accelerators,
    find,
    load_file,
    parse_peak,
)
from traceparse.work.identify import Identified, identify

__all__ = [
    "DTYPES",
    "Accelerator",
    "Dtype",
    "Identified",
    "accelerators",
    "find",
    "identify",
    "load_file",
    "parse_peak",
]
