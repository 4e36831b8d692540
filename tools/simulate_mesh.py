"""A job of any size on a mesh, tensor x pipeline x data parallel, from a few simulated copies.

Data parallel copies of a network differ in nothing but how long things take. So a few
(:data:`DISTINCT`) are simulated, together, each with durations of its own, and a larger job
repeats them: each of its copies does what one of those does, at the same true times. All are
still one job: a reduction across copies goes on until the last has come, and repeating a copy
makes nobody later. What is changed from copy to copy is who takes part: ranks, groups, peers,
process ids, ids of calls; and each host, of eight ranks, has a clock of its own. One rank of
the last distinct copy computes half as fast; that copy is there once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Any

from tools.simulate_costs import Costs, Ledger
from tools.simulate_events import Conditions
from tools.simulate_gloo import run_job
from tools.simulate_job import Clock, Job, Straggler
from tools.simulate_parts import Writer
from tools.simulate_pipeline import Place, pipelined
from tools.simulate_program import Call, Group
from tools.simulate_record import Recording, record
from tools.simulate_training import Shape
from tools.simulate_write import trace_bytes

__all__ = ["DISTINCT", "HOST", "Mesh", "MeshJob", "mesh_job"]

HOST = 8  # ranks that share a clock
DISTINCT = 4  # copies that are simulated
_MICRO_BATCHES = 4
_FURTHEST_NS = 5_000_000  # of a clock from the true one, either way


@dataclass(frozen=True, slots=True)
class Mesh:
    """So many copies of a network, each in stages, each of which so many ranks share.

    Ranks of a stage are neighbors, and so are stages.
    """

    tensor: int
    stages: int
    copies: int
    _known: dict[tuple[str, int], Group] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many ranks a copy has."""
        return self.tensor * self.stages

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return self.copies * self.size

    def groups(self, rank: int) -> tuple[Group, Group, Group, Group]:
        """Return the groups of a rank: of all, of a layer, of stages, of copies."""
        copy, place = divmod(rank, self.size)
        neighbor = place % self.tensor
        first, last = copy * self.size, (copy + 1) * self.size
        return (
            self._group("0", "default_pg", range(self.ranks)),
            self._group("1", "mesh_tp", range(rank - neighbor, rank - neighbor + self.tensor)),
            self._group("2", "mesh_pp", range(first + neighbor, last, self.tensor)),
            self._group("3", "mesh_dp", range(place, self.ranks, self.size)),
        )

    def all_groups(self) -> list[Group]:
        """Return every group once."""
        found = (group for rank in range(self.ranks) for group in self.groups(rank))
        every = {id(group): group for group in found}.values()
        return sorted(every, key=lambda group: (group.name, group.ranks[0]))

    def _group(self, name: str, description: str, ranks: range) -> Group:
        key = name, ranks[0]
        if key not in self._known:
            self._known[key] = Group(name, description, tuple(ranks))
        return self._known[key]


