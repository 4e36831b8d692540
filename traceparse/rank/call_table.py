"""The calls of one device as the table ``collectives``: sizes, groups, peers, step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.ingest import MOST_RANKS
from traceparse.intervals import Int64s
from traceparse.rank.collective_names import (
    NO_COLLECTIVE,
    Collective,
    collective_named,
    collectives,
    dtype_named,
    of_kernel_names,
)
from traceparse.rank.facts import Facts, Words, has
from traceparse.rank.link import UNLINKED
from traceparse.rank.nesting import NOTHING
from traceparse.rank.rows import alike
from traceparse.rank.steps import Marker, step_numbers
from traceparse.rank.texts import NO_TEXT, Int32s, Texts
from traceparse.rank.times import CALLS
from traceparse.tables import TEXT, ArrowTable
from traceparse.units import format_ranges, num_in_ranges

__all__ = ["SOURCES", "Call", "Calls", "Gathered", "Told", "call_table"]

SOURCES = ("kernel", "operator", "span", "name")
Call: Final = np.dtype(
    [
        *((name, "i8") for name in ("start", "end", "launched", "row", "op", "mark")),
        ("stream", "u8"),
        ("name", "i4"),
        ("device", "i2"),
        ("has_stream", "?"),
    ]
)
_PEERS = ("send", "recv")
_UNKNOWN = -1
_LARGEST = np.iinfo(np.int64).max
_MOST_GROUPS = 1 << 12  # that are told apart
_MOST_APART = 1 << 11  # ranks that lie apart, of a group that is told by first, stride and size

Calls = npt.NDArray[np.void]
Bools = npt.NDArray[np.bool_]


class Told(NamedTuple):
    """What a file tells of all its calls: texts, ranks of groups by name, whose file it is."""

    names: Texts
    words: Words
    groups: Mapping[str, str]
    rank: int | None


class Gathered(NamedTuple):
    """Calls, what is told of each, by which of :data:`SOURCES`, and whether of several."""

    calls: Calls
    facts: Facts
    told_by: Int32s
    is_several: Bools

    def take(self, rows: Int64s | slice) -> Gathered:
        """Return some of them."""
        return Gathered(*(column[rows] for column in self))  # type: ignore[arg-type]


def call_table(gathered: Gathered, told: Told, steps: Sequence[Marker]) -> ArrowTable:
    """Make the table of some calls, in their order."""
    calls, facts, told_by, is_several = gathered
    words = told.words
    collective = _collectives(calls, facts, told)
    ranks, sizes = _groups(facts, told)
    numbers = ("in", "out", "sequence", "comms_id")
    known = {name: has(facts, name) for name in numbers}
    source, destination = _peers(facts, collective, told)
    columns: dict[str, pa.Array] = {
        "start_ns": pa.array(np.ascontiguousarray(calls["start"])),
        "end_ns": pa.array(np.ascontiguousarray(calls["end"])),
        "launched_ns": _numbers(calls["launched"], calls["launched"] != UNLINKED),
        "step": step_numbers(steps, np.ascontiguousarray(calls["launched"])),
        "stream": _numbers(calls["stream"], calls["has_stream"]),
        "name": told.names.column(calls["name"]),
        "collective": words.collective.column(collective),
        "dtype": words.dtype.column(_text_numbers(facts, "dtype")),
        "in_elements": _numbers(facts["in"], known["in"]),
        "out_elements": _numbers(facts["out"], known["out"]),
        "message_bytes": _counts(_message_bytes(facts, collective, sizes, words)),
        "group": words.group.column(_text_numbers(facts, "group")),
        "group_ranks": words.ranks.column(ranks),
        "group_size": _counts(sizes),
        "sequence": _numbers(facts["sequence"], known["sequence"]),
        "comms_id": _numbers(facts["comms_id"], known["comms_id"]),
        "source": _counts(source),
        "destination": _counts(destination),
        "told_by": pa.DictionaryArray.from_arrays(told_by, pa.array(SOURCES)).cast(TEXT),
        "is_partial": pa.array(
            is_several
            | _are_shared(calls["op"], calls["op"] != NOTHING)
            | _are_shared(facts["comms_id"], known["comms_id"])
        ),
    }
    return pa.table(columns, schema=CALLS)


def _numbers(values: npt.NDArray[Any], known: Bools) -> pa.Array:
    return pa.array(np.ascontiguousarray(values), mask=~known)


def _counts(values: Int64s) -> pa.Array:
    return _numbers(values, values != _UNKNOWN)


def _text_numbers(facts: Facts, field: str) -> Int32s:
    return np.where(has(facts, field), facts[field], np.int32(NO_TEXT))


def _collectives(calls: Calls, facts: Facts, told: Told) -> Int32s:
    """Which collective is each? Metadata tells, else the name of the kernel."""
    places = of_kernel_names(pa.array(told.names.all(), pa.string())).tolist()
    known = collectives()
    of_names = [
        NO_TEXT if at == NO_COLLECTIVE else told.words.collective.number(known[at].name)
        for at in places
    ]
    named = np.array([*of_names, NO_TEXT], np.int32)[calls["name"]]
    return np.where(has(facts, "collective"), facts["collective"], named)


def _groups(facts: Facts, told: Told) -> tuple[Int32s, Int64s]:
    """Return the ranks of each call's group, as numbers of texts, and how many they are."""
    fields = ("group", "ranks", "first", "stride", "size")
    keys = [np.where(has(facts, name), facts[name], _UNKNOWN) for name in fields]
    firsts, which = alike(keys)
    distinct = np.stack([key[firsts].astype(np.int64) for key in keys], axis=1)
    ranks = np.full(firsts.size, NO_TEXT, np.int32)
    sizes = distinct[:, -1].copy()
    names, lists = told.words.group.all(), told.words.ranks.all()
    for place, (group, listed, *regular) in enumerate(distinct[:_MOST_GROUPS].tolist()):
        candidates = (
            told.groups.get(names[group]) if group >= 0 else None,
            lists[listed] if listed >= 0 else None,
            _regular(*regular),
        )
        found = next((text for text in candidates if _is_of(text, regular[-1])), None)
        if found is not None:
            ranks[place] = told.words.ranks.number(found)
            sizes[place] = num_in_ranges(found)
    return ranks[which], sizes[which]


