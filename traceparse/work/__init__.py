"""FLOP, bytes and peaks. Knows operators, shapes and accelerators; knows nothing of traces."""

from __future__ import annotations

from traceparse.work.accelerators import (
    DTYPES,
    Accelerator,
    Dtype,
    accelerators,
    find,
    find_one,
    load_file,
    parse_peak,
)
from traceparse.work.call import Call, NotKnownError, Work
from traceparse.work.device import read_device
from traceparse.work.dtypes import MAYBE_TF32, counted_dtype, tensor_bytes
from traceparse.work.identify import Identified, identify
from traceparse.work.operators import TEMPLATES, Formula, added_formulas, formulas, work_of
from traceparse.work.traffic import input_bytes

__all__ = [
    "DTYPES",
    "MAYBE_TF32",
    "TEMPLATES",
    "Accelerator",
    "Call",
    "Dtype",
    "Formula",
    "Identified",
    "NotKnownError",
    "Work",
    "accelerators",
    "added_formulas",
    "counted_dtype",
    "find",
    "find_one",
    "formulas",
    "identify",
    "input_bytes",
    "load_file",
    "parse_peak",
    "read_device",
    "tensor_bytes",
    "work_of",
]
