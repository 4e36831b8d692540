"""What capture recorded of the job, as all ranks tell it: field ``run.facts`` of the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

from traceparse.rank import RankDigest
from traceparse.units import format_ns, format_number_of, format_ratio

__all__ = ["AGREED", "BESIDES", "OVERHEAD", "facts_of", "overhead_findings"]

OVERHEAD: Final = "capture_overhead_ratio"
# facts of the job, which are the same wherever they were recorded; groups are in collectives
AGREED: Final = (
    *("traceparse_version", "python_version", "torch_version", "cuda_version", "hip_version"),
    *("nccl_version", "driver_version", "device_name", "num_sms", "device_memory_bytes"),
    *("sm_clock_hz", "memory_clock_hz", "power_limit_w", "num_threads", "world_size"),
    *("backend", "meshes", "steps", "step_on", "num_params", "num_trainable_params"),
    *("num_embedding_params", "param_dtypes", "autocast_dtype", "checkpointing", "compiled"),
    *("params", "tokens_per_step", "samples_per_step", "model_flop_per_step"),
    *("tokens_per_rank_step", "samples_per_rank_step", "num_unprofiled_steps"),
)
_TOO_MUCH = 0.05  # of a step
BESIDES: Final = {"with_stack": "stacks", "profile_memory": "memory"}


def facts_of(digests: Sequence[RankDigest]) -> dict[str, Any] | None:
    """Say of the job what all ranks that recorded it agree on; ``None`` if none recorded any.

    A fact that they disagree on, or nobody recorded, is ``None``. ``capture_overhead_ratio`` is
    by how much profiled steps were slower than unprofiled ones, as the median over the ranks:
    ranks that wait for each other are slowed together.
    """
    told = [digest.header.facts for digest in digests if digest.header.facts]
    if not told:
        return None
    ratios = list(_numbers(OVERHEAD, told))
    return {
        **{name: _agreed([facts[name] for facts in told if name in facts]) for name in AGREED},
        OVERHEAD: median(ratios) if ratios else None,
    }


def _agreed(values: Sequence[Any]) -> object:
    """Return the one value; ``None`` if there are others, or none."""
    return values[0] if values and all(value == values[0] for value in values) else None


def _numbers(name: str, told: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    return (facts[name] for facts in told if name in facts)


def overhead_findings(
    facts: Mapping[str, Any] | None, digests: Sequence[RankDigest]
) -> Iterator[dict[str, Any]]:
    """Find a job that was slowed by being profiled, so that what it lost is not all its own."""
    ratio = facts and facts[OVERHEAD]
    if not ratio or ratio <= _TOO_MUCH:
        return
    on = {name for digest in digests for name in digest.header.settings}
    besides = " and ".join(words for name, words in BESIDES.items() if name in on)
    first = f"switch off {besides}, which slow every operator, and record" if besides else ""
    yield {
        "code": "capture_overhead",
        "severity": "warning",
        "title": f"profiling slowed the steps by {format_ratio(ratio)}",
        "evidence": _evidence(ratio, [digest.header.facts for digest in digests]),
        "advice": (
            f"{first or 'record'} fewer ranks (--ranks) and fewer steps, and shapes only; "
            f"ratios in this report are of slowed steps: launch gaps and idle are upper bounds"
        ),
        "lost_ratio": None,  # the job does not lose it where it is not profiled
        "lost_usd": None,
    }


def _evidence(ratio: float, told: Sequence[Mapping[str, Any]]) -> str:
    ratios = sorted(_numbers(OVERHEAD, told))
    ranks = format_number_of(len(ratios), "rank")
    if len(ratios) > 1:
        ranks = f"median of {ranks}: {format_ratio(ratios[0])} to {format_ratio(ratios[-1])}"
    evidence = (
        f"profiled steps took {format_ratio(ratio)} longer than unprofiled ones ({ranks})"
    )
    durations = [list(_numbers(f"{kind}_step_ns", told)) for kind in ("profiled", "unprofiled")]
    if all(durations):
        profiled, unprofiled = (format_ns(round(median(own))) for own in durations)
        evidence += f", {profiled} against {unprofiled}"
    return evidence
