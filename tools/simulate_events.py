"""What happened in a simulated job, and the conditions under which it did; in true time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tools.simulate_program import Span, Work

__all__ = ["AS_RUN", "ONE", "Conditions", "DeviceEvent", "HostEvent", "Ran"]

ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds while a job runs, beyond its programs: factors on the time things take.

    ``compute`` and ``host`` are of single ranks, ``link`` of all calls that a rank is in.
    ``contention`` is that of compute kernels while a comm kernel runs on their device.
    """

    compute: Mapping[int, Fraction] = field(default_factory=dict)
    host: Mapping[int, Fraction] = field(default_factory=dict)
    link: Mapping[int, Fraction] = field(default_factory=dict)
    network: Fraction = ONE
    every_host: Fraction = ONE
    contention: Fraction = ONE
    latency_ns: int = 3_000
    quantum_ns: int = 1


AS_RUN = Conditions()


@dataclass(eq=False, slots=True)
class HostEvent:
    """Something a host thread did, in true time."""

    span: Span | None
    name: str
    category: str
    thread: str
    start_ns: int
    end_ns: int = -1
    number: int = 0  # External id of a span, correlation of a call of the runtime
    op: HostEvent | None = None
    above: HostEvent | None = None
    is_launch: bool = False


@dataclass(eq=False, slots=True)
class DeviceEvent:
    """Something a stream did, in true time; its launch is the host's call that asked for it."""

    rank: int
    work: Work
    launch: HostEvent
    step: int | None
    in_graph: bool
    after: list[DeviceEvent]
    start_ns: int = -1
    end_ns: int = -1
    arrived: bool = False
    left: int = 0
    since_ns: int = 0
    version: int = 0
    wakes: list[int] = field(default_factory=list)
    resumes: list[Iterator[DeviceEvent]] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self.end_ns >= 0


@dataclass(slots=True)
class Ran:
    """All that one rank did, in order of its start."""

    host: list[HostEvent] = field(default_factory=list)
    device: list[DeviceEvent] = field(default_factory=list)
