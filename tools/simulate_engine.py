"""Run the programs of all ranks against one true clock, event by event.

A kernel starts when its launch has reached the device, its stream is free, and what it waits
for is done. The kernel of a collective spins from then on until the last member's kernel has
started, and ends one transfer later, on all members at once. Nothing here knows of traces.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import count

from tools.simulate_events import AS_RUN, ONE, Conditions, DeviceEvent, HostEvent, Ran
from tools.simulate_program import Item, Launch, Pause, Program, Record, Span, Sync, Wait

__all__ = ["run"]


@dataclass(slots=True)
class _Stream:
    queue: deque[DeviceEvent] = field(default_factory=deque)
    running: DeviceEvent | None = None
    last: DeviceEvent | None = None
    waits: list[DeviceEvent] = field(default_factory=list)

    @property
    def holds(self) -> list[DeviceEvent]:
        """What must be done before the stream has done all that it holds."""
        return self.waits if self.last is None else [self.last, *self.waits]


def run(programs: Sequence[Program], conditions: Conditions = AS_RUN) -> list[Ran]:
    """Run a job to its end; one result per program, in their order."""
    world = _World(conditions)
    ranks = [_Rank(world, program) for program in programs]
    world.go_on()
    for rank in ranks:
        assert not rank.is_unfinished, f"rank {rank.rank} waits for what never comes"
        rank.ran.host.sort(key=lambda event: event.start_ns)
        rank.ran.device.sort(key=lambda event: event.start_ns)
    return [rank.ran for rank in ranks]


class _World:
    """The clock, what is to happen, and the calls whose members have not all come."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.now = 0
        self._order = count()
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._come: dict[int, list[tuple[_Rank, DeviceEvent]]] = defaultdict(list)

    def at(self, time_ns: int, do: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (time_ns, next(self._order), do))

    def go_on(self) -> None:
        while self._agenda:
            self.now, _, do = heapq.heappop(self._agenda)
            do()

    def scaled(self, duration_ns: int, *factors: Fraction) -> int:
        """Return a duration under all factors, in whole quanta."""
        if all(factor is ONE for factor in factors):
            return duration_ns
        result = Fraction(duration_ns)
        for factor in factors:
            result *= factor
        quantum = self.conditions.quantum_ns
        return int(result) // quantum * quantum

    def meet(self, rank: _Rank, event: DeviceEvent) -> None:
        """Let a member of a call come; the last one lets all go, one transfer later."""
        call = event.work.call
        assert call is not None
        come = self._come[call.number]
        come.append((rank, event))
        if len(come) == len(call.members):
            slow = (self.conditions.link.get(member, ONE) for member in call.members)
            factor = max(slow) * self.conditions.network
            end_ns = self.now + self.scaled(call.transfer_ns, factor)
            for member, waiting in come:
                self.at(end_ns, partial(member.end, waiting))


