"""What a profiler records of what a rank did: from its start on, on the rank's own clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.simulate_events import DeviceEvent, HostEvent, Ran
from tools.simulate_job import Clock, Job
from tools.simulate_program import Span

__all__ = ["Recording", "record"]


@dataclass(frozen=True, slots=True)
class Recording:
    """The events of one rank's file; their times are true, ``clock`` shows the rank's own.

    ``begin_ns`` is when the profiler began.
    """

    rank: int
    begin_ns: int
    clock: Clock
    host: Sequence[HostEvent]
    device: Sequence[DeviceEvent]

    def own(self, event: HostEvent | DeviceEvent) -> tuple[int, int]:
        """Return start and end of an event on the rank's clock: Unix nanoseconds."""
        return self.clock.read(event.start_ns), self.clock.read(event.end_ns)

    @property
    def markers(self) -> list[tuple[Span, HostEvent]]:
        """The spans of steps, in order."""
        return [
            (event.span, event)
            for event in self.host
            if event.span is not None and event.span.step is not None
        ]


def record(job: Job, ran: Sequence[Ran]) -> list[Recording]:
    """Return what each file that is left holds; what began before the profiler is lost."""
    recordings = []
    for program, what in zip(job.programs, ran, strict=True):
        if program.rank in job.missing:
            continue
        comms = [event.start_ns for event in what.device if event.work.kind == "comm"]
        lost = job.cuts.get(program.rank, 0)
        begin_ns = comms[lost - 1] + 1 if lost else -1_000_000
        recordings.append(
            Recording(
                program.rank,
                begin_ns,
                job.clock(program.rank),
                [event for event in what.host if event.start_ns >= begin_ns],
                [event for event in what.device if event.start_ns >= begin_ns],
            )
        )
    return recordings
