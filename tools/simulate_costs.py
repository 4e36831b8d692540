"""What things cost in a simulated job, and the calls that its ranks make together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tools.simulate_program import BYTES, POINT_TO_POINT, Call, Group

__all__ = ["Costs", "Ledger"]

_FLOP_PER_NS = 600_000  # 600 TFLOP/s
_BYTES_PER_NS = 2_500  # of memory
_LINK_BYTES_PER_NS = 300


@dataclass(slots=True)
class Costs:
    """How long things take: by their size, times ``scale``, with a jitter, in whole quanta."""

    random: Random
    jitter: float = 0.01
    scale: int = 1
    quantum_ns: int = 1

    def _rounded(self, duration_ns: float) -> int:
        spread = 1 + self.jitter * (2 * self.random.random() - 1)
        quanta = duration_ns * spread * self.scale / self.quantum_ns
        return max(1, round(quanta)) * self.quantum_ns

    def host(self, duration_ns: int) -> int:
        """Return what the host takes for something."""
        return self._rounded(duration_ns)

    def product(self, flop: int) -> int:
        """Return what the kernel of a matrix product takes."""
        return self._rounded(3_000 + flop / _FLOP_PER_NS)

    def stream_through(self, num_bytes: int) -> int:
        """Return what a kernel takes that only reads and writes memory."""
        return self._rounded(2_000 + num_bytes / _BYTES_PER_NS)

    def transfer(self, kind: str, num_bytes: int, members: int) -> int:
        """Return what the network takes once all members have come."""
        passes = 2 if kind == "allreduce" else 1
        away = 1.0 if kind == POINT_TO_POINT else passes * (members - 1) / members
        return self._rounded(12_000 + num_bytes * away / _LINK_BYTES_PER_NS)


@dataclass(slots=True)
class Ledger:
    """All calls of a job; the k-th of a group is the same one for each of its members."""

    costs: Costs
    dtype: str = "BFloat16"
    calls: list[Call] = field(default_factory=list)
    _known: dict[tuple[Any, ...], Call] = field(default_factory=dict)
    _counts: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def collective(self, rank: int, group: Group, kind: str, shard: int) -> tuple[Call, int]:
        """Return a rank's next collective in a group, and its number there from 1.

        ``shard`` is the number of elements that each rank holds before or after.
        """
        seq = self._next("collective", rank, group)
        size = len(group.ranks)
        gathers, scatters = kind == "_allgather_base", kind == "_reduce_scatter_base"
        nelems = (shard * size if scatters else shard, shard * size if gathers else shard)
        return self._once((group, seq), group, kind, nelems, members=group.ranks), seq

    def message(
        self, rank: int, group: Group, pair: tuple[int, int], nelems: int
    ) -> tuple[Call, int]:
        """Return the next message of a pair, and its number among all of the rank's.

        Both members count all their messages in the group, so the numbers may disagree.
        """
        nth = self._next(rank, group, pair) - 1
        key, sizes = (group, pair, nth), (nelems, nelems)
        call = self._once(key, group, POINT_TO_POINT, sizes, members=pair, nth=nth)
        return call, self._next("message", rank, group)

    def _next(self, *counted: object) -> int:
        self._counts[counted] += 1
        return self._counts[counted]

    def _once(
        self,
        key: tuple[Any, ...],
        group: Group,
        kind: str,
        nelems: tuple[int, int],
        *,
        members: tuple[int, ...],
        nth: int = 0,
    ) -> Call:
        if key not in self._known:
            transfer_ns = self.costs.transfer(
                kind, BYTES[self.dtype] * max(nelems), len(members)
            )
            call = Call(
                number=len(self.calls),
                group=group,
                collective=kind,
                dtype=self.dtype,
                in_nelems=nelems[0],
                out_nelems=nelems[1],
                transfer_ns=transfer_ns,
                members=members,
                nth=nth,
            )
            self._known[key] = call
            self.calls.append(call)
        found = self._known[key]
        assert (found.collective, found.in_nelems) == (kind, nelems[0])
        return found
