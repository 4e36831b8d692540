"""What bounds a run: which of compute, memory, communication and host costs most of its time.

* ``communication``: nothing computes while a collective runs.
* ``host``: a device idles in the data loader's, a synchronizing call's or a launch's time.
* ``memory``: kernels of known operators that do not multiply, and counted ones whose roof is
  the bandwidth of memory, half of which they use.
* ``compute``: all other counted kernels, however slow.

What is none of them (exposed copies), and what may be one or the other (idle of unknown
cause, kernels of unknown operators, operators without a roof), is laid to none: the largest
is told only if it is that, however the rest may be divided.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from traceparse.run.findings.view import View

__all__ = ["Bound", "By", "bound_of"]

By: TypeAlias = Literal["compute", "memory", "communication", "host"]

_CAUSED: Final = ("data_loader_ns", "sync_ns", "launch_ns")


@dataclass(frozen=True, slots=True)
class Bound:
    """What costs most of the device-steps, and its share; ``None`` where that is not known."""

    by: By | None
    ratio: float | None


def bound_of(view: View) -> Bound:
    """Say what costs most of the device-steps."""
    if not view.times.span_ns:
        return Bound(None, None)
    shares = _shares(view)
    copy = view.ratio(view.times.exposed_copy_ns)
    for by, (least, _) in shares.items():
        others = [most for other, (_, most) in shares.items() if other != by]
        if least and least >= max(*others, copy):
            return Bound(by, least)
    return Bound(None, None)


def _shares(view: View) -> dict[By, tuple[float, float]]:
    """Return between which shares each may be."""
    times = view.times
    exposed = view.ratio(times.exposed_comm_ns)
    idle = view.ratio(times.idle_ns)
    caused = sum(map(view.host_ratio, _CAUSED))
    computing, moving, unknown = _kernels(view)
    return {
        "communication": (exposed, exposed),
        "host": (caused, caused + view.host_ratio("unknown_ns") if view.host else idle),
        "memory": (moving, moving + unknown),
        "compute": (computing, computing + unknown),
    }


def _kernels(view: View) -> tuple[float, float, float]:
    """Divide the time that kernels compute: in compute, in memory, and in nobody knows what."""
    every = view.ratio(view.times.compute_ns)
    other = view.other_ratio or 0.0
    sums: Counter[By | None] = Counter()
    for row in view.roofline or ():
        by: By | None = "memory" if view.is_near_bandwidth(row) else "compute"
        sums[by if row["bound"] else None] += row["time_ns"]
    computing = view.of_counted(sums["compute"]) or 0.0
    moving = other + (view.of_counted(sums["memory"]) or 0.0)
    return computing, moving, max(every - computing - moving, 0.0)
