"""Across ranks: every collective once, one clock, and what exposed communication was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.errors import Note
from traceparse.intervals import Int64s, Intervals, covered_before
from traceparse.rank import DeviceDigest, StepTimes
from traceparse.rank.collective_names import Collective, collective_named
from traceparse.run.across_notes import (
    about_contention,
    about_instances,
    about_offsets,
    about_strangers,
)
from traceparse.run.clock import Clock, align
from traceparse.run.exposure import Exposure, Parts, exposure_of
from traceparse.run.gathered import NOTHING, Calls, gather_calls
from traceparse.run.instances import Instances, by_instance, instances_of
from traceparse.run.matching import match
from traceparse.units import parse_ranges

__all__ = ["PEERS", "Across", "across"]

PEERS = "send/recv"
_NS_PER_S = 1_000_000_000


class _Told(NamedTuple):
    """What is told of each instance: whether it is split, and for how long it was what."""

    is_split: npt.NDArray[np.bool_]
    wait_ns: Int64s
    exposed_ns: Int64s
    last: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Across:
    """What the ranks of a job did together. ``ranks`` are those of its devices.

    ``ends_coincide`` says of each instance whether all of its ranks leave it at once.
    """

    ranks: tuple[int | None, ...]
    devices: tuple[DeviceDigest, ...]
    calls: Calls
    instances: Instances
    clock: Clock
    ends_coincide: npt.NDArray[np.bool_]
    exposures: tuple[Exposure, ...]
    notes: tuple[Note, ...]

    @property
    def is_split(self) -> bool:
        """Is anything known of waiting apart from transfer?"""
        return bool(self.instances.is_split.any())

    def exposure_in(self, device: int, step: StepTimes) -> tuple[int, int, int, int] | None:
        """Return what a step's exposed communication was, in ns; ``None`` without interval."""
        times = step.times
        if times is None:
            return None
        return self.exposures[device].within(times.start_ns, times.end_ns)

    @property
    def kinds(self) -> Int64s:
        """A row an instance: its collective, data type, size and number of ranks."""
        calls, first = self.calls, self.instances.first_call
        keys = (calls.collectives, calls.dtypes, calls.message_bytes)
        return np.column_stack([*(key[first] for key in keys), self.instances.num_members])

    def usual_transfer_ns(self) -> Int64s:
        """Return how long each instance transfers; ``NOTHING`` if that cannot be told.

        Of those that cannot be split it is the lower median of those alike that can: of the
        same collective, data type, size and number of ranks.
        """
        _, kind = np.unique(self.kinds, axis=0, return_inverse=True)
        kind = kind.reshape(-1)
        split = np.flatnonzero(self.instances.is_split)
        order = split[np.lexsort([self.instances.transfer_ns[split], kind[split]])]
        sizes = np.bincount(kind[split], minlength=kind.max(initial=-1) + 1)
        middle = np.cumsum(sizes) - sizes + np.maximum(sizes - 1, 0) // 2
        usual = np.full(sizes.size, NOTHING)
        usual[sizes > 0] = self.instances.transfer_ns[order[middle[sizes > 0]]]
        return np.where(self.instances.is_split, self.instances.transfer_ns, usual[kind])

    def clock_field(self) -> dict[str, Any]:
        """Return field ``clock`` of the contract."""
        offsets: dict[str, int] = {}
        drifts: dict[str, float] = {}
        reference = self.devices[self.clock.reference].window.start_ns if self.devices else 0
        for rank, line in zip(self.ranks, self.clock.lines, strict=True):
            if rank is None or line is None:
                continue
            offsets[str(rank)] = line.ahead_of_ns(reference)
            drifts[str(rank)] = line.drift * 1e6
        known = sum(line is not None for line in self.clock.lines)
        return {
            "aligned": self.clock.residual_ns is not None and known == len(self.ranks),
            "residual_ns": self.clock.residual_ns,
            "offsets_ns": offsets,
            "drift_ppm": drifts,
        }

    def collectives_field(self) -> list[dict[str, Any]]:
        """Return field ``collectives`` of the contract, the longest exposed first."""
        rows: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for number, call in enumerate(self.instances.first_call.tolist()):
            rows[self._kind(number, call)].append(number)
        told = _Told(
            self.instances.is_split,
            by_instance(self.instances, self.instances.part_wait_ns),
            self._exposed_ns(),
            self.instances.last_device(),
        )
        found = [self._row(kind, np.array(numbers), told) for kind, numbers in rows.items()]
        return sorted(found, key=lambda row: (-row["exposed_ns"], -row["count"]))

    def _kind(self, number: int, call: int) -> tuple[Any, ...]:
        calls = self.calls
        if self.instances.is_peer[number]:
            return (None, None, PEERS, None, None, 2)
        name, ranks, size = calls.group_texts[calls.groups[call]]
        told = calls.message_bytes[call]
        return (
            name,
            ranks,
            calls.collective_texts[calls.collectives[call]],
            calls.dtype_texts[calls.dtypes[call]],
            None if told == NOTHING else int(told),
            size,
        )

    def _row(self, kind: tuple[Any, ...], numbers: Int64s, told: _Told) -> dict[str, Any]:
        name, ranks, collective, dtype, message_bytes, size = kind
        instances = self.instances
        split = numbers[told.is_split[numbers]]
        transfer_ns = int(instances.transfer_ns[split].sum()) if split.size else None
        rate = None
        if transfer_ns and message_bytes is not None and collective != PEERS:
            rate = message_bytes * split.size * _NS_PER_S / transfer_ns
        factor = _busbw_factor(_known(collective), size)
        counts: dict[str, int] = defaultdict(int)
        for device in told.last[split].tolist():
            if self.ranks[device] is not None:
                counts[str(self.ranks[device])] += 1
        return {
            "process_group": name,
            "ranks": self._members(ranks, numbers),
            "collective": collective,
            "dtype": dtype,
            "message_bytes": message_bytes,
            "group_size": size,
            "count": int(numbers.size),
            "matched_ranks": int(instances.num_ranks[numbers].min()),
            "transfer_ns": transfer_ns,
            "wait_ns": int(told.wait_ns[split].sum()) if split.size else None,
            "exposed_ns": int(told.exposed_ns[numbers].sum()),
            "algbw_bytes_per_s": rate,
            "busbw_bytes_per_s": None if rate is None or factor is None else rate * factor,
            "last_rank_counts": dict(sorted(counts.items(), key=lambda one: int(one[0]))),
        }

    def _members(self, text: str | None, numbers: Int64s) -> list[int]:
        """Return the ranks of a group; where they are not told, those that were seen in it."""
        if text is not None and (told := parse_ranges(text)) is not None:
            return list(told)
        rows = self.instances.parts_of(numbers)
        devices = set(self.instances.part_device[rows].tolist())
        return sorted(rank for device in devices if (rank := self.ranks[device]) is not None)

    def _exposed_ns(self) -> Int64s:
        """Return of each instance for how long its calls were exposed, each on its own."""
        instances = self.instances
        found = np.zeros(instances.part_instance.size, np.int64)
        rows_of = instances.rows_by_device(len(self.devices))
        for device, rows in zip(self.devices, rows_of, strict=True):
            exposed = _exposed(device)
            cuts = (instances.part_start_ns[rows], instances.part_end_ns[rows])
            before, after = (covered_before(exposed, cut) for cut in cuts)
            found[rows] = after - before
        return by_instance(instances, found)


