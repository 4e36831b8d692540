"""What is known of collectives by name: ``data/collectives.toml``, validated.

Everybody calls them otherwise: torch's metadata (``_allgather_base``), backends' spans
(``gloo:all_gather``), kernels (``ncclDevKernel_AllGather_RING_LL``). Here each has one name,
and with it which of its sizes counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "NO_COLLECTIVE",
    "Collective",
    "Dtype",
    "collective_named",
    "collectives",
    "dtype_named",
    "dtype_of_input",
    "dtypes",
    "of_kernel_names",
]

NO_COLLECTIVE = -1

_Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class Collective(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry: its names, its size, and the factor from algbw to busbw in a group of n."""

    name: _Text
    size: tuple[Literal["in", "out", "in_times_n", "out_times_n"], ...]
    busbw: Literal["2(n-1)/n", "(n-1)/n", "1", "none"]
    ends_coincide: bool
    source: _Text
    aliases: tuple[_Text, ...] = ()
    kernels: _Text | None = None


class Dtype(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A type of elements: torch's name, its bytes, and what it is called as an input."""

    name: _Text
    bytes: Annotated[int, msgspec.Meta(ge=1, le=16)]
    inputs: tuple[_Text, ...]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    collective: tuple[Collective, ...]
    dtype: tuple[Dtype, ...]


@cache
def _file() -> _File:
    text = files("traceparse").joinpath("data", "collectives.toml").read_bytes()
    return msgspec.toml.decode(text, type=_File)


def collectives() -> tuple[Collective, ...]:
    """Return all that are known, in the order in which names of kernels are matched."""
    return _file().collective


def dtypes() -> tuple[Dtype, ...]:
    """Return the types of elements that are known."""
    return _file().dtype


@cache
def _by_name() -> Mapping[str, Collective]:
    return {name: one for one in collectives() for name in (one.name, *one.aliases)}


@cache
def _dtypes_by_name() -> Mapping[str, Dtype]:
    return {one.name: one for one in dtypes()}


@cache
def _dtypes_by_input() -> Mapping[str, Dtype]:
    return {name: one for one in dtypes() for name in one.inputs}


def collective_named(text: str) -> Collective | None:
    """Look one up by any of its names: of metadata, or of a span without its backend.

    Torch writes peers behind point-to-point calls: ``send 0->1``.
    """
    word, _, _ = text.strip().lower().partition(" ")
    return _by_name().get(word)


def dtype_named(text: str) -> Dtype | None:
    """Look up a type of elements by torch's name."""
    return _dtypes_by_name().get(text)


def dtype_of_input(text: str) -> Dtype | None:
    """Look up a type of elements by what an operator's input is said to be."""
    return _dtypes_by_input().get(text)


def of_kernel_names(names: pa.Array) -> npt.NDArray[np.int64]:
    """Say of kernels' names which of :func:`collectives` they are, else ``NO_COLLECTIVE``."""
    found = np.full(len(names), NO_COLLECTIVE)
    for place, one in reversed(list(enumerate(collectives()))):
        if one.kernels is not None:
            pattern = rf"(?:^|[^a-z])(?:{one.kernels})"
            hit = pc.match_substring_regex(names, pattern, ignore_case=True)
            found[hit.to_numpy(zero_copy_only=False)] = place
    return found
