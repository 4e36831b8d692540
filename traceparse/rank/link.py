"""Which call on the host launched this device event?

By ``correlation``, and only by it: flows are drawn for calls that launch nothing, and in
old traces ``External id`` is another number.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.rank.classify import texts_of
from traceparse.tables import ArrowTable

__all__ = ["UNLINKED", "launches_of", "num_without_device_event"]

UNLINKED = np.iinfo(np.int64).min

# cudaLaunchKernel, hipExtLaunchKernel, cuLaunchKernelEx, cudaGraphLaunch, cudaMemcpyAsync …,
# but not a function launched onto the host, nor memsets: those of zero bytes run nothing
_LAUNCHES = re.compile(r"^(?:cuda|cu|hip)\w*?(?:Launch|Memcpy)(?!\w*HostFunc)")


def launches_of(device_events: ArrowTable, launches: ArrowTable) -> Int64s:
    """When was each row of ``device_events`` launched? Start of its earliest call, in ns.

    ``UNLINKED`` where no call of the file has its correlation.
    """
    keys, starts = _correlations(launches), launches["start_ns"].to_numpy()
    order = np.lexsort((starts, keys))
    keys, starts = keys[order], starts[order]
    first = np.append(True, keys[1:] != keys[:-1])[: keys.size]
    keys, starts = keys[first], starts[first]
    wanted = _correlations(device_events)
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
    names, ids = texts_of(launches, "name")
    launching = np.array([bool(_LAUNCHES.match(name)) for name in names], np.bool_)[ids]
    keys = _correlations(launches)[launching]
    return int(np.sum((keys != 0) & ~np.isin(keys, _correlations(device_events))))


def _correlations(table: ArrowTable) -> npt.NDArray[np.uint64]:
    found: npt.NDArray[np.uint64] = table["correlation"].fill_null(0).to_numpy()
    return found
