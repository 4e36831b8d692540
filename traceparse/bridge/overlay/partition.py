"""Where the time of a device went, as slices side by side: they fill its window exactly."""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.ingest import RankTrace
from traceparse.intervals import (
    EMPTY,
    Int64s,
    Intervals,
    difference,
    from_spans,
    gaps,
    union,
)
from traceparse.rank import Times
from traceparse.rank.classify import COMM, COMPUTE, COPY
from traceparse.rank.works import CPU, device_work, devices_of, host_work
from traceparse.run.exposure import Exposure

__all__ = ["PARTS", "Sets", "Slices", "partition", "sets_of"]

PARTS: Final = (
    "compute",
    "exposed transfer",
    "exposed wait",
    "pipeline wait",
    "exposed unsplit",
    "exposed copy",
    "idle",
)


class Sets(NamedTuple):
    """When a device did what."""

    compute: Intervals
    comm: Intervals
    copy: Intervals

    @property
    def busy(self) -> Intervals:
        """When it did anything."""
        return union(union(self.compute, self.comm), self.copy)


class Slices(NamedTuple):
    """Slices in order, each from the end of the one before; ``parts`` are places in PARTS."""

    starts: Int64s
    ends: Int64s
    parts: npt.NDArray[np.int64]


def sets_of(trace: RankTrace) -> dict[str, Sets]:
    """Return when each device of a trace did what, by name; the host where there is none."""
    names = devices_of(trace)
    spans: dict[tuple[str, int], list[tuple[Int64s, Int64s]]] = defaultdict(list)
    for work in device_work(trace, names) if names else host_work(trace):
        for device in np.unique(work.devices).tolist():
            for kind in (COMPUTE, COMM, COPY):
                rows = (work.devices == device) & (work.kinds == kind)
                name = names[device] if names else CPU
                spans[name, kind].append((work.starts[rows], work.ends[rows]))

    def joined(name: str, kind: int) -> Intervals:
        starts, ends = zip(*spans[name, kind], strict=True)
        return from_spans(np.concatenate(starts), np.concatenate(ends))

    return {
        name: Sets(*(joined(name, kind) for kind in (COMPUTE, COMM, COPY)))
        for name in dict.fromkeys(name for name, _ in spans)
    }


def partition(sets: Sets, exposure: Exposure | None, window: Times, cuts: Int64s) -> Slices:
    """Cut the window of a device into its parts, and these where steps begin and end."""
    if exposure is None:
        alone = difference(sets.comm, sets.compute)
        exposure = Exposure(EMPTY, EMPTY, EMPTY, alone)
    exposed_copy = difference(sets.copy, union(sets.compute, sets.comm))
    idle = gaps(sets.busy, window.start_ns, window.end_ns)
    every = (sets.compute, *exposure, exposed_copy, idle)
    starts = np.concatenate([one.starts for one in every])
    parts = np.repeat(np.arange(len(every)), [one.starts.size for one in every])
    order = np.argsort(starts)
    starts, parts = starts[order], parts[order]
    inside = cuts[(cuts > window.start_ns) & (cuts < window.end_ns)]
    begins = np.unique(np.concatenate([starts, inside]))
    return Slices(
        begins,
        np.append(begins[1:], window.end_ns),
        parts[np.searchsorted(starts, begins, "right") - 1],
    )