class _Rank:
    """One rank: its host as it goes through its program, and its streams.

    Nothing but a :class:`Sync` holds a host back, so it runs ahead to the next one: its time
    ``at_ns`` is its own, and what it launches reaches the device when the world is so far.
    """

    def __init__(self, world: _World, program: Program) -> None:
        self.world, self.rank, self.ran = world, program.rank, Ran()
        self.is_unfinished = True
        self.at_ns = 0
        self._streams: dict[int, _Stream] = defaultdict(_Stream)
        self._events: dict[int, list[DeviceEvent]] = {}
        self._ids, self._correlations = count(1), count(1)
        self._comms_running = 0
        self._computing: list[DeviceEvent] = []
        self._resume(self._whole(program))

    # -- the host

    def _whole(self, program: Program) -> Iterator[DeviceEvent]:
        yield from self._do(program.items, None)
        self.is_unfinished = False

    def _resume(self, host: Iterator[DeviceEvent]) -> None:
        awaited = next(host, None)
        if awaited is not None:
            awaited.resumes.append(host)

    def _pass(self, duration_ns: int) -> int:
        """Let the host spend a duration, which its conditions stretch; return its time then."""
        conditions = self.world.conditions
        own = conditions.host.get(self.rank, ONE)
        self.at_ns += self.world.scaled(duration_ns, own, conditions.every_host)
        return self.at_ns

    def _do(self, items: Sequence[Item], above: HostEvent | None) -> Iterator[DeviceEvent]:
        for item in items:
            match item:
                case Pause():
                    self._pass(item.ns)
                case Span():
                    yield from self._enter(item, above)
                case Launch():
                    event = self._call(item.name, above)
                    event.is_launch = True
                    self._submit(item, event)
                    event.end_ns = self._pass(item.ns)
                case Record():
                    self._call("cudaEventRecord", above).end_ns = self._pass(item.ns)
                    self._events[item.event] = list(self._streams[item.stream].holds)
                case Wait():
                    self._call("cudaStreamWaitEvent", above).end_ns = self._pass(item.ns)
                    self._streams[item.stream].waits += self._events[item.event]
                case Sync():
                    yield from self._sync(item, above)

    def _enter(self, span: Span, above: HostEvent | None) -> Iterator[DeviceEvent]:
        event = self._record(span.name, span.category, span.thread, above)
        event.span, event.number = span, next(self._ids)
        if span.category == "cpu_op":
            event.op = event
        yield from self._do(span.body, event)
        event.end_ns = self.at_ns

    def _sync(self, sync: Sync, above: HostEvent | None) -> Iterator[DeviceEvent]:
        event = self._call(sync.name, above)
        for awaited in list(self._streams[sync.stream].holds):
            if not awaited.is_done:
                yield awaited
            self.at_ns = max(self.at_ns, awaited.end_ns)
        event.end_ns = self._pass(sync.ns)

    def _call(self, name: str, above: HostEvent | None) -> HostEvent:
        thread = "main" if above is None else above.thread
        event = self._record(name, "cuda_runtime", thread, above)
        event.number = next(self._correlations)
        return event

    def _record(
        self, name: str, category: str, thread: str, above: HostEvent | None
    ) -> HostEvent:
        event = HostEvent(None, name, category, thread, self.at_ns, above=above)
        event.op = above.op if above is not None else None
        self.ran.host.append(event)
        return event

    # -- the device

    def _submit(self, launch: Launch, event: HostEvent) -> None:
        above, step = event.above, None
        while above is not None:
            assert above.span is not None
            step = above.span.step if step is None else step
            above = above.above
        made: list[DeviceEvent] = []
        for position, work in enumerate(launch.works):
            stream = self._streams[work.stream]
            device = DeviceEvent(self.rank, work, event, step, launch.is_graph, stream.waits)
            if position in launch.after:
                device.after = [*device.after, made[launch.after[position]]]
            stream.waits = []
            stream.last = device
            stream.queue.append(device)
            for other in device.after:
                other.wakes.append(work.stream)
            made.append(device)
        latency_ns = self.world.conditions.latency_ns
        self.world.at(self.at_ns + latency_ns, lambda: self._arrive(made))

    def _arrive(self, devices: Sequence[DeviceEvent]) -> None:
        for device in devices:
            device.arrived = True
        for device in devices:
            self._try(device.work.stream)

    def _try(self, number: int) -> None:
        stream = self._streams[number]
        if stream.running is None and stream.queue:
            first = stream.queue[0]
            if first.arrived and all(other.is_done for other in first.after):
                stream.running = stream.queue.popleft()
                self._start(first)

    def _start(self, event: DeviceEvent) -> None:
        event.start_ns = event.since_ns = self.world.now
        self.ran.device.append(event)
        if event.work.kind == "comm":
            self._change_comms(1)
            self.world.meet(self, event)
            return
        own = self.world.conditions.compute.get(self.rank, ONE)
        factor = own if event.work.kind == "compute" else ONE
        # counted in parts that both the free and the slowed kernel do whole numbers of in 1 ns
        whole = self.world.scaled(event.work.ns, factor)
        event.left = whole * self.world.conditions.contention.numerator
        if event.work.kind == "compute":
            self._computing.append(event)
        self._foresee(event)

    def _speed(self, event: DeviceEvent) -> int:
        contention = self.world.conditions.contention
        is_slowed = self._comms_running > 0 and event.work.kind == "compute"
        return contention.denominator if is_slowed else contention.numerator

    def _foresee(self, event: DeviceEvent) -> None:
        """Put the end of a kernel on the agenda, as it looks now."""
        event.version += 1
        version = event.version
        need_ns = -(-event.left // self._speed(event))

        def end() -> None:
            if event.version == version:
                self.end(event)

        self.world.at(self.world.now + need_ns, end)

    def _change_comms(self, by: int) -> None:
        for event in self._computing:
            done = (self.world.now - event.since_ns) * self._speed(event)
            event.left, event.since_ns = max(0, event.left - done), self.world.now
        self._comms_running += by
        if self.world.conditions.contention != ONE:
            for event in self._computing:
                self._foresee(event)

    def end(self, event: DeviceEvent) -> None:
        """Let a kernel end now, and whatever waited for it go on."""
        event.end_ns = self.world.now
        if event.work.kind == "comm":
            self._change_comms(-1)
        elif event.work.kind == "compute":
            self._computing.remove(event)
        self._streams[event.work.stream].running = None
        for number in (event.work.stream, *event.wakes):
            self._try(number)
        for host in event.resumes:
            self._resume(host)
