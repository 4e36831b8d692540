"""Which call on the host launched this device event?

By ``correlation``, and only by it: flows are drawn for calls that launch nothing, and in
old traces ``External id`` is another number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.intervals import Int64s
from traceparse.rank.rows import number_parts, numbers_of, rows_where
from traceparse.tables import ArrowTable

__all__ = ["UNLINKED", "Calls", "calls_of", "launches_of", "num_without_device_event"]

UNLINKED = np.iinfo(np.int64).min

# cudaLaunchKernel, hipExtLaunchKernel, cuLaunchKernelEx, cudaGraphLaunch, cudaMemcpyAsync …,
# but not a function launched onto the host, nor memsets: those of zero bytes run nothing
_LAUNCHES = r"^(?:cuda|cu|hip)\w*(?:Launch|Memcpy)"
_ON_HOST = "HostFunc"


class Calls(NamedTuple):
    """The calls of a file: correlations, sorted and each once, and when the earliest began."""

    keys: npt.NDArray[np.uint64]
    starts: Int64s

    def starts_of(self, wanted: npt.NDArray[np.uint64]) -> Int64s:
        """When did the call with each of these correlations begin? 0 is none."""
        at, is_known = _find(wanted, self.keys)
        starts = np.full(wanted.size, UNLINKED)
        starts[is_known] = self.starts[at[is_known]]
        return starts


def calls_of(launches: ArrowTable) -> Calls:
    """Return the calls by their correlation."""
    keys, starts = numbers_of(launches, "correlation"), launches["start_ns"].to_numpy()
    if np.any(keys[1:] < keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = starts[order]
    firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: keys.size])
    if firsts.size == keys.size:
        return Calls(keys, starts)
    return Calls(keys[firsts], np.minimum.reduceat(starts, firsts))


def launches_of(device_events: ArrowTable, launches: ArrowTable) -> Int64s:
    """When was each row of ``device_events`` launched? Start of its earliest call, in ns.

    ``UNLINKED`` where no call of the file has its correlation.
    """
    calls = calls_of(launches)
    at_ns = np.empty(device_events.num_rows, np.int64)
    for rows, (wanted,) in number_parts(device_events, "correlation"):
        at_ns[rows] = calls.starts_of(wanted)
    return at_ns


def num_without_device_event(launches: ArrowTable, device_events: ArrowTable) -> int:
    """How many calls that launch work left no device event: what the tracer dropped."""
    launching = rows_where(launches, "name", _is_launch)
    answered = numbers_of(device_events, "correlation")
    answered.sort()
    num = 0
    for rows, (keys,) in number_parts(launches, "correlation"):
        asking = keys[launching[rows] & (keys != 0)]
        asking.sort()  # one that follows another is found near it
        num += int(np.sum(~_find(asking, answered)[1]))
    return num


def _find(
    wanted: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return where each id is among sorted ones, and whether it is; 0 is nowhere."""
    at = np.searchsorted(keys, wanted)
    if not keys.size:
        return at, np.zeros(wanted.size, np.bool_)
    at[at == keys.size] = 0
    return at, (wanted != 0) & (keys[at] == wanted)


def _is_launch(names: pa.Array) -> pa.Array:
    return pc.and_not(
        pc.match_substring_regex(names, _LAUNCHES), pc.match_substring(names, _ON_HOST)
    )