def across(devices: Sequence[DeviceDigest], ranks: Sequence[int | None]) -> Across | None:
    """Put the communication of all devices together; ``None`` where there is none."""
    calls = gather_calls(devices)
    if not calls.num:
        return None
    matched, about_matching = match(calls, ranks)
    instances = instances_of(calls, matched, ranks)
    ends_coincide = _coincide(calls, instances)
    clock, about_clock = align(instances, ends_coincide, ranks)
    is_split = instances.is_split
    exposures = tuple(
        exposure_of(_exposed(device), _parts(instances, is_split, rows))
        for device, rows in zip(devices, instances.rows_by_device(len(devices)), strict=True)
    )
    return Across(
        tuple(ranks),
        tuple(devices),
        calls,
        instances,
        clock,
        ends_coincide,
        exposures,
        (
            *about_matching,
            *about_clock,
            *about_offsets(clock, ranks),
            *about_strangers(calls, ranks),
            *about_instances(instances),
            *about_contention(devices),
        ),
    )


def _exposed(device: DeviceDigest) -> Intervals:
    return Intervals(*(device.exposed[name].to_numpy() for name in ("start_ns", "end_ns")))


def _parts(instances: Instances, is_split: npt.NDArray[np.bool_], rows: Int64s) -> Parts:
    own = instances.part_instance[rows]
    return Parts(
        instances.part_start_ns[rows],
        instances.part_end_ns[rows],
        instances.transfer_ns[own],
        instances.is_peer[own],
        is_split[own],
    )


def _coincide(calls: Calls, instances: Instances) -> npt.NDArray[np.bool_]:
    """Say of each instance whether all of its ranks leave it at once."""
    known = map(_known, calls.collective_texts)
    told = np.array([one is None or one.ends_coincide for one in known], np.bool_)
    return told[calls.collectives[instances.first_call]]


def _known(text: str | None) -> Collective | None:
    return None if text is None else collective_named(text)


def _busbw_factor(known: Collective | None, size: int | None) -> float | None:
    """Return busbw / algbw in a group of so many (nccl-tests, doc/PERFORMANCE.md)."""
    if known is None or not size:
        return None
    factors = {"2(n-1)/n": 2 * (size - 1) / size, "(n-1)/n": (size - 1) / size, "1": 1.0}
    return factors.get(known.busbw)
