"""What the user says of a job that its traces do not: its device, peak, model and price.

None of it changes what is digested, so none of it is part of a key of the cache.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from traceparse.errors import UsageError
from traceparse.work import DTYPES, Accelerator, accelerators, find_one, load_file

__all__ = ["Asked", "Ceiling", "ask"]

Ceiling: TypeAlias = Literal["spec", "mamf"]

_BY_USER = "given by the user"
_SLOWEST = 1e6  # FLOP/s: nothing is slower, so the user gave another unit
_MOST = 10**30  # FLOP of a step, parameters, tokens: more than anybody has


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user gave, checked; by default nothing.

    ``accelerator`` is the one entry that was named, ``known`` the table to identify devices
    with. ``peak_flop_per_s`` overrides any table, and ``peak_source`` says where it is from;
    with ``is_host_peak`` it is only that of the host, which was measured.
    ``model_flop_per_step`` and ``hardware_flop_per_step`` are of the whole job.
    """

    accelerator: Accelerator | None = None
    known: tuple[Accelerator, ...] = field(default_factory=accelerators)
    peak_flop_per_s: Mapping[str, float] = field(default_factory=dict)
    peak_source: str = _BY_USER
    is_host_peak: bool = False
    ceiling: Ceiling = "spec"
    model_flop_per_step: Fraction | None = None
    hardware_flop_per_step: Fraction | None = None
    tokens_per_step: Fraction | None = None
    convention: str | None = None
    usd_per_gpu_hour: float | None = None


def ask(
    *,
    accelerator: str | Path | None = None,
    peak: Mapping[str, float] | None = None,
    peak_source: str | None = None,
    ceiling: str = "spec",
    model_flop_per_step: float | None = None,
    convention: str | None = None,
    params: float | None = None,
    tokens_per_step: float | None = None,
    recompute: str | None = None,
    price: float | None = None,
) -> Asked:
    """Check what the user gave, and resolve names and products.

    With ``params`` N and ``tokens_per_step`` D, a step of the model is 6ND, and 8ND with all
    of forward computed twice (Kaplan et al., 2020, section 2.1; Korthikanti et al., 2022).

    Raises
    ------
    UsageError
        Something contradicts something else, or is none of what there is.
    InputError
        The accelerator's file cannot be used.
    """
    named, known = _accelerator(accelerator)
    flop = _amount("model_flop_per_step", model_flop_per_step)
    num_params = _amount("params", params)
    tokens = _amount("tokens_per_step", tokens_per_step)
    hardware = None
    _require_consistent(flop, num_params, tokens, recompute)
    if num_params is not None and tokens is not None:
        flop, convention = 6 * num_params * tokens, "6nd"
        hardware = 8 * num_params * tokens if recompute else None
    elif flop is not None:
        convention = convention or "given"
    return Asked(
        accelerator=named,
        known=known,
        peak_flop_per_s=_peak(peak or {}),
        peak_source=peak_source or _BY_USER,
        ceiling=_ceiling(ceiling),
        model_flop_per_step=flop,
        hardware_flop_per_step=hardware,
        tokens_per_step=tokens,
        convention=convention,
        usd_per_gpu_hour=_price(price),
    )


def _accelerator(
    asked: str | Path | None,
) -> tuple[Accelerator | None, tuple[Accelerator, ...]]:
    """Read a file, whose entries are looked at first; or find the one entry of a name."""
    if asked is None:
        return None, accelerators()
    if isinstance(asked, Path) or asked.casefold().endswith(".toml"):
        return None, (*load_file(Path(asked)), *accelerators())
    return find_one(asked), accelerators()


def _peak(peak: Mapping[str, float]) -> dict[str, float]:
    for dtype, rate in peak.items():
        if dtype not in DTYPES:
            raise UsageError(f"peak of {dtype!r}: dtypes are {', '.join(DTYPES)}")
        if not math.isfinite(rate) or rate < _SLOWEST:
            raise UsageError(
                f"peak of {dtype}: {rate!r} is no peak in FLOP/s; write 989 TFLOP/s as 989e12"
            )
    return {dtype: float(rate) for dtype, rate in peak.items()}


def _ceiling(asked: str) -> Ceiling:
    ceilings: tuple[Ceiling, ...] = get_args(Ceiling)
    for ceiling in ceilings:
        if asked == ceiling:
            return ceiling
    raise UsageError(f"--ceiling {asked!r}: there are {' and '.join(ceilings)}")


def _require_consistent(
    flop: Fraction | None,
    params: Fraction | None,
    tokens: Fraction | None,
    recompute: str | None,
) -> None:
    if flop is not None and params is not None:
        raise UsageError(
            "--params and --model-flop-per-step (or --model) both say what the model needs; "
            "give one of them"
        )
    if params is not None and tokens is None:
        raise UsageError("--params needs --tokens-per-step: a step of the model is 6ND")
    if recompute is None:
        return
    if recompute != "full":
        raise UsageError(f"--recompute {recompute!r}: only full is a rule, 8ND instead of 6ND")
    if params is None:
        raise UsageError("--recompute full needs --params and --tokens-per-step: it means 8ND")


def _amount(name: str, value: float | None) -> Fraction | None:
    if value is None:
        return None
    if not math.isfinite(value) or not 0 < value <= _MOST:
        option = f"--{name.replace('_', '-')}"
        raise UsageError(f"{option} {value!r}: give a number above zero, such as 8e9")
    return Fraction(value)


def _price(price: float | None) -> float | None:
    if price is not None and not (math.isfinite(price) and 0 < price < _SLOWEST):
        raise UsageError(f"--price {price!r}: give USD per GPU-hour, such as 2.5")
    return price
