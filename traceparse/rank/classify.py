"""Is this device event compute, comm or copy?

Metadata first: a kernel that names its collective communicates, whatever it is called (RCCL
calls every kernel ``ncclDevKernel_Generic``). Then the families of ``data/kernels.toml``.
Copies are told by category. On the host, gloo and MPI are told by the prefix of their spans.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
_HOST_COMM = "^(?:gloo|mpi):"
_HOST_LAUNCH = "^(?:c10d::|record_param_comms$)"


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
    kinds = np.full(len(names), COPY if category in _COPIES else COMPUTE, np.int8)
    if category not in _COPIES:
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
        kinds[rows] = by_text(
            device_events, "name", partial(_kinds_of_names, category=category), null=COMPUTE
        )[rows]
    told = by_text(device_events, "collective", _is_something, null=False)
    kinds[told & (kinds != COPY)] = COMM
    return kinds


def _is_something(texts: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
    return found


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


def by_text(
    table: ArrowTable,
    column: str,
    function: Callable[[pa.Array], npt.NDArray[Any]],
    *,
    null: object,
) -> npt.NDArray[Any]:
    """Compute something for every row from its text, once for each text of a dictionary.

    The chunks of a column keep dictionaries of their own, so that a file with any number of
    distinct names needs no more room here.
    """
    parts = []
    for chunk in table[column].chunks:
        values = function(chunk.dictionary)
        ids = chunk.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
        parts.append(np.append(values, np.array(null, values.dtype))[ids])
    if not parts:
        return np.empty(0, function(pa.array([], pa.string())).dtype)
    return np.concatenate(parts)


def dictionary_of(table: ArrowTable, column: str) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Return the distinct texts of a column and each row's index among them; -1 for null.

    For columns that have few; for names, :func:`by_text` needs less room.
    """
    if not table.num_rows:
        return pa.array([], pa.string()), np.empty(0, np.int32)
    whole = table[column].unify_dictionaries().combine_chunks()
    chunk = whole.chunk(0) if hasattr(whole, "chunk") else whole
    return chunk.dictionary, chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def texts_of(table: ArrowTable, column: str) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the same, the texts as Python's."""
    texts, ids = dictionary_of(table, column)
    return texts.to_pylist(), ids
