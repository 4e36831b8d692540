"""Which call on the host launched this device event?

By ``correlation``, and only by it: flows are drawn for calls that launch nothing, and in
old traces ``External id`` is another number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.intervals import Int64s
from traceparse.rank.rows import numbers_of, rows_where
from traceparse.tables import ArrowTable

__all__ = ["UNLINKED", "launches_of", "num_without_device_event"]

UNLINKED = np.iinfo(np.int64).min

# cudaLaunchKernel, hipExtLaunchKernel, cuLaunchKernelEx, cudaGraphLaunch, cudaMemcpyAsync …,
# but not a function launched onto the host, nor memsets: those of zero bytes run nothing
_LAUNCHES = r"^(?:cuda|cu|hip)\w*(?:Launch|Memcpy)"
_ON_HOST = "HostFunc"


def launches_of(device_events: ArrowTable, launches: ArrowTable) -> Int64s:
    """When was each row of ``device_events`` launched? Start of its earliest call, in ns.

    ``UNLINKED`` where no call of the file has its correlation.
    """
    keys, starts = numbers_of(launches, "correlation"), launches["start_ns"].to_numpy()
    order = np.lexsort((starts, keys))
    keys, starts = keys[order], starts[order]
    first = np.append(True, keys[1:] != keys[:-1])[: keys.size]
    keys, starts = keys[first], starts[first]
    wanted = numbers_of(device_events, "correlation")
    at = np.searchsorted(keys, wanted)
    at[at == keys.size] = 0
    found = (
        (wanted != 0) & (keys[at] == wanted) if keys.size else np.zeros(wanted.size, np.bool_)
    )
    at_ns = np.full(wanted.size, UNLINKED)
    at_ns[found] = starts[at[found]]
    return at_ns


def num_without_device_event(launches: ArrowTable, device_events: ArrowTable) -> int:
    """How many calls that launch work left no device event: what the tracer dropped."""
    launching = rows_where(launches, "name", _is_launch)
    keys = numbers_of(launches, "correlation")[launching]
    answered = np.isin(keys, numbers_of(device_events, "correlation"))
    return int(np.sum((keys != 0) & ~answered))


def _is_launch(names: pa.Array) -> pa.Array:
    return pc.and_not(
        pc.match_substring_regex(names, _LAUNCHES), pc.match_substring(names, _ON_HOST)
    )
