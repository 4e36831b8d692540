"""Which operators lose most? Each beside the roof that its device puts over it.

The roof of an operator is min(peak, FLOP / bytes · bandwidth) (Williams, Waterman and
Patterson, 2009), so that its time at the roof is the longer one of FLOP at the peak and bytes
at the bandwidth. Bytes are the least that any implementation moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from traceparse.rank import OperatorWork, RankDigest
from traceparse.run.peaks import Peaks
from traceparse.run.tally import NS_PER_S

__all__ = ["Row", "rows_of"]


@dataclass(slots=True)
class Row:
    """All runs of one operator with the same shapes in the same data type, in all files.

    Times at the roof are summed file by file, so that they are right for devices that differ;
    one that is not known leaves the sum unknown. ``shortest_ns`` sums, over all runs, how long
    the shortest kernel of their file took. ``least_ns`` is at the peak that nothing exceeds.
    """

    op: str
    shapes: str
    dtype: str
    count: int = 0
    recompute_count: int = 0
    time_ns: int = 0
    flop: int = 0
    num_bytes: int = 0
    compute_ns: Fraction | None = field(default_factory=Fraction)
    memory_ns: Fraction | None = field(default_factory=Fraction)
    roof_ns: Fraction | None = field(default_factory=Fraction)
    shortest_ns: int | None = 0
    least_ns: Fraction | None = field(default_factory=Fraction)

    def add(self, work: OperatorWork, peaks: Peaks | None, shortest_ns: int | None) -> None:
        """Add the runs of one file."""
        self.count += work.count
        self.recompute_count += work.count if work.is_recompute else 0
        self.time_ns += work.time_ns
        self.flop += work.flop
        self.num_bytes += work.least_bytes
        compute = _ns(work.flop, peaks.flop_per_s.get(work.dtype) if peaks else None)
        memory = _ns(work.least_bytes, peaks.bytes_per_s if peaks else None)
        roof = compute if compute is None or memory is None else max(compute, memory)
        self.compute_ns = _plus(self.compute_ns, compute)
        self.memory_ns = _plus(self.memory_ns, memory)
        self.roof_ns = _plus(self.roof_ns, roof)
        self.least_ns = _plus(self.least_ns, _least_ns(work, peaks))
        if self.shortest_ns is not None:
            self.shortest_ns = (
                None if shortest_ns is None else self.shortest_ns + work.count * shortest_ns
            )

    @property
    def lost_ns(self) -> Fraction | None:
        """How much time is above the roof; below zero for what beats it."""
        return None if self.roof_ns is None else self.time_ns - self.roof_ns

    @property
    def bound(self) -> str | None:
        """What keeps it from being faster, once it is at its roof.

        ``latency``: a run would take less time there than the shortest kernel that the same
        devices ran, so that it is too small for a roof to matter: fewer and larger calls help,
        faster kernels do not. Else ``compute`` or ``memory``, whichever takes longer; unknown
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


def _least_ns(work: OperatorWork, peaks: Peaks | None) -> Fraction | None:
    """How long must these FLOP take? What may have run as tf32 may have taken as little."""
    known: Mapping[str, float] = peaks.spec_flop_per_s if peaks else {}
    dtypes = (work.dtype, "tf32") if work.is_maybe_tf32 else (work.dtype,)
    limits = [known[dtype] for dtype in dtypes if dtype in known]
    return _ns(work.flop, max(limits)) if work.dtype in known else None
