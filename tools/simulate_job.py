"""A simulated job: its programs, the conditions it runs under, and how it is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tools.simulate_events import AS_RUN, Conditions
from tools.simulate_program import Group, Program

__all__ = ["AGES", "CHANGES", "TODAY", "Age", "Clock", "Job", "Straggler", "changed"]

EPOCH_NS = 217 * 7_889_238 * 10**9 + 1_234_567_890_000  # when all jobs begin, in Unix time
BASE_NS = 217 * 7_889_238 * 10**9  # what libkineto counts from: a whole number of quarters
QUARTER_NS = 7_889_238 * 10**9


@dataclass(frozen=True, slots=True)
class Age:
    """How a version of PyTorch writes: its layout, and what it says of collectives."""

    layout: str
    has_metadata: bool = True
    has_seq: bool = True
    has_nanoseconds: bool = True


AGES = {
    "2026": Age("k-new"),
    "2024": Age("k-old", has_seq=False),
    "2022": Age("k-old", has_metadata=False, has_seq=False, has_nanoseconds=False),
}
TODAY = "2026"


@dataclass(frozen=True, slots=True)
class Clock:
    """A rank's clock: Unix time, but for an offset and a drift in parts per billion."""

    offset_ns: int = 0
    drift_ppb: int = 0
    base_ns: int = BASE_NS

    def read(self, true_ns: int) -> int:
        """Return what the clock shows at a true time since the job began."""
        return EPOCH_NS + true_ns + self.offset_ns + true_ns * self.drift_ppb // 10**9


@dataclass(frozen=True, slots=True)
class Straggler:
    """The rank that the others wait for, and why, in the words of the report."""

    rank: int
    cause: str


@dataclass(frozen=True, slots=True)
class Job:
    """All that decides what happens and what is written of it.

    ``cuts`` says for some ranks how many collectives had begun when their profiler started.
    """

    programs: Sequence[Program]
    groups: Sequence[Group]
    conditions: Conditions = AS_RUN
    clocks: Mapping[int, Clock] = field(default_factory=dict)
    cuts: Mapping[int, int] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    age: str = TODAY
    straggler: Straggler | None = None
    on_cpu: bool = False

    @property
    def world_size(self) -> int:
        """How many ranks the job has."""
        return len(self.programs)

    def clock(self, rank: int) -> Clock:
        """Return the clock of a rank: the true one, if no other is given."""
        return self.clocks.get(rank, Clock())


CHANGES = ("straggler_median", "network_2x", "network_free", "launch_gaps_gone")


def changed(job: Job, change: str) -> Conditions | None:
    """Return the conditions after one of :data:`CHANGES`; ``None`` where there is no such.

    Without launch gaps a host takes no time for anything, and what it launches is there at
    once; on CPUs the host is what computes.
    """
    now = job.conditions
    if change == "straggler_median":
        if job.straggler is None:
            return None
        return replace(now, compute={}, host={}, link={})
    if change == "launch_gaps_gone":
        if job.on_cpu:
            return None
        return replace(now, every_host=Fraction(0), latency_ns=0)
    factors = {"network_2x": Fraction(1, 2), "network_free": Fraction(0)}
    return replace(now, network=now.network * factors[change])