def _is_of(ranks: str | None, size: int) -> bool:
    """Whether these ranks are known, and as many as the group is said to have."""
    return ranks is not None and size in (_UNKNOWN, num_in_ranges(ranks))


def _regular(first: int, stride: int, size: int) -> str | None:
    if min(first, stride, size) == _UNKNOWN or (stride > 1 and size > _MOST_APART):
        return None
    ranks = range(first, first + stride * size, stride)
    return format_ranges(ranks) if ranks[-1] < MOST_RANKS else None


def _message_bytes(facts: Facts, collective: Int32s, sizes: Int64s, words: Words) -> Int64s:
    """Return the size S of nccl-tests' table."""
    found = np.full(facts.size, _UNKNOWN)
    widths = [dtype.bytes if (dtype := dtype_named(text)) else 0 for text in words.dtype.all()]
    width = np.array([*widths, 0], np.int64)[_text_numbers(facts, "dtype")]
    for number, text in enumerate(words.collective.all()):
        known = collective_named(text)
        rows = np.flatnonzero(collective == number) if known else np.empty(0, np.int64)
        if known and rows.size:
            found[rows] = _sizes_in_bytes(known, facts[rows], width[rows], sizes[rows])
    return found


def _sizes_in_bytes(known: Collective, facts: Facts, width: Int64s, sizes: Int64s) -> Int64s:
    found = np.full(facts.size, _UNKNOWN)
    is_open = np.ones(facts.size, np.bool_)
    for size in known.size:
        side, _, times = size.partition("_")
        factor = width * sizes if times else width
        is_told = has(facts, side) & (factor > 0) & is_open
        fits = is_told & (facts[side] <= _LARGEST // np.maximum(factor, 1))
        found[fits] = facts[side][fits] * factor[fits]
        is_open &= ~is_told
    return found


def _peers(facts: Facts, collective: Int32s, told: Told) -> tuple[Int64s, Int64s]:
    """Who sends, and who receives? Metadata has only the other one; this rank is one itself."""
    own = _UNKNOWN if told.rank is None else told.rank
    sends, receives = (_are_named(collective, name, told.words) for name in _PEERS)
    source = np.where(sends, own, _UNKNOWN)
    destination = np.where(receives, own, _UNKNOWN)
    source = np.where(receives & has(facts, "source"), facts["source"], source)
    destination = np.where(sends & has(facts, "destination"), facts["destination"], destination)
    return source, destination


def _are_named(collective: Int32s, name: str, words: Words) -> Bools:
    found: Bools = collective == words.collective.number(name)
    return found


def _are_shared(ids: npt.NDArray[Any], known: Bools) -> Bools:
    """Which have an id that others have as well?"""
    found = np.zeros(ids.size, np.bool_)
    _, which, counts = np.unique(ids[known], return_inverse=True, return_counts=True)
    found[known] = counts[which.reshape(-1)] > 1
    return found
