"""Counters of a device: how much it did, bin by bin, from its table and the collectives."""

from __future__ import annotations

import numpy as np

from traceparse.bridge.overlay.counters import Done, bins_of, samples
from traceparse.bridge.overlay.job import Device, Job
from traceparse.bridge.overlay.lines import Event
from traceparse.bridge.overlay.partition import Sets
from traceparse.bridge.overlay.plan import COUNTERS
from traceparse.bridge.overlay.rows import Rows

__all__ = ["draw_counters"]


def draw_counters(
    job: Job, device: Device, sets: Sets, table: Rows | None, num_bins: int
) -> None:
    """Draw how much a device did, bin by bin."""
    window = device.part.device.window
    inner = [edge for one in device.marked for edge in (one.start_ns, one.end_ns)]
    cuts = np.unique(
        [window.start_ns, *(e for e in inner if window.start_ns < e < window.end_ns)]
    )
    places = job.steps.of(device.marked, cuts)
    bins = bins_of(np.append(cuts, window.end_ns).astype(np.int64), places, num_bins)
    edges = job.aligned(device.place, bins.edges)
    found = samples(
        bins,
        busy=sets.busy,
        flop=_flop(device, table),
        peaks=job.assembled.measured.peaks[device.place].flop_per_s,
        moved=_moved(job, device),
    )
    for (name, unit), values in found:
        events = [Event("C", name, device.pid, args={unit: value}) for value in values]
        closing = [Event("C", name, device.pid, args={unit: 0})]
        job.put(COUNTERS, events, edges[:-1], bins.places)
        job.put(COUNTERS, closing, edges[-1:], bins.places[-1:])


def _flop(device: Device, table: Rows | None) -> dict[str, Done] | None:
    """Return what was worked by data type; of the host, what each step worked."""
    if table is None or not table.num:
        told = [
            one for one in device.report.steps if one.times and one.executed_flop is not None
        ]
        if not told:
            return None
        columns = zip(
            *((s.times.start_ns, s.times.end_ns, s.executed_flop) for s in told if s.times),
            strict=True,
        )
        return {"": Done(*(np.array(column, np.int64) for column in columns))}
    names = table.texts("device", np.arange(table.num))
    flop = table.numbers("flop", np.arange(table.num))
    rows = np.flatnonzero(
        np.array(
            [n == device.name and f is not None for n, f in zip(names, flop, strict=True)],
            np.bool_,
        )
    )
    if not rows.size:
        return None
    dtypes = np.array([one or "" for one in table.texts("dtype", rows)])
    amounts = np.array([flop[row] for row in rows.tolist()], np.int64)
    starts, ends = table.times("start_ns")[rows], table.times("end_ns")[rows]
    return {
        str(dtype): Done(*(column[dtypes == dtype] for column in (starts, ends, amounts)))
        for dtype in np.unique(dtypes[amounts > 0])
    }


def _moved(job: Job, device: Device) -> tuple[Done, ...]:
    """Return the bytes that transfers of the device moved, and the time that these took."""
    together = job.assembled.together
    if together is None:
        return ()
    instances, calls = together.instances, together.calls
    sizes = calls.message_bytes[instances.first_call]
    own = instances.part_instance
    rows = np.flatnonzero(
        (instances.part_device == device.place)
        & (instances.is_split & (sizes > 0) & (instances.transfer_ns > 0))[own]
    )
    if not rows.size:
        return ()
    ends, ns = instances.part_end_ns[rows], instances.transfer_ns[own[rows]]
    return Done(ends - ns, ends, sizes[own[rows]]), Done(ends - ns, ends, ns)
