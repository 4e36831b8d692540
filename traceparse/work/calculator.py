"""From a step time or a throughput to MFU, HFU, cost and scaling: no trace needed."""

from __future__ import annotations

from dataclasses import dataclass

from traceparse.errors import UsageError
from traceparse.units import format_figure
from traceparse.work.conventions import (
    Recompute,
    convention_named,
    flop_per_token,
    hardware_flop_per_token,
)
from traceparse.work.model import Model

__all__ = ["Calculated", "calculate", "impossible", "positive"]

_BILLION = 1e9
_MILLION = 1e6
_HOUR_S = 3600.0
_MOST = 1e24


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculated:
    """What a run comes to; ``None`` is unknown. Steps are those of the whole job.

    ``achieved_flop_per_s_per_gpu`` is of what runs, recomputation included: HFU of the peak.
    """

    convention: str
    flop_per_token: int
    model_flop_per_step: int | None
    hardware_flop_per_step: int | None
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    achieved_flop_per_s_per_gpu: float
    mfu: float
    hfu: float
    peak_flop_per_s: float
    gpu_hours_per_billion_tokens: float
    usd_per_million_tokens: float | None


def calculate(
    model: Model,
    *,
    convention: str,
    gpus: int,
    peak_flop_per_s: float,
    batch: int | None = None,
    seq: int | None = None,
    step_s: float | None = None,
    tokens_per_s: float | None = None,
    per_gpu: bool = False,
    recompute: Recompute = "none",
    usd_per_gpu_hour: float | None = None,
) -> Calculated:
    """Say how well a job uses its GPUs, from the time of a step or from its throughput.

    ``batch`` is in sequences, of all GPUs; with ``per_gpu``, ``tokens_per_s`` is of one. MFU is
    that of PaLM (arXiv 2204.02311, section 4.1): the throughput, relative to that of a system
    that does nothing but the model's FLOP at peak; HFU has the FLOP in it that run.

    Raises
    ------
    UsageError
        A number is not above zero, there is not exactly one of ``step_s`` and ``tokens_per_s``,
        or the convention does not fit the model or the recomputation.
    """
    positive(gpus=gpus, peak_flop_per_s=peak_flop_per_s, batch=batch, seq=seq)
    positive(step_s=step_s, tokens_per_s=tokens_per_s)
    if usd_per_gpu_hour is not None and not 0 <= usd_per_gpu_hour < _MOST:
        raise UsageError(f"price is {usd_per_gpu_hour}; give USD for a GPU-hour, 0 or more")
    rate = _throughput(gpus, batch, seq, step_s, tokens_per_s, per_gpu=per_gpu)
    needed = flop_per_token(model, convention, seq)
    run = hardware_flop_per_token(model, convention, seq, recompute)
    tokens = None if batch is None or seq is None else batch * seq
    hours = gpus / (rate * _HOUR_S)  # a token
    return Calculated(
        convention=convention_named(convention).name,
        flop_per_token=needed,
        model_flop_per_step=None if tokens is None else needed * tokens,
        hardware_flop_per_step=None if tokens is None else run * tokens,
        tokens_per_s=rate,
        tokens_per_s_per_gpu=rate / gpus,
        achieved_flop_per_s_per_gpu=run * rate / gpus,
        mfu=needed * rate / gpus / peak_flop_per_s,
        hfu=run * rate / gpus / peak_flop_per_s,
        peak_flop_per_s=peak_flop_per_s,
        gpu_hours_per_billion_tokens=hours * _BILLION,
        usd_per_million_tokens=(
            None if usd_per_gpu_hour is None else hours * _MILLION * usd_per_gpu_hour
        ),
    )


def impossible(calculated: Calculated, mamf_flop_per_s: float | None = None) -> str | None:
    """Say why figures cannot be, if they cannot: they exceed the peak, or the fastest matmul.

    ``mamf_flop_per_s`` is the fastest matrix product that was measured on such a device.
    """
    reached = calculated.achieved_flop_per_s_per_gpu
    limits = [(calculated.peak_flop_per_s, "the peak")]
    if mamf_flop_per_s is not None:
        limits.append((mamf_flop_per_s, "the fastest matrix product that was measured on it"))
    for limit, what in limits:
        if reached > limit:
            most, found = format_figure(limit / 1e12), format_figure(reached / 1e12)
            return (
                "cannot be: wrong convention or wrong device, as "
                f"{found} TFLOP/s per GPU exceed {what}, {most}"
            )
    return None


def _throughput(
    gpus: int,
    batch: int | None,
    seq: int | None,
    step_s: float | None,
    tokens_per_s: float | None,
    *,
    per_gpu: bool,
) -> float:
    if (step_s is None) == (tokens_per_s is None):
        raise UsageError("give either the seconds of a step or the tokens per second")
    if tokens_per_s is not None:
        return tokens_per_s * gpus if per_gpu else tokens_per_s
    if step_s is None or batch is None or seq is None:
        raise UsageError("the seconds of a step need a batch and a seq; give --batch and --seq")
    return batch * seq / step_s


def positive(**numbers: float | None) -> None:
    """See that numbers are above zero, those that are given, and none that overflows later.

    Raises
    ------
    UsageError
        One is not; the message names it.
    """
    for name, number in numbers.items():
        if number is not None and not 1 / _MOST < number < _MOST:
            raise UsageError(
                f"{name} is {str(number)[:40]}; give a number above 0, and below 10^24"
            )
