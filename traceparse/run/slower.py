"""How much longer do one rank's kernels take than the others', for the same work?

Alike are runs of one operator with the same shapes in the same data type; of each, the mean
time of a run is compared with the median of the other ranks' means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from traceparse.rank import OperatorWork

__all__ = ["KernelTable", "Slower", "kernel_table"]

_Key: TypeAlias = tuple[str, str, str, bool]


@dataclass(frozen=True, slots=True)
class Slower:
    """One rank's kernels against the others': ``excess_ns`` more than ``usual_ns`` in all.

    ``op`` with ``shapes`` is the operator that adds most to it: ``mean_ns`` a run, where the
    median of the other ranks is ``median_ns``.
    """

    excess_ns: float
    usual_ns: float
    op: str
    shapes: str
    mean_ns: float
    median_ns: float

    @property
    def factor(self) -> float:
        """How many times as long they take."""
        return 1 + self.excess_ns / self.usual_ns


@dataclass(frozen=True, slots=True)
class KernelTable:
    """Operators by devices: how often each ran, and the mean time of a run; NaN: never."""

    keys: tuple[_Key, ...]
    counts: npt.NDArray[np.float64]
    mean_ns: npt.NDArray[np.float64]

    def slower(self, device: int) -> Slower | None:
        """Compare one device with the others; ``None`` where no other runs the same."""
        others = np.sort(np.delete(self.mean_ns, device, axis=1), axis=1)  # NaN comes last
        num = np.count_nonzero(~np.isnan(others), axis=1)
        known = np.flatnonzero((num > 0) & ~np.isnan(self.mean_ns[:, device]))
        if not known.size:
            return None
        low, high = (num[known] - 1) // 2, num[known] // 2
        usual = (others[known, low] + others[known, high]) / 2
        own, counts = self.mean_ns[known, device], self.counts[known, device]
        excess = counts * (own - usual)
        usual_ns = float(counts @ usual)
        if not usual_ns:
            return None
        worst = int(np.argmax(excess))
        op, shapes, _, _ = self.keys[known[worst]]
        return Slower(
            float(excess.sum()), usual_ns, op, shapes, float(own[worst]), float(usual[worst])
        )


def kernel_table(operators: Sequence[Sequence[OperatorWork]]) -> KernelTable:
    """Put the operators of all devices beside one another."""
    rows: dict[_Key, int] = {}
    found = [
        (rows.setdefault(_key(work), len(rows)), device, work.count, work.time_ns)
        for device, own in enumerate(operators)
        for work in own
        if work.count
    ]
    row, device, count, time_ns = np.array(found, np.float64).reshape(-1, 4).T
    counts = np.zeros((len(rows), len(operators)))
    times = np.zeros_like(counts)
    place = row.astype(np.int64), device.astype(np.int64)
    np.add.at(counts, place, count)
    np.add.at(times, place, time_ns)
    with np.errstate(invalid="ignore"):
        return KernelTable(tuple(rows), counts, times / counts)


def _key(work: OperatorWork) -> _Key:
    return work.op, work.shapes, work.dtype, work.is_recompute
