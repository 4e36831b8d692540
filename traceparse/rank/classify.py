"""Is this device event compute, comm or copy?

Metadata first: a kernel that names its collective communicates, whatever it is called (RCCL
calls every kernel ``ncclDevKernel_Generic``). Then the families of ``data/kernels.toml``.
Copies are told by category. On the host, gloo and MPI are told by the prefix of their spans.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from traceparse.tables import ArrowTable

__all__ = [
    "COMM",
    "COMPUTE",
    "COPY",
    "KINDS",
    "Family",
    "families",
    "kinds_of",
    "kinds_on_host",
]

KINDS = ("compute", "comm", "copy")
COMPUTE, COMM, COPY = range(3)
NEITHER = 3  # on the host: launches work, does none

Kinds: TypeAlias = npt.NDArray[np.int8]
_Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]

_COPIES = frozenset({"gpu_memcpy", "gpu_memset"})
_LONGEST_NAME = 4096  # of a name, that is enough to tell; patterns never see more of it
_HOST_COMM = re.compile(r"(?:gloo|mpi):")
_HOST_LAUNCH = re.compile(r"c10d::|record_param_comms$")


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of ``data/kernels.toml``: a pattern of names, and what they count as."""

    name: _Text
    kind: Literal["compute", "comm", "copy"]
    pattern: _Text
    source: _Text
    category: str = "kernel"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    family: list[Family]


@cache
def families() -> tuple[Family, ...]:
    """Return the kernel families that traceparse knows, validated."""
    text = files("traceparse").joinpath("data", "kernels.toml").read_bytes()
    return tuple(msgspec.toml.decode(text, type=_File).family)


@cache
def _patterns(category: str) -> tuple[tuple[int, re.Pattern[str]], ...]:
    """Return one pattern a kind, of all families of a category of events."""
    found: dict[int, list[str]] = {}
    for family in families():
        if family.category == category:
            found.setdefault(KINDS.index(family.kind), []).append(family.pattern)
    return tuple(
        (kind, re.compile(rf"(?<![a-z])(?:{'|'.join(patterns)})", re.IGNORECASE))
        for kind, patterns in found.items()
    )


@lru_cache(maxsize=1 << 16)
def _kind_of(name: str, category: str) -> int:
    if category in _COPIES:
        return COPY
    for kind, pattern in _patterns(category):
        if pattern.search(name, 0, _LONGEST_NAME):
            return kind
    return COMPUTE


def kinds_of(device_events: ArrowTable) -> Kinds:
    """Say of every row of ``device_events`` what it counts as: an index into ``KINDS``."""
    names, name_ids = texts_of(device_events, "name")
    categories, category_ids = texts_of(device_events, "category")
    kinds = np.full(device_events.num_rows, COMPUTE, np.int8)
    for number, category in enumerate(categories):
        rows = category_ids == number
        table = np.array([_kind_of(name[:_LONGEST_NAME], category) for name in names], np.int8)
        kinds[rows] = table[name_ids[rows]]
    collectives, collective_ids = texts_of(device_events, "collective")
    told = np.array([bool(name) for name in collectives] + [False])  # the last is for null
    kinds[told[collective_ids] & (kinds != COPY)] = COMM
    return kinds


def kinds_on_host(spans: ArrowTable, *, other: int) -> Kinds:
    """Say the same of host spans: gloo and MPI communicate, what launches them is ``NEITHER``.

    ``other`` is what all the rest counts as.
    """
    names, ids = texts_of(spans, "name")
    table = [
        COMM if _HOST_COMM.match(name) else NEITHER if _HOST_LAUNCH.match(name) else other
        for name in names
    ]
    return np.array([*table, other], np.int8)[ids]


def texts_of(table: ArrowTable, column: str) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the distinct texts of a column and each row's index among them; -1 for null."""
    if not table.num_rows:
        return [], np.empty(0, np.int32)
    whole = table[column].unify_dictionaries().combine_chunks()
    chunk = whole.chunk(0) if hasattr(whole, "chunk") else whole
    return chunk.dictionary.to_pylist(), chunk.indices.fill_null(-1).to_numpy(
        zero_copy_only=False
    )
