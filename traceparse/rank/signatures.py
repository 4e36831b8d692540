"""Which calls of operators are counted, and how much does each work?

Runs of one operator with the same inputs work the same: they share a number, and their work
is computed once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.rank.nesting import NOTHING
from traceparse.rank.rows import rows_where
from traceparse.tables import ArrowTable
from traceparse.work import TEMPLATES, Call, Work, formulas, work_of

__all__ = ["CALL_COLUMNS", "Signature", "Signatures", "read_inputs", "shapes_text"]

CALL_COLUMNS = ("name", "input_dims", "input_types", "concrete_inputs")
_MOST_KINDS = 1 << 12  # of runs that are told apart in reports
_LONGEST_SHAPES = 160  # letters
_LONGEST_SIZE = 20
_OTHER = "others"

Int32s = npt.NDArray[np.int32]


class Kind(NamedTuple):
    """What runs are told apart by in reports: of countable ones, operator and shapes.

    Of those that cannot be counted, the operator and the reason.
    """

    op: str
    shapes: str
    dtype: str | None
    conventions: tuple[str, ...]
    unknown: str | None


class Signature(NamedTuple):
    """One call, and its work; numbers are 0 where that is unknown."""

    kind: Kind
    flop: int
    recompute_flop: int
    lowest_flop: int
    highest_flop: int
    least_bytes: int


class Signatures:
    """Numbers distinct calls, in the order in which they are met."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._kinds: dict[Kind, int] = {}
        self._listed: list[Kind] = []
        self._kind_of = array("i")
        self._flop = tuple(array("q") for _ in range(5))
        self._is_countable = array("b")

    def __len__(self) -> int:
        return len(self._kind_of)

    def __getitem__(self, number: int) -> Signature:
        kind = self._listed[self._kind_of[number]]
        return Signature(kind, *(column[number] for column in self._flop))

    def are_countable(self, numbers: Int32s) -> npt.NDArray[np.bool_]:
        """Say of numbers whether the work of their calls is known; ``NOTHING`` is not."""
        told = np.append(np.frombuffer(self._is_countable, np.bool_), False)
        return told[numbers]

    def numbers(self, ops: ArrowTable) -> Int32s:
        """Return the number of each row's call; ``NOTHING`` of operators without a formula.

        ``ops`` has :data:`CALL_COLUMNS`.
        """
        found = np.full(ops.num_rows, NOTHING, np.int32)
        rows = np.flatnonzero(rows_where(ops, "name", _have_formulas))
        if rows.size:
            done = 0
            for batch in ops.select(CALL_COLUMNS).take(pa.array(rows)).to_batches():
                own = rows[done : done + batch.num_rows]
                found[own] = self._numbers_of(batch)
                done += batch.num_rows
        return found

    def _numbers_of(self, batch: pa.RecordBatch) -> Int32s:
        ids = np.stack(
            [
                column.indices.fill_null(NOTHING).to_numpy(zero_copy_only=False)
                for column in batch.columns
            ],
            axis=1,
        )
        distinct, which = np.unique(ids, axis=0, return_inverse=True)
        texts = [
            column.dictionary.take(pa.array(own, mask=own < 0)).to_pylist()
            for column, own in zip(batch.columns, distinct.T, strict=True)
        ]
        numbers = [self._number(*call) for call in zip(*texts, strict=True)]
        return np.array(numbers, np.int32)[which.reshape(-1)]

    def _number(self, name: str, *inputs: str | None) -> int:
        key = blake2b(repr((name, inputs)).encode("utf-8", "replace"), digest_size=16).digest()
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self)
            self._learn(name, [read_inputs(text) for text in inputs])
        return number

    def _learn(self, name: str, inputs: list[list[object]]) -> None:
        work = work_of(Call(name, *inputs)) or Work(unknown="no formula")
        told = (work.flop, work.recompute_flop, work.lowest_flop, work.highest_flop)
        for column, value in zip(self._flop, (*told, work.least_bytes), strict=True):
            column.append(value or 0)
        is_countable = work.unknown is None and work.flop is not None
        self._is_countable.append(is_countable)
        shapes = shapes_text(inputs[0]) if is_countable else ""
        kind = Kind(name, shapes, work.dtype, work.conventions, work.unknown)
        if len(self._kinds) >= _MOST_KINDS and kind not in self._kinds:
            kind = kind._replace(shapes=_OTHER, unknown=kind.unknown and _OTHER)
        if kind not in self._kinds:
            self._kinds[kind] = len(self._kinds)
            self._listed.append(kind)
        self._kind_of.append(self._kinds[kind])


@cache
def _counted_names() -> pa.Array:
    return pa.array(formulas(), pa.string())


def _have_formulas(names: pa.Array) -> pa.Array:
    return pc.or_(pc.is_in(names, _counted_names()), pc.starts_with(names, TEMPLATES))


def read_inputs(text: str | None) -> list[object]:
    """Read a column of an operator's inputs, JSON; of what is no list, nothing is said."""
    if text is None:
        return []
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def shapes_text(dims: Iterable[object]) -> str:
    """Write the sizes of inputs for people: ``32x64, 64x64``; what has none is left out."""
    text = ", ".join(_shapes(dims))
    return text if len(text) <= _LONGEST_SHAPES else f"{text[: _LONGEST_SHAPES - 1]}…"


def _shapes(dims: Iterable[object]) -> Iterator[str]:
    for each in dims:
        if not isinstance(each, list) or not each:
            continue
        inner = [sizes for sizes in each if isinstance(sizes, list)]
        yield f"({', '.join(map(_sizes, inner))})" if inner else _sizes(each)


def _sizes(sizes: Iterable[object]) -> str:
    return "x".join(str(size)[:_LONGEST_SIZE] for size in sizes if isinstance(size, int))
