"""What a rank's devices worked on and when, part by part; the host where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceparse.ingest import Kept, RankTrace
from traceparse.intervals import Int64s
from traceparse.rank.classify import (
    COMM,
    COMPUTE,
    COPY,
    Kinds,
    hints_of,
    kinds_of,
    kinds_on_host,
)
from traceparse.rank.rows import distinct, hashes_of, numbers_of, texts_of
from traceparse.rank.steps import past_belief
from traceparse.tables import ArrowTable

__all__ = ["Work", "device_work", "devices_of", "host_work", "keys_of"]

CPU = "cpu"
_HOST_KINDS = (COMPUTE, COMM)
_MOST_DEVICES = 1024  # of one process; nobody has more than 16
_INPUTS = ("name", "input_dims", "input_types")
_IGNORED = 99  # the kind of host ranges that are no work


class Work(NamedTuple):
    """What was done and when: columns of equal length, times in Unix ns.

    ``rows`` are those of their table; ``devices`` are places in what :func:`devices_of`
    returns; ``streams`` tell streams apart, of what communicates on the host its threads;
    ``keys`` are correlations, 0 for none; ``pairs`` are external ids of what has no
    correlation, 0 for none; ``hints`` are of data types, as :func:`hints_of` has them;
    ``idents`` tell names apart;
    ``is_kernel`` tells kernels from copies and from host work. ``comm`` is what the table has
    of the rows that communicate: their ``name``, and ``stream``, or on the host their inputs;
    ``copied`` of those that copy: ``name`` and ``copied_bytes``.
    """

    rows: Int64s
    devices: npt.NDArray[np.int16]
    streams: npt.NDArray[np.uint32]
    starts: Int64s
    ends: Int64s
    kinds: Kinds
    keys: npt.NDArray[np.uint64]
    pairs: npt.NDArray[np.uint64]
    hints: npt.NDArray[np.uint8]
    idents: npt.NDArray[np.uint64]
    is_kernel: npt.NDArray[np.bool_]
    comm: ArrowTable
    copied: ArrowTable


def devices_of(trace: RankTrace) -> list[str]:
    """Return the devices of a trace, as texts, in the order of the file.

    Raises
    ------
    InputError
        There are more than any process can have.
    """
    names = distinct(trace.kept["device_events"], "device")
    if len(names) > _MOST_DEVICES:
        raise past_belief(trace.health.path, len(names), "devices")
    return names


def device_work(trace: RankTrace, devices: list[str]) -> Iterator[Work]:
    """Yield the work of all devices, a part at a time."""
    known = {name: place for place, name in enumerate(devices)}
    columns = (
        "start_ns",
        "end_ns",
        "name",
        "category",
        "collective",
        "device",
        "correlation",
        "external_id",
        "stream",
        "copied_bytes",
    )
    done = 0
    for part in trace.kept["device_events"].parts(*columns):
        kinds = kinds_of(part)
        keys, pairs = keys_of(part)
        yield Work(
            rows=np.arange(done, done + part.num_rows),
            devices=texts_of(part, "device", known)[1].astype(np.int16),
            streams=_shortened(numbers_of(part, "stream")),
            starts=part["start_ns"].to_numpy(),
            ends=part["end_ns"].to_numpy(),
            kinds=kinds,
            keys=keys,
            pairs=pairs,
            hints=hints_of(part),
            idents=hashes_of(part, "name"),
            is_kernel=kinds != COPY,
            comm=_taken(part, ("name", "stream"), kinds == COMM),
            copied=_taken(part, ("name", "copied_bytes"), kinds == COPY),
        )
        done += part.num_rows


def _taken(
    table: ArrowTable, columns: Sequence[str], are_wanted: npt.NDArray[np.bool_]
) -> ArrowTable:
    return table.select(columns).take(pa.array(np.flatnonzero(are_wanted)))


def keys_of(
    table: ArrowTable,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return correlations, and external ids of what has none; 0 for none.

    Some of ROCm's traces have no correlation at all; what a launch shares with its device
    events there is the external id.
    """
    keys = numbers_of(table, "correlation")
    return keys, np.where(keys == 0, numbers_of(table, "external_id"), np.uint64(0))


def _shortened(ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """Tell ids apart by 32 bits: streams are few, but some are numbered by addresses."""
    return (ids ^ (ids >> np.uint64(32))).astype(np.uint32)


def host_work(trace: RankTrace) -> Iterator[Work]:
    """Yield the work of the host: operators compute, gloo and MPI communicate."""
    yield from _host_part(trace.kept["ops"], other=COMPUTE)
    yield from _host_part(trace.kept["annotations"], other=_IGNORED)


def _host_part(spans: Kept, *, other: int) -> Iterator[Work]:
    done = 0
    threads: dict[str, int] = {}
    for part in spans.parts("start_ns", "end_ns", "tid", *_INPUTS):
        kinds = kinds_on_host(part, other=other)
        rows = np.isin(kinds, _HOST_KINDS)
        num = int(rows.sum())
        if num:
            yield Work(
                rows=done + np.flatnonzero(rows),
                devices=np.zeros(num, np.int16),
                streams=texts_of(part, "tid", threads)[1][rows].astype(np.uint32),
                starts=part["start_ns"].to_numpy()[rows],
                ends=part["end_ns"].to_numpy()[rows],
                kinds=kinds[rows],
                keys=np.zeros(num, np.uint64),
                pairs=np.zeros(num, np.uint64),
                hints=np.zeros(num, np.uint8),
                idents=np.zeros(num, np.uint64),
                is_kernel=np.zeros(num, np.bool_),
                comm=_taken(part, _INPUTS, kinds == COMM),
                copied=part.slice(0, 0),
            )
        done += part.num_rows
