"""One rank, small: what the run needs to know of a trace once its events are forgotten.

Events pass by part by part: as the file has them, to be classified and counted; by correlation,
to be linked and to find where steps begin; by start, to account for time. So the memory that a
trace needs does not grow with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from traceparse.errors import EmptyTraceError, Note
from traceparse.ingest import FileHealth, Header, RankTrace
from traceparse.intervals import Int64s
from traceparse.ordered import Ordered
from traceparse.rank.account import Account
from traceparse.rank.classify import COMPUTE, COPY
from traceparse.rank.collectives import Collectives
from traceparse.rank.contention import Contention, Slowed
from traceparse.rank.copies import Copies
from traceparse.rank.counted import CopyWork, KernelWork, OperatorWork, StepWork
from traceparse.rank.counts import Count
from traceparse.rank.doubts import doubts
from traceparse.rank.idle import Idle, Partition
from traceparse.rank.kernel_groups import KernelGroups
from traceparse.rank.link import UNLINKED, Linked
from traceparse.rank.owners import Owners
from traceparse.rank.rows import groups, nums_of
from traceparse.rank.steps import (
    MOST_DEVICE_STEPS,
    Bounds,
    Marker,
    Segments,
    StepBounds,
    markers,
    past_belief,
)
from traceparse.rank.tally import SPAN, Tally
from traceparse.rank.tasks import Tasks
from traceparse.rank.times import DeviceDigest, StepTimes
from traceparse.rank.works import CPU, device_work, devices_of, host_work

__all__ = ["RankDigest", "digest"]


@dataclass(frozen=True, slots=True)
class RankDigest:
    """One trace, digested. ``process`` is the id of the process that it shows most of.

    ``conventions`` say what was chosen in counting its work (:class:`traceparse.work.Work`);
    ``shortest_kernel_ns`` is what its shortest kernel took, however little that did.
    ``kernels`` are all of its device events, added up; those that took most come first.
    ``copies`` are those of them that copy, by what they copy.
    """

    header: Header
    health: FileHealth
    devices: tuple[DeviceDigest, ...]
    notes: tuple[Note, ...]
    process: str | None = None
    operators: tuple[OperatorWork, ...] = ()
    conventions: tuple[str, ...] = ()
    shortest_kernel_ns: int | None = None
    kernels: tuple[KernelWork, ...] = ()
    copies: tuple[CopyWork, ...] = ()


def digest(trace: RankTrace) -> RankDigest:
    """Digest a trace: classify its events, link them to launches, cut steps, account for time.

    Raises
    ------
    EmptyTraceError
        Nothing in the trace is work of a device or of the host.
    InputError
        It claims more devices or steps than there can be.
    """
    path = trace.health.path
    steps = markers(trace.kept["annotations"], path)
    passage = _Passage(trace, steps)
    if not passage.spans.num_rows:
        raise EmptyTraceError(
            f"{path}: the trace has no kernel, copy or operator, only "
            f"{trace.health.events} other events; check the activities that the profiler was "
            f"given"
        )
    devices = passage.devices()
    health = replace(
        trace.health,
        launches_without_gpu_event=passage.num_unanswered,
        gpu_events_without_launch=passage.num_unlinked,
    )
    return RankDigest(
        header=trace.header,
        health=health,
        devices=devices,
        notes=(
            *trace.notes,
            *doubts(trace, health, steps, devices),
            *passage.notes(health),
        ),
        process=_process(trace),
        operators=passage.tally.operators(),
        conventions=tuple(sorted(passage.tally.conventions)),
        shortest_kernel_ns=passage.shortest_kernel_ns,
        kernels=passage.kernels(trace),
        copies=passage.copies,
    )


def _process(trace: RankTrace) -> str | None:
    for name in ("ops", "launches", "annotations"):
        nums = nums_of(trace.kept[name].parts("pid"), "pid")
        if nums:
            return nums.most_common(1)[0][0]
    return None


class _Passage:
    """A trace that passes by, and what is learned of each device meanwhile."""

    def __init__(self, trace: RankTrace, steps: Sequence[Marker]) -> None:
        self._steps = steps
        self.spans = Ordered(SPAN, by=("start",))
        self._names = devices_of(trace) or [CPU]
        num_rows = len(steps) * len(self._names)
        if num_rows > MOST_DEVICE_STEPS:
            raise past_belief(trace.health.path, num_rows, "steps of devices")
        self._counts = [Count() for _ in self._names]
        self._segments = Segments(steps)
        self._bounds = StepBounds(steps, self._segments, len(self._names))
        self._collectives = Collectives(trace, len(self._names))
        self._contention = Contention(len(self._names))
        self._tasks = Tasks(len(self._names))
        self._copies = Copies(len(self._names))
        self.copies: tuple[CopyWork, ...] = ()
        self._kernels = KernelGroups()
        on_host = self._on_host = not trace.kept["device_events"].num_rows
        self._owners = Owners(
            on_host=on_host,
            with_records=trace.kept["collective_args"].num_rows > 0,
            on_linked=self._take_linked,
        )
        self._idle = Idle(len(self._names), self._owners.threads, on_host=on_host)
        self._owners.add_launches(trace.kept["launches"])
        self._tasks.add_calls(trace.kept["launches"])
        self._idle.add_calls(trace.kept["launches"])
        for name in ("annotations", "ops"):
            self._idle.add_loads(trace.kept[name])
        if on_host:
            self._see_host(trace)
        else:
            self._see_devices(trace)
        self._idle.add_work(self.spans)
        self._see_launches()
        self._owners.add_spans(trace.kept["annotations"])
        self._owners.add_ops(trace.kept["ops"])
        self.tally = Tally(
            self._owners.signatures, self._segments, len(self._names), on_host=on_host
        )
        for attributed in self._owners.parts():
            self.tally.add(attributed)
            self._collectives.add_attributed(attributed)
            self._contention.add_attributed(attributed)
            if on_host:
                self._kernels.add_operators(attributed)
            else:
                self._kernels.add_attributed(attributed)
        self.tally.finish()

    def notes(self, health: FileHealth) -> Iterator[Note]:
        """Say what of its work is doubtful; of a trace that tells none, the run says that."""
        yield from self._collectives.notes(health)
        yield from self._idle.notes(health)
        if self._owners.has_shapes:
            yield from self.tally.notes(health.rank, health.path)

    def kernels(self, trace: RankTrace) -> tuple[KernelWork, ...]:
        """Return what its device events, or operators, took."""
        return self._kernels.works(trace, self._owners.signatures)

    @property
    def num_unanswered(self) -> int:
        """Launches that left no event."""
        return self._owners.links.num_unanswered

    @property
    def num_unlinked(self) -> int:
        """Device events that have no launch in the file; work of the host is its own."""
        return sum(count.num_events - count.num_linked_events for count in self._counts)

    @property
    def shortest_kernel_ns(self) -> int | None:
        """What the shortest kernel of all took, of those that took any time."""
        lasts = [count.shortest_ns for count in self._counts if count.shortest_ns]
        return min(lasts, default=None)

    def _see_devices(self, trace: RankTrace) -> None:
        for work in device_work(trace, self._names):
            facts: dict[str, npt.NDArray[Any]] = {
                "start": work.starts,
                "end": work.ends,
                "device": work.devices,
                "kind": work.kinds,
            }
            self.spans.add(work.starts.size, **facts)
            self._owners.add_events(work, row=work.rows, stream=work.streams, **facts)
            self._tasks.add_unlaunched(work)
            self._contention.add(work)
            self._kernels.add(work)
            self._copies.add(work)
            self._collectives.add(work)
            for device, rows in groups(work.devices):
                self._counts[device].add(
                    work.starts[rows], work.ends[rows], work.is_kernel[rows]
                )

    def _see_host(self, trace: RankTrace) -> None:
        (count,) = self._counts
        self._kernels.add_marks(trace.kept["annotations"])
        for work in host_work(trace):
            self.spans.add(work.starts.size, start=work.starts, end=work.ends, kind=work.kinds)
            self._collectives.add(work)
            self._tasks.add_host(work)
            self._bounds.add(
                work.starts,
                devices=work.devices,
                starts=work.starts,
                ends=work.ends,
                is_compute=work.kinds == COMPUTE,
            )
            for add in (count.add, count.add_linked):
                add(work.starts, work.ends, work.is_kernel)

    def _take_linked(self, linked: Linked) -> None:
        self._kernels.add_linked(linked)
        self._idle.add_linked(linked)

    def _see_launches(self) -> None:
        for linked in self._owners.links.parts():
            is_linked = linked.launched_ns != UNLINKED
            rows = linked.events[is_linked]
            self._owners.add_linked(linked)
            self._collectives.add_linked(linked)
            self._tasks.add_linked(linked)
            self._contention.add_unowned(linked.events[~is_linked | linked.is_graph])
            self._bounds.add(
                linked.launched_ns[is_linked],
                devices=rows["device"],
                starts=rows["start"],
                ends=rows["end"],
                is_compute=rows["kind"] == COMPUTE,
            )
            for device, own in groups(rows["device"]):
                some = rows[own]
                self._counts[device].add_linked(
                    some["start"], some["end"], some["kind"] != COPY
                )

    def devices(self) -> tuple[DeviceDigest, ...]:
        """Account for all time, and return the devices in order; learn what copies took."""
        bounds = [self._bounds.of(device) for device in range(len(self._names))]
        cuts = [_cuts(count, own) for count, own in zip(self._counts, bounds, strict=True)]
        edges = map(self._copies.edges, range(len(cuts)))
        accounts = _accounts(map(Account, cuts, edges), self.spans)
        self.copies = self._copies.works(accounts)
        counted = _accounts(map(Account, cuts), self.tally.spans)
        calls = self._collectives.tables(self._steps)
        slowed = self._contention.finish(cuts)
        idle = self._idle.partitions(cuts)
        begins = [
            np.array([bound.start_ns for bound in own if bound], np.int64) for own in bounds
        ]
        chains = self._tasks.tables(begins, self.spans if self._on_host else None)
        found = [
            replace(
                self._device(
                    place,
                    account,
                    _counted(counted[place]),
                    slowed[place],
                    idle[place],
                ),
                calls=calls[place],
                exposed=self._collectives.exposed(account),
                tasks=chains[place][0],
                syncs=chains[place][1],
            )
            for place, account in enumerate(accounts)
        ]
        return tuple(
            sorted(
                found, key=lambda one: (isinstance(one.device, str), str(one.device).zfill(20))
            )
        )

    def _device(
        self,
        place: int,
        account: Account,
        counted_ns: Callable[[Bounds], int],
        slowed: Slowed,
        idle: Partition | None,
    ) -> DeviceDigest:
        count, bounds = self._counts[place], self._bounds.of(place)
        window = account.times(count.start_ns, count.end_ns)
        whole = Bounds(count.start_ns, count.end_ns, open_ended=False)

        def told(
            step: int | None, name: str | None, bound: Bounds | None, own: slice | None
        ) -> StepTimes:
            edges = bound and (bound.start_ns, bound.end_ns)
            work = None
            if self._owners.has_shapes:
                work = StepWork(bound and counted_ns(bound), self.tally.work_of(place, own))
            return StepTimes(
                step,
                name,
                open_ended=bool(bound and bound.open_ended),
                times=account.times(*edges) if edges else None,
                work=work,
                twice_contention_ns=slowed.between(*edges) if edges else 0,
                idle=idle.between(*edges) if idle and edges else None,
            )

        cut: tuple[StepTimes, ...] = (told(None, None, whole, None),)
        if self._steps:
            cut = tuple(
                told(step.step, step.name, bound, own)
                for step, bound, own in zip(
                    self._steps, bounds, self._segments.of_steps, strict=True
                )
            )
        kernels = count.kernels(self.tally.num_kernels[place], self.tally.kernels_ns[place])
        return DeviceDigest(
            _device_of(self._names[place]),
            window,
            cut,
            kernels,
            overlapped_ns=slowed.overlapped_ns,
            never_alone_ns=slowed.unknown_ns,
        )


def _accounts(made: Iterable[Account], spans: Ordered) -> list[Account]:
    """Account for spans, device by device."""
    accounts = list(made)
    for rows in spans.parts():
        for device, own in groups(rows["device"]):
            some = rows[own]
            accounts[device].add(some["start"], some["end"], some["kind"])
    for account in accounts:
        account.finish()
    return accounts


def _counted(account: Account) -> Callable[[Bounds], int]:
    return lambda bound: account.times(bound.start_ns, bound.end_ns).compute_ns


def _cuts(count: Count, bounds: Sequence[Bounds | None]) -> Int64s:
    edges = [(bound.start_ns, bound.end_ns) for bound in bounds if bound]
    return np.array([(count.start_ns, count.end_ns), *edges], np.int64)


def _device_of(name: str) -> int | str:
    return int(name) if name.isascii() and name.isdigit() and len(name) < 19 else name
