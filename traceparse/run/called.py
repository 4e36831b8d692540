"""The calls among the tasks of a job: which instance each is of, and how it takes part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.rank import DeviceDigest
from traceparse.run.across import Across
from traceparse.run.chains import Chain

__all__ = ["CallTasks", "calls_of"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CallTasks:
    """Of all tasks of all devices what they are as calls.

    ``instance`` is -1 for those that are none. ``is_met`` says whether all members are known,
    so that a call goes on until all have started; ``is_free`` whether they may end apart.
    ``transfer_ns`` is 0 where it is not known, and ``is_known`` says where it is.
    """

    instance: Int64s
    is_met: Bools
    is_free: Bools
    transfer_ns: Int64s
    is_known: Bools


def calls_of(
    chains: Sequence[Chain], devices: Sequence[DeviceDigest], together: Across | None
) -> CallTasks:
    """Tell the calls among the tasks of all devices."""
    own_call = np.concatenate([chain.call for chain in chains])
    num = own_call.size
    nothing = np.zeros(num, np.bool_)
    instance = np.full(num, -1)
    if together is None:
        return CallTasks(instance, nothing, nothing, np.zeros(num, np.int64), own_call < 0)
    instances = together.instances
    sizes = [device.calls.num_rows for device in devices]
    before = np.repeat(np.cumsum(sizes) - sizes, [chain.num for chain in chains])
    tasks = np.flatnonzero(own_call >= 0)
    instance[tasks] = instances.of_call[before[tasks] + own_call[tasks]]
    own = instance[tasks]
    device = np.repeat(np.arange(len(chains)), [chain.num for chain in chains])[tasks]
    _, which, counts = np.unique(
        np.stack([own, device]), axis=1, return_inverse=True, return_counts=True
    )
    is_alone = counts[which.reshape(-1)] == 1
    has_clock = np.array([line is not None for line in together.clock.lines])
    all_clocks = np.bincount(own, ~has_clock[device], instances.first_call.size) == 0
    is_met = nothing.copy()
    is_met[tasks] = instances.is_split[own] & is_alone & all_clocks[own]
    is_free = nothing.copy()
    is_free[tasks] = ~together.ends_coincide[own] | instances.is_peer[own]
    lasts = np.concatenate([chain.end_ns - chain.start_ns for chain in chains])
    usual = together.usual_transfer_ns()
    transfer_ns = np.zeros(num, np.int64)
    transfer_ns[tasks] = np.where(
        is_met[tasks], instances.transfer_ns[own], np.minimum(usual[own], lasts[tasks])
    )
    is_known = own_call < 0
    is_known[tasks] = is_met[tasks] | (usual[own] >= 0)
    return CallTasks(instance, is_met, is_free, np.maximum(transfer_ns, 0), is_known)
