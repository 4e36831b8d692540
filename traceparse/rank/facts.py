"""What a trace tells of collective calls: arguments of kernels and operators, and spans.

All of it comes from the file, so nothing is believed that cannot be: a number that is none, or
too large for what it counts, is as good as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Final, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest import MOST_RANKS, Kept, ranks_text
from traceparse.intervals import Int64s
from traceparse.rank.collective_names import (
    collective_named,
    dtype_named,
    dtype_of_input,
)
from traceparse.rank.rows import alike, by_text, rows_where
from traceparse.rank.signatures import read_inputs
from traceparse.rank.texts import NO_TEXT, Texts, used_texts
from traceparse.tables import ArrowTable

__all__ = [
    "FACT",
    "Facts",
    "Words",
    "are_incomplete",
    "has",
    "merge",
    "read_args",
    "read_spans",
]

_NUMBERS = ("in", "out", "size", "source", "destination", "first", "stride")
FACT: Final = np.dtype(
    [
        ("has", "u2"),  # a bit for each field that follows, whether it is known
        *((name, "i4") for name in ("collective", "dtype", "group", "ranks")),
        *((name, "i8") for name in _NUMBERS),
        *((name, "u8") for name in ("sequence", "comms_id")),
    ]
)
_BITS: Final = {name: 1 << bit for bit, name in enumerate((FACT.names or ())[1:])}
_KEYS: Final = {  # old spellings first: what is written besides in a new one is right
    "In msg size": "in",
    "Out msg size": "out",
    "Process Group ID": "group",
    "Collective name": "collective",
    "Comms Id": "comms_id",
    "Dst Rank": "destination",
    "Global rank start": "first",
    "Global rank stride": "stride",
    "Group size": "size",
    "In msg nelems": "in",
    "Out msg nelems": "out",
    "Process Group Name": "group",
    "Process Group Ranks": "ranks",
    "Seq": "sequence",
    "Src Rank": "source",
    "dtype": "dtype",
}
_LIMITS: Final = {  # the lowest number that is right, and the lowest above that is not
    **dict.fromkeys(("in", "out"), (0, 1 << 63)),
    **dict.fromkeys(("source", "destination", "first"), (0, MOST_RANKS)),
    **dict.fromkeys(("size", "stride"), (1, MOST_RANKS + 1)),
    **dict.fromkeys(("sequence", "comms_id"), (0, 1 << 64)),
}
_LONGEST_NAME = 64  # letters of a collective or a type
_LONGEST_GROUP = 256
_LONGEST_RANKS = 1 << 16
_COALESCED, _RECEIVES = "coalesced", "recv"
_LISTS = ("TensorList", "GenericList")

Bools = npt.NDArray[np.bool_]
Facts = npt.NDArray[np.void]


class Words:
    """The texts that facts have, numbered."""

    def __init__(self) -> None:
        self.collective = Texts(longest=_LONGEST_NAME)
        self.dtype = Texts(longest=_LONGEST_NAME)
        self.group = Texts(longest=_LONGEST_GROUP)
        self.ranks = Texts(longest=_LONGEST_RANKS)

    def read(self, field: str, text: str) -> int | None:
        """Read the value of an argument as what its field holds; ``None`` if it is odd."""
        if field in _LIMITS:
            return _number(text, *_LIMITS[field])
        number = _READERS[field](self, text)
        return None if number == NO_TEXT else number


def _collective(words: Words, text: str) -> int:
    known = collective_named(text)
    return words.collective.number(known.name if known else text.strip().lower() or None)


def _dtype(words: Words, text: str) -> int:
    known = dtype_named(text) or dtype_of_input(text)
    return words.dtype.number(known.name if known else text or None)


_READERS: Final[Mapping[str, Callable[[Words, str], int]]] = {
    "collective": _collective,
    "dtype": _dtype,
    "group": lambda words, text: words.group.number(text or None),
    "ranks": lambda words, text: words.ranks.number(ranks_text(text)),
}


def _number(text: str, lowest: int, limit: int) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        return None
    number = int(text)
    return number if lowest <= number < limit else None


def has(facts: Facts, field: str) -> Bools:
    """Say of which a field is known."""
    known: Bools = facts["has"] & _BITS[field] != 0
    return known


def merge(facts: Facts, others: Facts) -> None:
    """Fill in what is not known from others."""
    for field in _BITS:
        fresh = has(others, field) & ~has(facts, field)
        facts[field][fresh] = others[field][fresh]
    facts["has"] |= others["has"]


def _put(facts: Facts, field: str, rows: Int64s, values: npt.NDArray[np.generic]) -> None:
    """Set a field of some."""
    facts[field][rows] = values
    facts["has"][rows] |= _BITS[field]


def read_args(args: Kept, table: str, rows: Int64s, words: Words) -> Facts:
    """Read what arguments of collectives tell of some rows of a table, given in order."""
    facts = np.zeros(rows.size, FACT)
    if not rows.size:
        return facts
    for part in args.parts("of", "row", "key", "value"):
        own = np.flatnonzero(rows_where(part, "of", lambda texts: pc.equal(texts, table)))
        told = part["row"].to_numpy()[own].astype(np.int64)
        at = np.searchsorted(rows, told)
        is_wanted = rows[np.minimum(at, rows.size - 1)] == told
        if is_wanted.any():
            _read_part(part, own[is_wanted], at[is_wanted], facts, words)
    return facts


def _read_part(part: ArrowTable, own: Int64s, at: Int64s, facts: Facts, words: Words) -> None:
    """Read some rows of arguments; ``at`` is where what each is of has its facts."""
    keys = by_text(part, "key", _number_keys, null=-1)[own]
    for place, field in enumerate(_KEYS.values()):
        rows = np.flatnonzero(keys == place)
        if not rows.size:
            continue
        texts, which = used_texts(part["value"].take(pa.array(own[rows])))
        values = [words.read(field, text or "") for text in texts]
        known = np.array([value is not None for value in values], np.bool_)[which]
        numbers = np.array([value or 0 for value in values], FACT[field])[which]
        _put(facts, field, at[rows[known]], numbers[known])


def _number_keys(texts: pa.Array) -> npt.NDArray[np.int64]:
    places = {key: place for place, key in enumerate(_KEYS)}
    return np.array([places.get(text, -1) for text in texts.to_pylist()], np.int64)


def are_incomplete(facts: Facts, groups: Mapping[str, str], words: Words) -> Bools:
    """Which lack what an operator may tell besides? Its later arguments kernels have too."""
    names = [name in groups for name in words.group.all()]
    is_listed = np.array([*names, False], np.bool_)[
        np.where(has(facts, "group"), facts["group"], NO_TEXT)
    ]
    found = ~(is_listed | has(facts, "ranks"))
    for field in ("collective", "dtype", "in", "out", "size"):
        found |= ~has(facts, field)
    return found


def read_spans(spans: ArrowTable, words: Words) -> tuple[Facts, Bools]:
    """Read what spans of backends tell: name, inputs; and which are around several calls."""
    columns = [used_texts(spans[name]) for name in ("name", "input_dims", "input_types")]
    firsts, which = alike([ids for _, ids in columns])
    facts = np.zeros(firsts.size, FACT)
    are_several = np.zeros(firsts.size, np.bool_)
    for place, row in enumerate(firsts.tolist()):
        name, dims, types = (texts[ids[row]] for texts, ids in columns)
        word = (name or "").partition(":")[2]
        are_several[place] = word == _COALESCED
        for field, value in _of_span(word, dims, types, words).items():
            _put(facts, field, np.array([place]), np.array([value], FACT[field]))
    return facts[which], are_several[which]


def _of_span(word: str, dims: str | None, types: str | None, words: Words) -> Mapping[str, int]:
    known = collective_named(word)
    given = list(zip(read_inputs(types), read_inputs(dims), strict=False))
    kinds = {one.name for one in (dtype_of_input(str(kind)) for kind, _ in given) if one}
    # what a receiver is given is where it gets
    side = "out" if known and known.name == _RECEIVES else "in"
    found = {
        "collective": words.collective.number(known.name if known else None),
        "dtype": words.dtype.number(kinds.pop() if len(kinds) == 1 else None),
        side: _num_elements(given),
    }
    return {field: number for field, number in found.items() if number >= 0}


def _num_elements(given: Sequence[tuple[object, object]]) -> int:
    """How many elements do tensors, given as type and sizes, have? -1 if nobody knows."""
    tensors: list[object] = []
    for kind, sizes in given:
        if dtype_of_input(str(kind)):
            tensors.append(sizes)
        elif kind in _LISTS and isinstance(sizes, list):
            tensors += sizes
    nums = [prod(sizes) for sizes in tensors if _are_sizes(sizes)]
    is_known = 0 < len(nums) == len(tensors) and sum(nums) < _LIMITS["in"][1]
    return sum(nums) if is_known else -1


def _are_sizes(found: object) -> TypeGuard[list[int]]:
    return isinstance(found, list) and all(type(size) is int and size >= 0 for size in found)
