"""What a capture left out, so that this report cannot tell it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from traceparse.run.findings.finding import Finding, finding
from traceparse.run.findings.view import View
from traceparse.units import format_number_of

__all__ = ["missing_shapes", "missing_steps"]

_FEWEST_STEPS: Final = 3


def missing_shapes(view: View) -> Iterator[Finding]:
    """Find traces that tell no operators with shapes."""
    if view.executed_flop is not None:
        return
    who = "no trace tells" if view.roofline is None else "not all traces tell"
    yield finding(
        "missing_shapes",
        "info",
        f"{who} the shapes of its operators, so FLOP, HFU and MFU are unknown",
        "without them nobody can say what compute bounds and what memory does, nor which "
        "products are slow",
        "profile with record_shapes=True, which `traceparse capture` does; it costs little "
        "(with_stack and profile_memory cost much, and are not needed)",
    )


def missing_steps(view: View) -> Iterator[Finding]:
    """Find captures of too few whole steps to tell a habit from an accident."""
    if view.basis == "complete_steps" and view.num_steps >= _FEWEST_STEPS:
        return
    how = (
        "record at least three steps after warm-up: `traceparse capture --steps 10-13`, or "
        "torch.profiler.schedule(wait=5, warmup=2, active=4) with prof.step() after every step"
    )
    if view.basis == "windows":
        title = "no trace has step markers, so whole windows are judged"
        evidence = "warm-up, loading and the profiler's own start count like training"
    elif view.basis == "all_steps":
        title = "no step is complete on every rank"
        evidence = "all steps are judged, also the last one, whose end nothing marks"
    else:
        title = f"only {format_number_of(view.num_steps, 'step')} can be judged"
        evidence = (
            f"{format_number_of(view.num_steps, 'step')} complete on every rank; a slow one "
            f"among so few weighs as much as all others"
        )
    yield finding("missing_steps", "info", title, evidence, how)
