"""All digests of one job together: what the job did as a whole, as one report."""

from __future__ import annotations

from traceparse.run.asked import Asked, ask
from traceparse.run.assemble import assemble
from traceparse.run.compare import Comparison, compare_of, require_sides
from traceparse.run.report import (
    DeviceReport,
    Report,
    RunInfo,
    StepReport,
    Summary,
)
from traceparse.run.run import Run, gather
from traceparse.run.saving import FORMATS, Rendered, formats, write_whole
from traceparse.run.scaling import MODES, ScaledRun, Scaling, require_runs, scaling_of

__all__ = [
    "FORMATS",
    "MODES",
    "Asked",
    "Comparison",
    "DeviceReport",
    "Rendered",
    "Report",
    "Run",
    "RunInfo",
    "ScaledRun",
    "Scaling",
    "StepReport",
    "Summary",
    "ask",
    "assemble",
    "compare_of",
    "formats",
    "gather",
    "require_runs",
    "require_sides",
    "scaling_of",
    "write_whole",
]
