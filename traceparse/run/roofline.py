"""Which operators lose most? Each beside the roof that its device puts over it.

The roof of an operator is min(peak, FLOP / bytes · bandwidth) (Williams, Waterman and
Patterson, 2009), so that its time at the roof is the longer one of FLOP at the peak and bytes
at the bandwidth. Bytes are the least that any implementation moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from traceparse.rank import OperatorWork, RankDigest
from traceparse.run.peaks import Peaks
from traceparse.run.tally import NS_PER_S

__all__ = ["Row", "rows_of"]

_LONGEST_EMPTY_NS = 10_000  # nobody needs as long for a kernel that does nothing


@dataclass(slots=True)
class _Sums:
    """Runs on devices of the same peaks; ``roof_`` sums what takes longer, run by run."""

    flop: int = 0
    num_bytes: int = 0
    roof_flop: int = 0
    roof_bytes: int = 0
    maybe_tf32_flop: int = 0


@dataclass
class Row:
    """All runs of one operator with the same shapes in the same data type, in all files.

    Summed by the peaks of their devices, so that times at the roof are right where devices
    differ; one that is not known (``None``) leaves them unknown. ``shortest_ns`` sums, over all
    runs, how long the shortest kernel of their file took.
    """

    op: str
    shapes: str
    dtype: str
    count: int = 0
    recompute_count: int = 0
    time_ns: int = 0
    recompute_time_ns: int = 0
    flop: int = 0
    num_bytes: int = 0
    shortest_ns: int | None = 0
    sums: dict[Peaks | None, _Sums] = field(default_factory=dict)

    def add(self, work: OperatorWork, peaks: Peaks | None, shortest_ns: int | None) -> None:
        """Add the runs of one file."""
        self.count += work.count
        self.recompute_count += work.count if work.is_recompute else 0
        self.time_ns += work.time_ns
        self.recompute_time_ns += work.time_ns if work.is_recompute else 0
        self.flop += work.flop
        self.num_bytes += work.least_bytes
        if self.shortest_ns is not None:
            self.shortest_ns = (
                None
                if shortest_ns is None
                else self.shortest_ns + work.count * min(shortest_ns, _LONGEST_EMPTY_NS)
            )
        sums = self.sums.setdefault(peaks, _Sums())
        sums.flop += work.flop
        sums.num_bytes += work.least_bytes
        sums.maybe_tf32_flop += work.flop if work.is_maybe_tf32 else 0
        if peaks is not None and self._is_slowed_by_memory(work, peaks):
            sums.roof_bytes += work.least_bytes
        else:
            sums.roof_flop += work.flop

    def _is_slowed_by_memory(self, work: OperatorWork, peaks: Peaks) -> bool:
        rate, bandwidth = peaks.flop_per_s.get(self.dtype), peaks.bytes_per_s
        if rate is None or bandwidth is None:
            return False
        return work.least_bytes / bandwidth > work.flop / rate

    @cached_property
    def compute_ns(self) -> Fraction | None:
        """How long it takes at the peaks."""
        return self._total(lambda peaks, sums: _ns(sums.flop, peaks.flop_per_s.get(self.dtype)))

    @cached_property
    def memory_ns(self) -> Fraction | None:
        """How long it takes at the bandwidths."""
        return self._total(lambda peaks, sums: _ns(sums.num_bytes, peaks.bytes_per_s))

    @cached_property
    def roof_ns(self) -> Fraction | None:
        """How long it takes at the roofs: only those of compute where no bandwidth is known."""
        return self._total(self._roof_ns)

    @cached_property
    def least_ns(self) -> Fraction | None:
        """How long it must take, at peaks that nothing exceeds.

        What may have run as tf32 may have taken as little as that needs.
        """
        return self._total(self._least_ns)

    def _roof_ns(self, peaks: Peaks, sums: _Sums) -> Fraction | None:
        compute = _ns(sums.roof_flop, peaks.flop_per_s.get(self.dtype))
        if compute is None or not sums.roof_bytes:
            return compute
        return _plus(compute, _ns(sums.roof_bytes, peaks.bytes_per_s))

    def _least_ns(self, peaks: Peaks, sums: _Sums) -> Fraction | None:
        rate = peaks.spec_flop_per_s.get(self.dtype)
        if rate is None:
            return None
        fastest = max(rate, peaks.spec_flop_per_s.get("tf32", rate))
        maybe = sums.maybe_tf32_flop
        return _plus(_ns(sums.flop - maybe, rate), _ns(maybe, fastest))

    def _total(self, ns_of: Callable[[Peaks, _Sums], Fraction | None]) -> Fraction | None:
        total: Fraction | None = Fraction(0)
        for peaks, sums in self.sums.items():
            total = _plus(total, ns_of(peaks, sums) if peaks else None)
        return total

    @property
    def lost_ns(self) -> Fraction | None:
        """How much time is above the roof; below zero for what beats it."""
        return None if self.roof_ns is None else self.time_ns - self.roof_ns

    @property
    def bound(self) -> str | None:
        """What keeps it from being faster, once it is at its roof.

        ``latency``: a run would take less time there than the shortest kernel that the same
        devices ran, so that it is too small for a roof to matter: fewer and larger calls help,
        faster kernels do not. (Where all kernels are long, no more than 10 us: an empty one
        takes a few.) Else ``compute`` or ``memory``, whichever takes longer; unknown
        without bandwidth.
        """
        if self.roof_ns is None or self.compute_ns is None or self.memory_ns is None:
            return None
        if self.shortest_ns is not None and self.roof_ns < self.shortest_ns:
            return "latency"
        return "compute" if self.compute_ns >= self.memory_ns else "memory"

    def plain(self) -> dict[str, Any]:
        """Return a row of field ``roofline`` of the contract."""
        time_ns, roof_ns, lost_ns = self.time_ns, self.roof_ns, self.lost_ns
        return {
            "op": self.op,
            "shapes": self.shapes,
            "dtype": self.dtype,
            "count": self.count,
            "time_ns": time_ns,
            "flop": self.flop,
            "bytes": self.num_bytes,
            "flop_per_s": self.flop * NS_PER_S / time_ns if time_ns else None,
            "bytes_per_s": self.num_bytes * NS_PER_S / time_ns if time_ns else None,
            "bound": self.bound,
            "roof_ratio": None if roof_ns is None or not time_ns else float(roof_ns / time_ns),
            "lost_ns": None if lost_ns is None else round(lost_ns),
            "recompute_count": self.recompute_count,
            "recompute_time_ns": self.recompute_time_ns,
        }


def rows_of(digests: Sequence[RankDigest], peaks: Sequence[Iterable[Peaks]]) -> list[Row]:
    """Merge the operators of all files; those that lose most come first.

    ``peaks`` are those of each digest's devices: an operator does not say on which of them it
    ran, so its roof is known where they are alike. What has no roof comes last, by time.
    """
    rows: dict[tuple[str, str, str], Row] = {}
    for digest, own in zip(digests, peaks, strict=True):
        kinds = list(dict.fromkeys(own))
        known = kinds[0] if len(kinds) == 1 else None
        for work in digest.operators:
            key = (work.op, work.shapes, work.dtype)
            row = rows.setdefault(key, Row(*key))
            row.add(work, known, digest.shortest_kernel_ns)
    return sorted(rows.values(), key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    lost_ns = row.lost_ns
    return (
        lost_ns is None,
        -row.time_ns if lost_ns is None else -lost_ns,
        *(row.op, row.shapes, row.dtype),
    )


def _ns(amount: int, per_s: float | None) -> Fraction | None:
    return None if per_s is None else Fraction(amount * NS_PER_S) / Fraction(per_s)


def _plus(total: Fraction | None, part: Fraction | None) -> Fraction | None:
    return None if total is None or part is None else total + part
