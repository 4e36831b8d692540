"""All rules, in one list: each looks at a run, and finds what it is about, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from traceparse.run.findings.captured import missing_shapes, missing_steps
from traceparse.run.findings.communication import (
    communication_bound,
    low_overlap,
    tiny_collectives,
)
from traceparse.run.findings.finding import Finding
from traceparse.run.findings.host import data_loader, launch_gaps, synchronizing_calls
from traceparse.run.findings.memory import memory_bound_kernels, pageable_copies
from traceparse.run.findings.pipeline import pipeline_imbalance
from traceparse.run.findings.products import (
    fp32_matmuls,
    recompute_cost,
    tf32_matmuls,
)
from traceparse.run.findings.shapes import gemm_shapes
from traceparse.run.findings.slow import slow_kernels
from traceparse.run.findings.view import View

__all__ = ["RULES", "found_in"]

Rule: TypeAlias = Callable[[View], Iterator[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    communication_bound,
    low_overlap,
    tiny_collectives,
    pipeline_imbalance,
    launch_gaps,
    data_loader,
    synchronizing_calls,
    memory_bound_kernels,
    pageable_copies,
    gemm_shapes,
    slow_kernels,
    fp32_matmuls,
    tf32_matmuls,
    recompute_cost,
    missing_shapes,
    missing_steps,
)


def found_in(view: View) -> Iterator[Finding]:
    """Return what all rules find in a run."""
    for rule in RULES:
        yield from rule(view)
