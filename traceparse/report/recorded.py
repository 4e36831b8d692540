"""What capture recorded of the job, and what it cost the job, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from traceparse.report.safe import visible
from traceparse.run import Report
from traceparse.units import format_amount, format_number_of, format_ratio

__all__ = ["overhead_text", "recorded_text"]

_TEXT_LIMIT = 60
_MOST_NAMED = 4
_VERSIONS = {
    "torch_version": "torch",
    "cuda_version": "CUDA",
    "hip_version": "ROCm",
    "nccl_version": "NCCL",
}


def overhead_text(report: Report) -> str | None:
    """Say by how much profiling slowed the steps, if that is known."""
    ratio = (report.run.facts or {}).get("capture_overhead_ratio")
    if ratio is None:
        return None
    how = f"{format_ratio(ratio)} slower than" if round(ratio, 3) > 0 else "no slower than"
    return f"profiled steps were {how} unprofiled ones"


def recorded_text(report: Report) -> str | None:
    """List what is known of the job: software, device, model, step; ``None`` if nothing is."""
    facts = {
        name: value for name, value in (report.run.facts or {}).items() if value is not None
    }
    return ", ".join([*_machine(facts), *_model(facts), *_step(facts)]) or None


def _machine(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, words in _VERSIONS.items():
        if name in facts:
            yield f"{words} {_short(facts[name])}"
    if "device_name" in facts:
        yield _short(facts["device_name"])


def _model(facts: Mapping[str, Any]) -> Iterator[str]:
    if "num_params" in facts:
        of_which = facts.get("num_embedding_params")
        more = f" ({format_amount(of_which)} of embeddings)" if of_which else ""
        yield f"{format_amount(facts['num_params'])} parameters{more}"
    if "param_dtypes" in facts:
        yield " and ".join(map(_short, list(facts["param_dtypes"])[:_MOST_NAMED]))
    if "autocast_dtype" in facts:
        yield f"autocast to {_short(facts['autocast_dtype'])}"
    if "checkpointing" in facts:
        yield f"{'' if facts['checkpointing'] else 'no '}activation checkpointing"
    if "compiled" in facts:
        yield f"{'' if facts['compiled'] else 'not '}compiled"
    for mesh in facts.get("meshes", ())[:_MOST_NAMED]:
        yield f"mesh {_mesh(mesh)}"


def _mesh(mesh: Mapping[str, Any]) -> str:
    sizes = mesh["shape"]
    names = [f"{_short(name)} " for name in mesh["names"] or ()] or [""] * len(sizes)
    return " x ".join(f"{name}{size:,}" for name, size in zip(names, sizes, strict=True))


def _step(facts: Mapping[str, Any]) -> Iterator[str]:
    for what in ("token", "sample"):
        if (count := facts.get(f"{what}s_per_step")) is not None:
            yield f"{format_number_of(count, what)} a step"
        elif (count := facts.get(f"{what}s_per_rank_step")) is not None:
            yield f"{format_number_of(count, what)} a step on each rank"


def _short(text: str) -> str:
    return visible(text, _TEXT_LIMIT)
