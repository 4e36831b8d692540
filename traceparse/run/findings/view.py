"""What rules see of a run: the fields of its report, and no trace.

What a report does not know is ``None`` or empty here, and a rule that needs it finds nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, TypeAlias

from traceparse.rank import Times
from traceparse.run.findings.finding import Finding

__all__ = ["Row", "View", "by_operator"]

Row: TypeAlias = Mapping[str, Any]

COMPUTE: Final = "compute"
_GOOD: Final = 0.7
_NEAR: Final = 0.5
_OF_FASTEST: Final = 0.9
# names of operators and kernels that multiply matrices: of ATen, cuDNN, cuBLAS, CUTLASS,
# MIOpen, hipBLASLt (Cijk_), Triton's templates; FBGEMM's namespace is none, nor is conversion
_MULTIPLIES: Final = re.compile(
    r"(?<!fb)gemm|conv(?!ert)|(?:^|::|_)(?:b|add|baddb|scaled_|grouped_)?mm(?:_|$)|matmul"
    r"|linear(?![a-z])|attention|attn|fmha|flash|sdpa|[wd]grad_|cutlass|nvjet|cijk_|triton_tem",
    re.IGNORECASE,
)
# Inductor names what it fuses behind a product for that product as well
_FUSED_AFTER: Final = re.compile(r"^triton_(?:poi|red|per)_")


@dataclass(frozen=True, kw_only=True)
class View:
    """The pieces of a report that rules judge; names and units are the contract's.

    ``times`` adds up the ``num_device_steps`` device-steps of ``basis``, which are
    ``num_steps`` steps of the job; ``counted_ns`` is how long kernels of counted operators took
    in them, ``compute_ns_by_rank`` what a mean one of each rank computes. Of whole files are
    ``num_steps_in_files``, ``num_syncs_per_step`` (calls that make the host wait for its
    device), ``kernels`` (sums over devices) and all rows. ``num_sms`` is that of the devices,
    if they are alike, and ``most_reached`` the share of their peak that products were ever
    measured at; ``stragglers`` are the findings on them; ``settings`` what the profiler
    recorded besides; ``is_host`` says that there is no device, and hosts compute.
    """

    times: Times
    basis: str = "complete_steps"
    num_steps: int = 3
    num_device_steps: int = 3
    num_steps_in_files: int = 3
    num_syncs_per_step: float | None = None
    communication_ns: Mapping[str, int] | None = None
    counted_ns: int | None = None
    executed_flop: int | None = None
    waterfall: Sequence[Row] | None = None
    what_if: Mapping[str, Any] | None = None
    collectives: Sequence[Row] = ()
    roofline: Sequence[Row] | None = None
    top_kernels: Sequence[Row] | None = None
    host: Mapping[str, int] | None = None
    copies: Sequence[Row] | None = None
    kernels: Mapping[str, int] = field(default_factory=dict)
    compute_ns_by_rank: Mapping[int, Fraction] = field(default_factory=dict)
    flop_by_rank: Mapping[int, int] = field(default_factory=dict)
    stragglers: Sequence[Finding] = ()
    accelerator: Mapping[str, Any] | None = None
    num_sms: int | None = None
    most_reached: float | None = None
    settings: frozenset[str] = frozenset()
    is_host: bool = False

    # -- shares of the device-steps

    def ratio(self, ns: float) -> float:
        """Return which share of the device-steps so long a part of them is."""
        return ns / self.times.span_ns if self.times.span_ns else 0.0

    @property
    def mean_step_ns(self) -> float:
        """Return how long a mean device-step lasts."""
        return self.times.span_ns / max(self.num_device_steps, 1)

    @property
    def unit(self) -> str:
        """What the times are of, in words."""
        return "device-windows" if self.basis == "windows" else "device-steps"

    @cached_property
    def counted_ratio(self) -> float | None:
        """Which share kernels of counted operators take."""
        return None if self.counted_ns is None else self.ratio(self.counted_ns)

    @cached_property
    def unattributed_ns(self) -> float:
        """For how long kernels of no known operator compute: what those do, nobody knows.

        Counted over whole files, so their share of the compute of the device-steps is meant.
        """
        total, unknown = (
            self.kernels.get(name, 0) for name in ("time_ns", "unattributed_time_ns")
        )
        return unknown / total * self.times.compute_ns if total else 0.0

    @cached_property
    def uncounted_products_ns(self) -> float:
        """For how long kernels compute that multiply by their names, and have no FLOP.

        Of whole files, as :attr:`unattributed_ns` is.
        """
        every = [row for row in self.top_kernels or () if row["kind"] == COMPUTE]
        total = sum(row["time_ns"] for row in every)
        own = sum(row["time_ns"] for row in every if _is_uncounted(row) and _multiplies(row))
        return own / total * self.times.compute_ns if total else 0.0

    @cached_property
    def other_ratio(self) -> float | None:
        """Which share kernels take of operators that are known, not counted, and no products.

        So what they do is to move data; on a host they may as well be too small to do anything,
        and nobody knows.
        """
        if self.counted_ns is None or self.is_host:
            return None
        unknown_ns = self.unattributed_ns + self.uncounted_products_ns
        return self.ratio(max(self.times.compute_ns - self.counted_ns - unknown_ns, 0.0))

    def of_counted(self, ns: float) -> float | None:
        """Turn kernel time of roofline rows, which are of whole files, into a share of steps.

        As far as the steps do what the files do on average.
        """
        total: int = sum(row["time_ns"] for row in self.roofline or ())
        if not total or self.counted_ratio is None:
            return None
        return ns / total * self.counted_ratio

    # -- fields that may not be known

    def terms(self, names: Iterable[str]) -> dict[str, float]:
        """Return shares of exposed communication by term; nothing where they are not told."""
        if self.communication_ns is None:
            return {}
        return {name: self.ratio(self.communication_ns.get(name, 0)) for name in names}

    def host_ratio(self, name: str) -> float:
        """Return for which share devices idle for one reason, as far as it is known."""
        return self.ratio(self.host[name]) if self.host else 0.0

    def won_ratio(self, change: str) -> float | None:
        """Return what a replay under other conditions wins of a step."""
        rows = self.what_if["changes"] if self.what_if else ()
        won = [row["won_ratio"] for row in rows if row["change"] == change]
        return float(won[0]) if won and won[0] is not None else None

    def term(self, name: str) -> float | None:
        """Return a term of the waterfall."""
        found: Iterator[float] = (
            row["ratio"] for row in self.waterfall or () if row["name"] == name
        )
        return next(found, None)

    def peak(self, dtype: str) -> float | None:
        """Return the peak of the devices in a data type."""
        peaks: Mapping[str, float] = (self.accelerator or {}).get("peak_flop_per_s", {})
        return peaks.get(dtype)

    @property
    def bytes_per_s(self) -> float | None:
        """Return the bandwidth of device memory."""
        return self.accelerator["hbm_bytes_per_s"] if self.accelerator else None

    def uncounted_kernels(self) -> list[Row]:
        """Return kernels of known operators that move data, most time first."""
        return [
            row
            for row in self.top_kernels or ()
            if row["kind"] == COMPUTE and _is_uncounted(row) and not _multiplies(row)
        ]

    def is_near_bandwidth(self, row: Row) -> bool:
        """Say whether memory bounds a row of the roofline, and it uses half of its bandwidth.

        What is slower than that is so for another reason.
        """
        return bool(row["bound"] == "memory" and (row["roof_ratio"] or 0.0) >= _NEAR)

    def reachable(self, row: Row) -> float:
        """Return which share of its roof a row of the roofline reaches if nothing is wrong.

        Of compute nine tenths of the fastest products that were measured on its device, where
        somebody did; else, and of memory, what good kernels reach.
        """
        most = self.most_reached
        if row["bound"] != "compute" or most is None or most >= 1:
            return _GOOD
        return _OF_FASTEST * most

    def straggler_ratio(self) -> float:
        """Return which share findings on stragglers claim together."""
        return sum(one["lost_ratio"] or 0.0 for one in self.stragglers)


def _is_uncounted(row: Row) -> bool:
    return not row["is_counted"] and row["op"] is not None


def _multiplies(row: Row) -> bool:
    """Is this a matrix operation by its name, whose work is not known?"""
    if _FUSED_AFTER.search(row["name"]):
        return False
    return any(_MULTIPLIES.search(row[name] or "") for name in ("op", "name"))


def by_operator(rows: Iterable[Row]) -> list[tuple[str, int, int]]:
    """Add kernels up by operator (by name where none is known): name, time, number."""
    times: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for row in rows:
        name = row["op"] or row["name"]
        times[name] += row["time_ns"]
        counts[name] += row["count"]
    return [(name, time_ns, counts[name]) for name, time_ns in times.most_common()]
