"""All digests of one job together: what the job did as a whole, as one report."""

from __future__ import annotations

from traceparse.run.asked import Asked, ask
from traceparse.run.assemble import assemble
from traceparse.run.report import (
    DeviceReport,
    Report,
    RunInfo,
    StepReport,
    Summary,
    write_whole,
)
from traceparse.run.run import Run, gather

__all__ = [
    "Asked",
    "DeviceReport",
    "Report",
    "Run",
    "RunInfo",
    "StepReport",
    "Summary",
    "ask",
    "assemble",
    "gather",
    "write_whole",
]
