"""Who makes the others wait, how much, and why: findings ``straggler``.

A rank causes the wait of an instance if it is its last rank and was late of itself (see
:mod:`traceparse.run.waits`). It is a straggler if others wait for it, in their exposed time,
for 1 % of all device-steps or more, and more than three times as long as for the median of the
other ranks, and if it is last three standard deviations more often than if all members were
last equally often, among the instances that matter: those with a tenth of its longest wait or
more. Balanced waits are thus nobody's. Who is last too seldom for that is told for information,
if it has caused more than 5 %, and more than all others together.

It is a warning if the wait exceeds 5 %, as far as chips of one kind are apart, or if its
kernels take 10 % longer than the others'; what is less and has no clear cause is not told. Why
it is last is judged in :mod:`traceparse.run.causes`.

Whether waiting costs anything is judged in :mod:`traceparse.run.what_if`.

A slow link makes nobody late but all members slow (:mod:`traceparse.run.links`): what exposed
transfer exceeds that of other groups is lost by it, and the wait for those it had held up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s
from traceparse.rank import OperatorWork
from traceparse.run.across import Across
from traceparse.run.causes import FAR, SPREAD, Cause, Evidence, cause_of
from traceparse.run.gathered import NOTHING
from traceparse.run.instances import by_instance
from traceparse.run.links import SlowLink, slow_links
from traceparse.run.slower import KernelTable, kernel_table
from traceparse.run.straggler_texts import Told, link_finding, rank_finding
from traceparse.run.waits import Steps, Waits, exposed_transfer_of, waits_of

__all__ = ["Straggler", "stragglers"]

_LEAST: Final = 0.01  # of all device-steps, to be worth a finding
_SERIOUS: Final = SPREAD
_OUTSTANDING: Final = 3  # times the median rank's
_DEVIATIONS: Final = 3
_MATTERS: Final = 0.1  # of the longest wait
_MOST: Final = 8  # findings

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Straggler:
    """A finding on devices that others wait for; ``link`` if it is their link that is slow."""

    finding: dict[str, Any]
    cause: Cause
    devices: tuple[int, ...]
    link: SlowLink | None = None

    @property
    def is_serious(self) -> bool:
        """Whether the finding is a warning, and not for information."""
        return bool(self.finding["severity"] == "warning")

    @property
    def blames(self) -> bool:
        """Whether it says more than who was waited for."""
        return self.is_serious or self.cause != "cause unclear"


def stragglers(
    together: Across | None, steps: Steps, operators: Sequence[Sequence[OperatorWork]]
) -> list[Straggler]:
    """Return what is found on ranks that others wait for, those that cost most first.

    ``steps`` are, of each device, the times of those that the run is judged by; ``operators``
    what its trace ran.
    """
    span_ns = sum(times.span_ns for own in steps for times in own)
    if together is None or not together.is_split or not span_ns:
        return []
    search = _Search(together, steps, operators, span_ns)
    found = [*search.links(), *search.ranks(are_peers=False), *search.ranks(are_peers=True)]
    found.sort(key=lambda one: (not one.is_serious, -one.finding["lost_ratio"]))
    return found[:_MOST]


@dataclass(frozen=True, slots=True)
class _Laid:
    """What is laid to whom: of each instance the exposed wait in it, and its culprit."""

    exposed_ns: Int64s
    whole_ns: Int64s
    culprit: Int64s
    is_meant: Bools

    def of(self, device: int) -> Bools:
        found: Bools = self.is_meant & (self.culprit == device)
        return found


class _Search:
    """One run that is searched for stragglers."""

    def __init__(
        self,
        together: Across,
        steps: Steps,
        operators: Sequence[Sequence[OperatorWork]],
        span_ns: int,
    ) -> None:
        self._together, self._steps, self._span_ns = together, steps, span_ns
        self._operators = operators
        self._told: set[int] = set()  # devices
        self._table: KernelTable | None = None
        self._waits = waits_of(together, steps)
        self._instances = together.instances
        self._exposed_ns = by_instance(self._instances, self._waits.exposed_ns)
        self._whole_ns = by_instance(self._instances, self._waits.whole_ns)
        self._compute_ns, self._idle_ns = (
            np.array([sum(getattr(times, name) for times in own) for own in steps], np.int64)
            for name in ("compute_ns", "idle_ns")
        )

    # -- links

    def links(self) -> Iterator[Straggler]:
        """Find links that make all members of their groups transfer longer."""
        for link in slow_links(self._together):
            ranks = [self._together.ranks[device] for device in link.devices]
            held_up = self._held_up_ns(link)
            lost_ns = self._longer_ns(link) + held_up
            if lost_ns >= _LEAST * self._span_ns and None not in ranks:
                finding = link_finding(
                    [rank for rank in ranks if rank is not None],
                    link.groups,
                    self._together.ranks,
                    lost_ns / self._span_ns,
                    held_up / self._span_ns,
                    is_serious=lost_ns > _SERIOUS * self._span_ns and len(ranks) == 1,
                )
                yield Straggler(finding, "slow link", link.devices, link)

    def _longer_ns(self, link: SlowLink) -> float:
        """Return for how long transfer was exposed that is more than other groups'."""
        is_meant = np.zeros(self._waits.num, np.bool_)
        for group in link.groups:
            is_meant[group.instances] = True
        exposed = by_instance(
            self._instances, exposed_transfer_of(self._together, self._steps, is_meant)
        )
        return sum(
            float(exposed[group.instances].sum()) * (1 - group.usual_ns / group.median_ns)
            for group in link.groups
        )

    def _held_up_ns(self, link: SlowLink) -> int:
        """Return for how long others waited for those whom its transfers had held up."""
        slow = np.concatenate([group.instances for group in link.groups])
        is_held_up = np.isin(self._waits.cause - self._waits.num, slow)
        return int(self._exposed_ns[is_held_up].sum())

    # -- ranks

    def ranks(self, *, are_peers: bool) -> Iterator[Straggler]:
        """Find ranks that others wait for, in collectives or in send and recv."""
        instances = self._instances
        is_meant = instances.is_split & (instances.is_peer == are_peers)
        laid = _Laid(self._exposed_ns, self._whole_ns, self._waits.culprit(), is_meant)
        known = is_meant & (laid.culprit != NOTHING)
        caused = np.bincount(
            laid.culprit[known], laid.exposed_ns[known], minlength=len(self._steps)
        )
        for device in np.flatnonzero(caused >= _LEAST * self._span_ns).tolist():
            others = np.delete(caused, device)
            if device in self._told or caused[device] <= _OUTSTANDING * np.median(others):
                continue
            is_often = self._is_often_last(device, laid)
            is_worst = caused[device] > max(others.sum(), _SERIOUS * self._span_ns)
            if is_often or is_worst:
                lost_ratio = float(caused[device] / self._span_ns)
                yield from self._of_rank(device, laid, lost_ratio, is_often=is_often)

    def _is_often_last(self, device: int, laid: _Laid) -> bool:
        """Say whether a device is last more often than by chance where that matters."""
        of_it = laid.of(device)
        members = self._instances.num_ranks
        each = laid.whole_ns / np.maximum(members - 1, 1)
        matters = laid.is_meant & self._is_in(device) & (laid.culprit != NOTHING)
        matters &= each >= _MATTERS * each[of_it].max()
        chance = 1 / members[matters]
        spread = np.sqrt(np.sum(chance * (1 - chance)))
        times = np.count_nonzero(matters & of_it)
        return bool(times > 1 and times >= chance.sum() + _DEVIATIONS * spread)

    def _is_in(self, device: int) -> Bools:
        instances = self._instances
        found = np.zeros(self._waits.num, np.bool_)
        found[instances.part_instance[instances.part_device == device]] = True
        return found

    def _of_rank(
        self, device: int, laid: _Laid, lost_ratio: float, *, is_often: bool
    ) -> Iterator[Straggler]:
        rank, evidence = self._together.ranks[device], self._evidence(device, laid)
        cause = cause_of(evidence)
        is_little = cause == "cause unclear" and lost_ratio <= _SERIOUS
        if rank is None or cause is None or is_little:
            return
        own = laid.of(device)
        in_it = laid.is_meant & self._is_in(device)
        told = Told(
            rank=rank,
            cause=cause,
            evidence=evidence,
            lost_ratio=lost_ratio,
            num_last=int(np.count_nonzero(own & in_it)),
            num_instances=int(np.count_nonzero(in_it)),
            is_often=is_often,
            num_steps=max(1, len(self._steps[device])),
            through_ratio=float(
                laid.exposed_ns[own & ~self._waits.is_own].sum() / self._span_ns
            ),
        )
        self._told.add(device)
        finding = rank_finding(told, is_serious=_is_serious(told))
        yield Straggler(finding, cause, (device,))

    def _evidence(self, device: int, laid: _Laid) -> Evidence:
        own = laid.of(device) & self._waits.is_own
        if not own.any():  # it has held others up in send and recv, and they these
            own = (laid.culprit == device) & self._waits.is_own & self._instances.is_split
        if self._table is None:
            self._table = kernel_table(self._operators)
        idle = np.delete(self._idle_ns, device)
        compute = np.delete(self._compute_ns, device)
        late_launch_ns, queued_ns = _launches(self._waits, own)
        return Evidence(
            wait_ns=self._longest_ns(own, self._waits.exposed_ns),
            whole_wait_ns=self._longest_ns(own, self._waits.whole_ns),
            more_compute_ns=float(self._compute_ns[device] - np.median(compute)),
            more_idle_ns=float(self._idle_ns[device] - np.median(idle)),
            idle_ns=int(self._idle_ns[device]),
            usual_idle_ns=int(np.median(idle)),
            slower=self._table.slower(device),
            late_launch_ns=late_launch_ns,
            queued_ns=queued_ns,
            is_peers=bool(self._instances.is_peer[own].any()),
            is_host=self._together.devices[device].device == "cpu",
        )

    def _longest_ns(self, own: Bools, of_part: Int64s) -> int:
        """Return how long the device waits that waits longest in some instances."""
        instances = self._instances
        rows = np.flatnonzero(own[instances.part_instance])
        waited = np.zeros(len(self._steps), np.int64)
        np.add.at(waited, instances.part_device[rows], of_part[rows])
        return int(waited.max())


def _is_serious(told: Told) -> bool:
    if told.cause == "place in the pipeline" or not told.is_often:
        return False
    slower = told.evidence.slower
    is_broken = told.cause == "slow compute" and slower and slower.factor > 1 + FAR
    return told.lost_ratio > _SERIOUS or bool(is_broken)


def _launches(waits: Waits, own: Bools) -> tuple[int, int] | tuple[None, None]:
    """Return how long after the median of the others a rank's calls were launched, and queued.

    Medians over the instances that it was late in.
    """
    known = own & (waits.queued_ns != NOTHING) & (waits.late_ns > 0)
    if not known.any():
        return None, None
    late, queued = waits.late_ns[known], waits.queued_ns[known]
    return int(np.median(np.maximum(late - queued, 0))), int(np.median(queued))
