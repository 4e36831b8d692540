"""Is this device event compute, comm or copy?

Metadata first: a kernel that names its collective communicates, whatever it is called (RCCL
calls every kernel ``ncclDevKernel_Generic``). Then the families of ``data/kernels.toml``.
Copies are told by category. On the host, gloo and MPI are told by the prefix of their spans.
Names of kernels also tell whether products of fp32 ran as tf32.
"""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.rank.rows import by_text, rows_where, texts_of
from traceparse.tables import ArrowTable

__all__ = [
    "COMM",
    "COMPUTE",
    "COPY",
    "KINDS",
    "RUNS_FP32",
    "RUNS_TF32",
    "Family",
    "Precision",
    "families",
    "hints_of",
    "kinds_of",
    "kinds_on_host",
    "precisions",
]

KINDS = ("compute", "comm", "copy")
COMPUTE, COMM, COPY = range(3)
RUNS_TF32, RUNS_FP32 = 1, 2
_HINTS = {"tf32": RUNS_TF32, "fp32": RUNS_FP32}
NEITHER = 3  # on the host: launches work, does none

Kinds: TypeAlias = npt.NDArray[np.int8]
_Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]

_COPIES = frozenset({"gpu_memcpy", "gpu_memset"})
_HOST_COMM = "^(?:gloo|mpi):"
_HOST_LAUNCH = "^(?:c10d::|record_param_comms$)"


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of ``data/kernels.toml``: a pattern of names, and what they count as."""

    name: _Text
    kind: Literal["compute", "comm", "copy"]
    pattern: _Text
    source: _Text
    category: str = "kernel"


class Precision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What kernels of fp32 operators are called, by the data type that their units run."""

    dtype: Literal["fp32", "tf32"]
    pattern: _Text
    source: _Text


class _File(msgspec.Struct, forbid_unknown_fields=True):
    family: list[Family]
    precision: list[Precision]


@cache
def _file() -> _File:
    text = files("traceparse").joinpath("data", "kernels.toml").read_bytes()
    return msgspec.toml.decode(text, type=_File)


@cache
def families() -> tuple[Family, ...]:
    """Return the kernel families that traceparse knows, validated."""
    return tuple(_file().family)


@cache
def precisions() -> tuple[Precision, ...]:
    """Return what is known of names of kernels of fp32 operators."""
    return tuple(_file().precision)


@cache
def _patterns(category: str) -> tuple[tuple[int, str], ...]:
    """Return one pattern a kind, of all families of a category of events."""
    found: dict[int, list[str]] = {}
    for family in families():
        if family.category == category:
            found.setdefault(KINDS.index(family.kind), []).append(family.pattern)
    return tuple(
        (kind, rf"(?:^|[^a-z])(?:{'|'.join(patterns)})") for kind, patterns in found.items()
    )


def _kinds_of_names(names: pa.Array, category: str) -> Kinds:
    """Classify distinct names; Arrow's regular expressions take time in proportion to them."""
    kinds = np.full(len(names), COMPUTE, np.int8)
    for kind, pattern in reversed(_patterns(category)):
        hit = pc.match_substring_regex(names, pattern, ignore_case=True)
        kinds[hit.to_numpy(zero_copy_only=False)] = kind
    return kinds


def kinds_of(device_events: ArrowTable) -> Kinds:
    """Say of every row of ``device_events`` what it counts as: an index into ``KINDS``."""
    categories, category_ids = texts_of(device_events, "category")
    kinds = np.full(device_events.num_rows, COMPUTE, np.int8)
    for number, category in enumerate(categories):
        rows = category_ids == number
        if category in _COPIES:
            kinds[rows] = COPY
            continue
        kinds[rows] = by_text(
            device_events, "name", partial(_kinds_of_names, category=category), null=COMPUTE
        )[rows]
    told = rows_where(device_events, "collective", lambda texts: pc.not_equal(texts, ""))
    kinds[told & (kinds != COPY)] = COMM
    return kinds


def hints_of(device_events: ArrowTable) -> npt.NDArray[np.uint8]:
    """Say of every row which data types its name tells, if its operator is one of fp32.

    That is :data:`RUNS_TF32`, :data:`RUNS_FP32` or neither, for nobody else tells.
    """

    def hints_of_names(names: pa.Array) -> npt.NDArray[np.uint8]:
        hints = np.zeros(len(names), np.uint8)
        for precision in precisions():
            hit = pc.match_substring_regex(names, precision.pattern, ignore_case=True)
            hints[hit.to_numpy(zero_copy_only=False)] |= _HINTS[precision.dtype]
        return hints

    return by_text(device_events, "name", hints_of_names, null=0)


def kinds_on_host(spans: ArrowTable, *, other: int) -> Kinds:
    """Say the same of host spans: gloo and MPI communicate, what launches them is ``NEITHER``.

    ``other`` is what all the rest counts as.
    """

    def kinds_of_names(names: pa.Array) -> Kinds:
        kinds = np.full(len(names), other, np.int8)
        for kind, pattern in ((NEITHER, _HOST_LAUNCH), (COMM, _HOST_COMM)):
            hit = pc.match_substring_regex(names, pattern)
            kinds[hit.to_numpy(zero_copy_only=False)] = kind
        return kinds

    return by_text(spans, "name", kinds_of_names, null=other)
