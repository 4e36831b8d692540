"""The collective calls of all ranks, in columns: what matching and the clock work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.intervals import Int64s
from traceparse.rank import DeviceDigest
from traceparse.tables import ArrowTable

__all__ = ["NOTHING", "Calls", "gather_calls"]

NOTHING = -1  # of numbers that count from 0: not told


@dataclass(frozen=True, slots=True)
class Calls:
    """One row a call, device after device, in order of start; texts are numbered.

    ``devices`` are places in what was gathered. ``groups``, ``collectives``, ``dtypes`` and
    ``names`` number what ``group_texts`` (name, ranks and size) and the like have; numbers
    that are not told are ``NOTHING``, ids that are not told are 0. Times are on each rank's own
    clock.
    """

    devices: npt.NDArray[np.int32]
    start_ns: Int64s
    end_ns: Int64s
    groups: npt.NDArray[np.int32]
    collectives: npt.NDArray[np.int32]
    dtypes: npt.NDArray[np.int32]
    names: npt.NDArray[np.int32]
    message_bytes: Int64s
    sequences: Int64s
    comms_ids: npt.NDArray[np.uint64]
    sources: Int64s
    destinations: Int64s
    is_partial: npt.NDArray[np.bool_]
    group_texts: tuple[tuple[str | None, str | None, int | None], ...]
    collective_texts: tuple[str | None, ...]
    dtype_texts: tuple[str | None, ...]
    name_texts: tuple[str | None, ...]

    @property
    def num(self) -> int:
        """How many calls there are."""
        return self.devices.size


def gather_calls(devices: Sequence[DeviceDigest]) -> Calls:
    """Put the calls of all devices under one another."""
    tables = [device.calls for device in devices]
    joined = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    sizes = [table.num_rows for table in tables]
    group_ids, group_texts = _groups(joined)
    columns = {name: _numbered(joined, name) for name in ("collective", "dtype", "name")}
    return Calls(
        devices=np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        start_ns=_numbers(joined, "start_ns"),
        end_ns=_numbers(joined, "end_ns"),
        groups=group_ids,
        collectives=columns["collective"][0],
        dtypes=columns["dtype"][0],
        names=columns["name"][0],
        message_bytes=_numbers(joined, "message_bytes"),
        sequences=_numbers(joined, "sequence"),
        comms_ids=joined["comms_id"].fill_null(0).to_numpy(),
        sources=_numbers(joined, "source"),
        destinations=_numbers(joined, "destination"),
        is_partial=joined["is_partial"].fill_null(False).to_numpy(),  # noqa: FBT003 - a value
        group_texts=group_texts,
        collective_texts=columns["collective"][1],
        dtype_texts=columns["dtype"][1],
        name_texts=columns["name"][1],
    )


def _numbers(table: ArrowTable, column: str) -> Int64s:
    found = table[column].fill_null(pa.scalar(0, table[column].type)).to_numpy()
    nulls = table[column].is_null().to_numpy()
    # ids beyond an int64 are no sequence of anything
    return np.where(nulls | (found > np.iinfo(np.int64).max), NOTHING, found).astype(np.int64)


def _numbered(
    table: ArrowTable, column: str
) -> tuple[npt.NDArray[np.int32], tuple[str | None, ...]]:
    if not table.num_rows:
        return np.empty(0, np.int32), ()
    found = table[column].combine_chunks().dictionary_encode()
    found = found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
    ids = found.indices.fill_null(len(found.dictionary)).to_numpy(zero_copy_only=False)
    return ids.astype(np.int32), (*found.dictionary.to_pylist(), None)


def _groups(
    table: ArrowTable,
) -> tuple[npt.NDArray[np.int32], tuple[tuple[str | None, str | None, int | None], ...]]:
    """Give each group a number: disjoint ones reuse names, so its ranks tell too."""
    names, name_texts = _numbered(table, "group")
    ranks, ranks_texts = _numbered(table, "group_ranks")
    sizes = _numbers(table, "group_size")
    keys = np.column_stack([names, ranks, sizes])
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    texts = tuple(
        (
            name_texts[name],
            ranks_texts[own] if ranks_texts else None,
            None if size == NOTHING else size,
        )
        for name, own, size in distinct.tolist()
    )
    return which.reshape(-1).astype(np.int32), texts
