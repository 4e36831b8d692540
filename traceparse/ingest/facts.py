"""What capture recorded of a job: facts of known names and types, and nothing else.

They stand in the trace itself, under its key ``traceparse``, and in a file beside it. Neither
is believed further than its types reach: what is of another type, or past belief, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from traceparse.ingest.decode import text_of
from traceparse.ingest.ranks import MOST_RANKS, groups_of, runs_text

__all__ = ["read_facts"]

_LONGEST_TEXT = 256  # letters
_MOST = 10**30  # nobody has as many FLOP in a step
_MOST_MESHES = 64
_MOST_DIMENSIONS = 16
_MOST_DTYPES = 64


def read_facts(told: object) -> dict[str, Any]:
    """Pick the known facts out of what capture wrote, if it is that.

    ``groups`` maps names of process groups to their ranks, as a header's do; all else is as
    it was written: texts, whole and other numbers, ``steps`` the first and the last one.
    """
    if not isinstance(told, dict):
        return {}
    found = {key: read(told.get(key)) for key, read in _READERS.items()}
    return {key: value for key, value in found.items() if value is not None}


def _text(value: object) -> str | None:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT:
        return None
    return text_of(value)


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: object) -> Decimal | None:
    """Read a number, which is text here if it is no whole one: the reader leaves fractions."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    # the size first: 1e999999999 must not become an integer of a billion digits
    return number if number.is_finite() and -_MOST < number < _MOST else None


def _whole(value: object, lowest: int = 1, limit: int = _MOST) -> int | None:
    """Read a whole number from the lowest to below a limit; ``1e15`` is one."""
    number = _number(value)
    if number is None or not lowest <= number < limit or number != int(number):
        return None
    return int(number)


def _count(value: object) -> int | None:
    """Read a whole number that may be 0."""
    return _whole(value, 0)


def _watts(value: object) -> float | None:
    number = _number(value)
    return float(number) if number is not None and 0 < number < 10**6 else None


def _overhead(value: object) -> float | None:
    """Read by how much steps were slower, as a share: a step cannot take less than nothing."""
    number = _number(value)
    return float(number) if number is not None and -1 < number < 10**6 else None


def _steps(value: object) -> list[int] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    first, last = map(_count, value)
    return None if first is None or last is None or first > last else [first, last]


def _dtypes(value: object) -> dict[str, int] | None:
    if not isinstance(value, dict) or not 0 < len(value) <= _MOST_DTYPES:
        return None
    found = {_text(name): _whole(num) for name, num in value.items()}
    known = {name: num for name, num in found.items() if name and num}
    # some of them would be taken for all
    return known if len(known) == len(value) else None


def _meshes(value: object) -> list[dict[str, Any]] | None:
    told = value[:_MOST_MESHES] if isinstance(value, list) else ()
    return [mesh for mesh in map(_mesh, told) if mesh] or None


def _mesh(told: object) -> dict[str, Any] | None:
    """Read the shape of a mesh of devices; its dimensions may have no names."""
    if not isinstance(told, dict):
        return None
    sizes, names = told.get("shape"), told.get("names")
    if not isinstance(sizes, list) or not 0 < len(sizes) <= _MOST_DIMENSIONS:
        return None
    shape = [_whole(size, 1, MOST_RANKS + 1) for size in sizes]
    if isinstance(names, list):
        names = [_text(name) for name in names]
    if None in shape or not (names is None or (isinstance(names, list) and None not in names)):
        return None
    return {"names": names, "shape": shape} if len(names or shape) == len(shape) else None


def _groups(value: object) -> dict[str, str] | None:
    return groups_of(value, name="name", read=runs_text) or None


_READERS: Final[Mapping[str, Callable[[object], Any]]] = {
    "facts_version": _whole,
    "rank": lambda value: _whole(value, 0, MOST_RANKS),
    "world_size": lambda value: _whole(value, 1, MOST_RANKS + 1),
    "steps": _steps,
    **dict.fromkeys(
        (
            *("backend", "step_on", "device_name", "autocast_dtype"),
            *("traceparse_version", "python_version", "torch_version"),
            *("cuda_version", "hip_version", "nccl_version", "driver_version"),
        ),
        _text,
    ),
    **dict.fromkeys(
        (
            *("num_sms", "device_memory_bytes", "sm_clock_hz", "memory_clock_hz"),
            *("num_threads", "tokens_per_step", "samples_per_step", "params"),
            *("tokens_per_rank_step", "samples_per_rank_step"),
            *("model_flop_per_step", "profiled_step_ns", "unprofiled_step_ns"),
        ),
        _whole,
    ),
    **dict.fromkeys(
        (
            *("num_params", "num_trainable_params", "num_embedding_params"),
            *("model_flop_per_rank_step", "num_unprofiled_steps", "num_events", "trace_bytes"),
        ),
        _count,
    ),
    "power_limit_w": _watts,
    "capture_overhead_ratio": _overhead,
    "checkpointing": _flag,
    "compiled": _flag,
    "param_dtypes": _dtypes,
    "groups": _groups,
    "meshes": _meshes,
}
