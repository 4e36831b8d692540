"""Which call on the host launched this device event?

By ``correlation``, and only by it: flows are drawn for calls that launch nothing, and in
old traces ``External id`` is another number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.intervals import Int64s
from traceparse.rank.classify import by_text
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
    launching = by_text(launches, "name", _is_launch, null=False)
    keys = _correlations(launches)[launching]
    return int(np.sum((keys != 0) & ~np.isin(keys, _correlations(device_events))))


def _is_launch(names: pa.Array) -> npt.NDArray[np.bool_]:
    found = pc.and_not(
        pc.match_substring_regex(names, _LAUNCHES), pc.match_substring(names, _ON_HOST)
    )
    launches: npt.NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return launches


def _correlations(table: ArrowTable) -> npt.NDArray[np.uint64]:
    found: npt.NDArray[np.uint64] = table["correlation"].fill_null(0).to_numpy()
    return found
