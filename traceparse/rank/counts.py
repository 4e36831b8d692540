"""How many events and kernels a device ran, for how long, and how many have a launch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.rank.times import KernelCounts

__all__ = ["Count", "total_ns"]


@dataclass(slots=True)
class Count:
    """Events of one device, and when the first of them starts and the last one ends."""

    start_ns: int = np.iinfo(np.int64).max
    end_ns: int = 0
    num_events: int = 0
    num_linked_events: int = 0
    num_kernels: int = 0
    num_linked_kernels: int = 0
    kernels_ns: int = 0
    linked_kernels_ns: int = 0
    shortest_ns: int | None = None  # of kernels that took any time

    def add(self, starts: Int64s, ends: Int64s, is_kernel: npt.NDArray[np.bool_]) -> None:
        """Count events, whether they have a launch or not."""
        self.start_ns = min(self.start_ns, int(starts.min()))
        self.end_ns = max(self.end_ns, int(ends.max()))
        self.num_events += starts.size
        self.num_kernels += int(is_kernel.sum())
        lasts = (ends - starts)[is_kernel]
        self.kernels_ns += total_ns(lasts)
        lasts = lasts[lasts > 0]
        if lasts.size:
            self.shortest_ns = min(self.shortest_ns or int(lasts[0]), int(lasts.min()))

    def add_linked(
        self, starts: Int64s, ends: Int64s, is_kernel: npt.NDArray[np.bool_]
    ) -> None:
        """Count those among them that have a launch."""
        self.num_linked_events += starts.size
        self.num_linked_kernels += int(is_kernel.sum())
        self.linked_kernels_ns += total_ns((ends - starts)[is_kernel])

    def kernels(self, num_attributed: int, attributed_ns: int) -> KernelCounts:
        """Return what the report says of kernels, given those that any operator is around."""
        return KernelCounts(
            count=self.num_kernels,
            time_ns=self.kernels_ns,
            unlinked_count=self.num_kernels - self.num_linked_kernels,
            unlinked_time_ns=self.kernels_ns - self.linked_kernels_ns,
            unattributed_count=self.num_kernels - num_attributed,
            unattributed_time_ns=self.kernels_ns - attributed_ns,
        )


def total_ns(lasts: Int64s) -> int:
    """Add up without overflow, however long a file claims its kernels to be."""
    return (int(np.sum(lasts >> 32)) << 32) + int(np.sum(lasts & 0xFFFFFFFF))
