"""The digests of a job on a mesh, without its traces: what reducing many ranks is tried on.

Those of the distinct copies come from their traces, as any others. For each rank the digest of
the rank that it does the same as is told as its own: rank and ids, groups, peers, the clock of
its host. What comes out is what its trace would have given, but for that file's path and size.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tools.simulate_job import Job
from tools.simulate_mesh import MeshJob
from tools.simulate_program import Group
from tools.simulate_said import comms_id, process_id, trace_id
from tools.simulate_write import trace_bytes
from traceparse.ingest import read_traces
from traceparse.rank import NEVER, DeviceDigest, RankDigest, StepTimes, Times, digest
from traceparse.tables import ArrowTable
from traceparse.units import format_ranges

__all__ = ["digests_of"]

_TIMES = {
    "calls": ("start_ns", "end_ns", "launched_ns"),
    "exposed": ("start_ns", "end_ns"),
    "tasks": ("start_ns", "end_ns", "launched_ns", "ready_ns", "arrival_ns"),
    "syncs": ("start_ns", "end_ns"),
}
_MESSAGES = ("send", "recv")


def digests_of(made: MeshJob) -> Iterator[RankDigest]:
    """Yield the digest of each rank of a job, in their order."""
    known = _simulated(made)
    teller = _Teller(made, made.shown())
    for rank in range(made.mesh.ranks):
        yield teller.told(known[made.source(rank)], rank)


def _simulated(made: MeshJob) -> list[RankDigest]:
    """Return the digests of the distinct copies, from their traces."""
    found = []
    with tempfile.TemporaryDirectory(prefix="simulated-") as folder:
        for recording in made.recordings:
            path = Path(folder) / f"rank{recording.rank}_trace.json"
            path.write_bytes(trace_bytes(made.simulated, recording))
            (one,) = (digest(trace) for trace in read_traces(path))
            path.unlink()
            assert not one.notes, one.notes
            found.append(one)
    return found


@dataclass(slots=True)
class _Teller:
    """Tells digests of simulated ranks as those of others; ``job`` has as many as there are."""

    made: MeshJob
    job: Job
    _texts: dict[int, str] = field(default_factory=dict)
    _ids: dict[tuple[int, int, bool], int] = field(default_factory=dict)
    _copy: int = -1

    def told(self, of: RankDigest, rank: int) -> RankDigest:
        """Return the digest of a rank that does the same."""
        copy = rank // self.made.mesh.size
        if copy != self._copy:
            self._copy = copy
            self._ids.clear()  # most are of one copy
        source = of.health.rank
        assert source is not None
        groups = {group.name: group for group in self.made.mesh.groups(rank)}
        header = replace(
            of.header,
            rank=rank,
            world_size=self.job.world_size,
            trace_id=trace_id(self.job, rank),
            groups={name: self._text(groups[name]) for name in of.header.groups},
        )
        ahead_ns = self.made.clock(rank).offset_ns
        return replace(
            of,
            header=header,
            health=replace(of.health, rank=rank, path=f"rank{rank}_trace.json"),
            process=str(process_id(rank)),
            devices=tuple(
                self._device(device, groups, rank - source, ahead_ns) for device in of.devices
            ),
        )

    def _text(self, group: Group) -> str:
        if id(group) not in self._texts:
            self._texts[id(group)] = format_ranges(group.ranks)
        return self._texts[id(group)]

    def _device(
        self, device: DeviceDigest, groups: Mapping[str, Group], shift: int, ahead_ns: int
    ) -> DeviceDigest:
        tables = {
            name: _moved(getattr(device, name), names, ahead_ns)
            for name, names in _TIMES.items()
        }
        return replace(
            device,
            window=_ahead(device.window, ahead_ns),
            steps=tuple(_step_ahead(step, ahead_ns) for step in device.steps),
            **tables | {"calls": self._calls(tables["calls"], groups, shift)},
        )

    def _calls(self, calls: ArrowTable, groups: Mapping[str, Group], shift: int) -> ArrowTable:
        """Return calls with the groups and peers of other ranks."""
        names = calls["group"].to_pylist()
        own = dict(zip(calls["group_ranks"].to_pylist(), names, strict=True))
        are_messages = [one in _MESSAGES for one in calls["collective"].to_pylist()]
        numbers = calls["sequence"].to_pylist()
        columns: dict[str, Any] = {
            "group_ranks": _renamed(
                calls["group_ranks"], lambda text: self._text(groups[own[text]])
            ),
            "group_size": [len(groups[name].ranks) for name in names],
            "comms_id": [
                self._id(groups[name], number, is_message)
                for name, number, is_message in zip(names, numbers, are_messages, strict=True)
            ],
        }
        for name in ("source", "destination"):
            told = calls[name].to_pylist()
            columns[name] = [None if rank is None else rank + shift for rank in told]
        return _with(calls, columns)

    def _id(self, group: Group, number: int, is_message: bool) -> int:  # noqa: FBT001 - a value
        key = id(group), number, is_message
        if key not in self._ids:
            self._ids[key] = comms_id(group, number, is_message=is_message)
        return self._ids[key]


def _with(table: ArrowTable, columns: Mapping[str, Any]) -> ArrowTable:
    """Return a table with some columns replaced, of the same types."""
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        own = table.schema.field(place)
        table = table.set_column(place, own, pa.array(values, own.type))
    return table


def _renamed(column: pa.ChunkedArray, name: Callable[[str], str]) -> pa.Array:
    """Return a column of texts with others, numbered as they were."""
    found = column.combine_chunks()
    texts = [name(text) for text in found.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(found.indices, pa.array(texts, pa.string()))


def _moved(table: ArrowTable, names: tuple[str, ...], ahead_ns: int) -> ArrowTable:
    """Return a table with its times on a clock that is ahead."""
    columns = {}
    for name in names:
        column = table[name].combine_chunks()
        is_none = column.is_null().to_numpy(zero_copy_only=False)
        times = column.fill_null(NEVER).to_numpy()
        moved = np.where(times == NEVER, NEVER, times + ahead_ns)
        columns[name] = pa.array(moved, mask=is_none)
    return _with(table, columns)


def _ahead(times: Times, ahead_ns: int) -> Times:
    return replace(times, start_ns=times.start_ns + ahead_ns, end_ns=times.end_ns + ahead_ns)


def _step_ahead(step: StepTimes, ahead_ns: int) -> StepTimes:
    return replace(step, times=step.times and _ahead(step.times, ahead_ns))