@dataclass(frozen=True, slots=True)
class MeshJob:
    """A job on a mesh: ``of`` says of each of its copies which distinct one it repeats.

    ``simulated`` is the job of the distinct ones, ``recordings`` is what happened in it. In
    true time all clocks of it are the true one; ``clocks`` are those of the hosts of the mesh.
    """

    mesh: Mesh
    of: Sequence[int]
    simulated: Job
    ledger: Ledger
    recordings: Sequence[Recording]
    clocks: Sequence[Clock]

    @property
    def straggler(self) -> Straggler:
        """The rank that the others wait for."""
        known = self.simulated.straggler
        assert known is not None
        distinct, place = divmod(known.rank, self.mesh.size)
        return Straggler(self.of.index(distinct) * self.mesh.size + place, known.cause)

    def source(self, rank: int) -> int:
        """Return the simulated rank that a rank does the same as."""
        copy, place = divmod(rank, self.mesh.size)
        return self.of[copy] * self.mesh.size + place

    def clock(self, rank: int) -> Clock:
        """Return the clock of a rank."""
        return self.clocks[rank // HOST]

    def truth(self) -> dict[str, Any]:
        """Return what was planted, and sums over all that was simulated, as JSON has it.

        ``collectives`` are, by description of the group, how many instances there are and how
        long they transfer altogether; ``offsets_ns`` are against the lowest rank.
        """
        counts, transfer = Counter[str](), Counter[str]()
        repeated = Counter(self.of)
        for call in self.ledger.calls:
            first = call.members[0]
            is_across = call.group.description == "mesh_dp"
            times = 1 if is_across else repeated[first // self.mesh.size]
            kind = "send/recv" if call.is_message else call.group.description
            counts[kind] += times
            transfer[kind] += times * call.transfer_ns
        return {
            "world_size": self.mesh.ranks,
            "copies": list(self.of),
            "straggler": {"rank": self.straggler.rank, "cause": self.straggler.cause},
            "offsets_ns": {
                str(rank): self.clock(rank).offset_ns - self.clock(0).offset_ns
                for rank in range(self.mesh.ranks)
            },
            "collectives": {
                kind: {"count": counts[kind], "transfer_ns": transfer[kind]} for kind in counts
            },
        }

    # -- the same job, copy by copy

    def job(self) -> Job:
        """Return the job with a program for every rank, to be run as any other."""
        programs = []
        for copy in range(self.mesh.copies):
            shared = self._of_copy(copy)
            for rank in range(copy * self.mesh.size, (copy + 1) * self.mesh.size):
                program = deepcopy(self.simulated.programs[self.source(rank)], dict(shared))
                program.rank = rank
                programs.append(program)
        slow = self.straggler
        return replace(
            self.simulated,
            programs=programs,
            groups=self.mesh.all_groups(),
            conditions=_slow(slow.rank),
            clocks={rank: self.clock(rank) for rank in range(self.mesh.ranks)},
            straggler=slow,
        )

    def shown(self) -> Job:
        """Return a job of as many ranks, for what files say of it beside what happened."""
        first = self.simulated.programs[0]
        return replace(self.simulated, programs=[first] * self.mesh.ranks)

    def traces(self) -> Iterator[tuple[str, bytes]]:
        """Yield the traces that the ranks of :meth:`job` would leave, without running it."""
        for rank in range(self.mesh.ranks):
            found = self.recordings[self.source(rank)]
            told = replace(found, rank=rank, clock=self.clock(rank))
            kept = self._of_copy(rank // self.mesh.size) | _left_out(found)
            written = replace(self.shown(), groups=self.mesh.groups(rank))
            yield f"rank{rank}_trace.json", trace_bytes(written, deepcopy(told, kept))

    def _of_copy(self, copy: int) -> dict[int, Any]:
        """Return what to put for the calls of the simulated job, by their ids, in a copy."""
        shift = (copy - self.of[copy]) * self.mesh.size
        found: dict[int, Any] = {}
        for call in self.ledger.calls:
            own = _moved(self.mesh, call, shift)
            is_across = call.group.description == "mesh_dp"
            number = call.number if is_across else call.number + copy * len(self.ledger.calls)
            found[id(call)] = replace(own, number=number)
        return found | {id(self.ledger): self.ledger}  # which nobody asks any more


def _moved(mesh: Mesh, call: Call, shift: int) -> Call:
    """Return a call as other ranks make it."""
    member = call.members[0] + shift
    group = next(
        group
        for group in mesh.groups(member % mesh.ranks)
        if group.description == call.group.description
    )
    members = tuple(one + shift for one in call.members) if call.is_message else group.ranks
    return replace(call, group=group, members=members)


def mesh_job(
    *,
    ranks: int,
    seed: int,
    tensor: int = 8,
    stages: int = 4,
    layers: int = 8,
    steps: int = 3,
) -> MeshJob:
    """Simulate what a job of so many ranks repeats; ``layers`` are those of a stage.

    Raises
    ------
    ValueError
        They are not two copies or more, each on whole hosts.
    """
    copies, rest = divmod(ranks, tensor * stages)
    if rest or copies < 2 or tensor * stages % HOST:
        raise ValueError(
            f"{ranks} ranks are not two or more copies of {tensor * stages} ranks, each on "
            f"whole hosts of {HOST}"
        )
    chance = Random(f"mesh {seed}")  # noqa: S311 - not a secret
    distinct = min(copies, DISTINCT)
    small = Mesh(tensor, stages, distinct)
    ledger = Ledger(Costs(chance))
    shape = Shape(tokens=2048, hidden=8192, layers=layers, steps=steps, first=2)
    programs = [Writer(rank, ledger) for rank in range(small.ranks)]
    for program in programs:
        _, *own = small.groups(program.rank)
        pipelined(program, shape, Place(*own), _MICRO_BATCHES)
    slow = (distinct - 1) * small.size + chance.randrange(small.size)
    job = Job(
        programs,
        small.all_groups(),
        conditions=_slow(slow),
        straggler=Straggler(slow, "slow compute"),
    )
    # each distinct copy is there, the last one once
    of = [*range(distinct), *(chance.randrange(distinct - 1) for _ in range(copies - distinct))]
    chance.shuffle(of)
    clocks = [
        Clock(chance.randrange(-_FURTHEST_NS, _FURTHEST_NS)) for _ in range(ranks // HOST)
    ]
    mesh = Mesh(tensor, stages, copies)
    return MeshJob(mesh, of, job, ledger, record(job, run_job(job)), clocks)


def _left_out(recording: Recording) -> dict[int, Any]:
    """Return what to put for what no file tells of events, which leads through all of them."""
    lists: list[object] = [
        one for event in recording.device for one in (event.after, event.resumes)
    ]
    lists += [event.span.body for event in recording.host if event.span is not None]
    return {id(one): [] for one in lists}


def _slow(rank: int) -> Conditions:
    return Conditions(compute={rank: Fraction(2)})
