"""The scenarios: what kind of job, and what is the matter with it, from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from random import Random

from tools.simulate_costs import Costs, Ledger
from tools.simulate_events import Conditions
from tools.simulate_job import QUARTER_NS, Clock, Job, Straggler
from tools.simulate_parts import Writer
from tools.simulate_pipeline import Place, pipelined
from tools.simulate_program import Group
from tools.simulate_repeated import checkpointed, graphed
from tools.simulate_training import Shape, data_parallel, fully_sharded, hybrid_sharded

__all__ = ["SCENARIOS", "build"]

Scenario = Callable[[Random, int], Job]
SCENARIOS: dict[str, Scenario] = {}


def build(name: str, *, ranks: int, seed: int) -> Job:
    """Return the job of a scenario; the same for the same seed, always."""
    return SCENARIOS[name](Random(f"{name} {seed}"), ranks)  # noqa: S311 - not a secret


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under its name."""
    SCENARIOS[function.__name__] = function
    return function


def _shape(random: Random, *, layers: int = 4, steps: int = 4, tokens: int = 4096) -> Shape:
    hidden = random.choice((1536, 2048, 2560))
    return Shape(tokens, hidden, layers, steps, first=random.choice((2, 5, 10)))


def _world(ranks: int) -> Group:
    return Group("0", "default_pg", tuple(range(ranks)))


def _hosts(costs: Costs, ranks: int, *, old_names: bool = False) -> list[Writer]:
    ledger = Ledger(costs)
    return [Writer(rank, ledger, old_names=old_names) for rank in range(ranks)]


def _data_parallel(random: Random, ranks: int, **costs: float) -> Job:
    shape, world = _shape(random), _world(ranks)
    hosts = _hosts(Costs(random, **costs), ranks)  # type: ignore[arg-type]
    for host in hosts:
        data_parallel(host, shape, world)
    return Job(hosts, [world])


@scenario
def ddp(random: Random, ranks: int) -> Job:
    """Reduce gradients in buckets while backward goes on."""
    return _data_parallel(random, ranks)


@scenario
def fsdp(random: Random, ranks: int) -> Job:
    """Gather weights a layer ahead, scatter gradients behind."""
    shape, every = _shape(random), tuple(range(ranks))
    gather, scatter = Group("1", "fsdp_gather", every), Group("2", "fsdp_scatter", every)
    hosts = _hosts(Costs(random), ranks)
    for host in hosts:
        fully_sharded(host, shape, gather, scatter)
    return Job(hosts, [_world(ranks), gather, scatter])


@scenario
def tp_pp(random: Random, ranks: int) -> Job:
    """Cut layers across pairs of neighbors, and the network across two stages."""
    shape = _shape(random, layers=2, steps=3, tokens=2048)
    copies = ranks // 4
    tensor = [Group("1", "mesh_tp", (rank, rank + 1)) for rank in range(0, ranks, 2)]
    stages = [
        Group("2", "mesh_pp", (4 * copy + neighbor, 4 * copy + 2 + neighbor))
        for copy in range(copies)
        for neighbor in (0, 1)
    ]
    data = [Group("3", "mesh_dp", tuple(range(place, ranks, 4))) for place in range(4)]
    data = data if copies > 1 else []
    hosts = _hosts(Costs(random), ranks)
    for host in hosts:
        mine = _mine(host.rank, tensor), _mine(host.rank, stages), _mine(host.rank, data)
        assert mine[1] is not None
        pipelined(host, shape, Place(mine[0], mine[1], mine[2]), micro_batches=3)
    return Job(hosts, [_world(ranks), *tensor, *stages, *data])


def _mine(rank: int, groups: list[Group]) -> Group | None:
    return next((group for group in groups if rank in group.ranks), None)


@scenario
def pipeline(random: Random, ranks: int) -> Job:
    """Cut the network across as many stages as there are ranks."""
    shape, stages = _shape(random, layers=1), Group("1", "mesh_pp", tuple(range(ranks)))
    hosts = _hosts(Costs(random), ranks)
    for host in hosts:
        pipelined(host, shape, Place(None, stages, None), micro_batches=4)
    return Job(hosts, [_world(ranks), stages])


@scenario
def straggler_compute(random: Random, ranks: int) -> Job:
    """Let the kernels of one rank be slower by a third."""
    job, slow = _data_parallel(random, ranks), random.randrange(ranks)
    conditions = Conditions(compute={slow: Fraction(4, 3)})
    return replace(job, conditions=conditions, straggler=Straggler(slow, "slow compute"))


@scenario
def straggler_host(random: Random, ranks: int) -> Job:
    """Let one rank launch so slowly that its device waits for its host."""
    job, slow = _data_parallel(random, ranks), random.randrange(ranks)
    conditions = Conditions(host={slow: Fraction(12)})
    return replace(job, conditions=conditions, straggler=Straggler(slow, "late host"))


@scenario
def straggler_link(random: Random, ranks: int) -> Job:
    """Let one rank have a slow link, in groups of its neighbors and across them."""
    shape, half = _shape(random), ranks // 2
    shards = [Group("1", "mesh_shard", tuple(range(at, at + half))) for at in (0, half)]
    copies = [Group("2", "mesh_replicate", (rank, rank + half)) for rank in range(half)]
    hosts = _hosts(Costs(random), ranks)
    for host in hosts:
        shard, copy = _mine(host.rank, shards), _mine(host.rank, copies)
        assert shard is not None
        assert copy is not None
        hybrid_sharded(host, shape, shard, copy)
    slow = random.randrange(ranks)
    return Job(
        hosts,
        [_world(ranks), *shards, *copies],
        conditions=Conditions(link={slow: Fraction(5)}),
        straggler=Straggler(slow, "slow link"),
    )


@scenario
def clock_offset(random: Random, ranks: int) -> Job:
    """Let clocks be apart by up to seconds, and files count from different quarters."""
    offsets = [random.randrange(-(3 * 10**9), 3 * 10**9) for _ in range(ranks)]
    earlier = Clock().base_ns - QUARTER_NS
    clocks = {
        rank: Clock(offset, base_ns=earlier if rank % 3 == 1 else Clock().base_ns)
        for rank, offset in enumerate(offsets)
    }
    return replace(_data_parallel(random, ranks), clocks=clocks)


@scenario
def clock_drift(random: Random, ranks: int) -> Job:
    """Let clocks also run at different speeds, through a job of half a minute."""
    clocks = {
        rank: Clock(random.randrange(-(10**6), 10**6), random.randrange(-20_000, 20_000))
        for rank in range(ranks)
    }
    return replace(_data_parallel(random, ranks, scale=4_000), clocks=clocks)


@scenario
def window_lag(random: Random, ranks: int) -> Job:
    """Let ranks be recorded from different collectives on, and not numbered."""
    cuts = {rank: random.randrange(3) for rank in range(ranks)}
    cuts[random.randrange(1, ranks)] = 2
    return replace(_data_parallel(random, ranks), cuts=cuts, age="2024")


@scenario
def missing_rank(random: Random, ranks: int) -> Job:
    """Lose the file of one rank."""
    return replace(_data_parallel(random, ranks), missing=(random.randrange(ranks),))


@scenario
def missing_member(random: Random, ranks: int) -> Job:
    """Lose the file of one rank of a job whose groups are small: others have nobody left."""
    return replace(tp_pp(random, ranks), missing=(random.randrange(ranks),))


@scenario
def missing_metadata(random: Random, ranks: int) -> Job:
    """Record as in 2022: whole microseconds, and of collectives only the kernel's name."""
    shape, world = _shape(random), _world(ranks)
    hosts = _hosts(Costs(random, quantum_ns=1_000), ranks, old_names=True)
    for host in hosts:
        data_parallel(host, shape, world)
    return Job(hosts, [world], conditions=Conditions(quantum_ns=1_000), age="2022")


@scenario
def graphs(random: Random, ranks: int) -> Job:
    """Replay CUDA graphs, in which nothing has an operator or metadata."""
    shape, world = _shape(random), _world(ranks)
    hosts = _hosts(Costs(random), ranks)
    for host in hosts:
        graphed(host, shape, world)
    return Job(hosts, [world])


@scenario
def recompute(random: Random, ranks: int) -> Job:
    """Repeat the forward of checkpoints in backward."""
    shape, world = _shape(random, layers=3), _world(ranks)
    hosts = _hosts(Costs(random), ranks)
    for host in hosts:
        checkpointed(host, shape, world)
    return Job(hosts, [world])


@scenario
def contention(random: Random, ranks: int) -> Job:
    """Let kernels take a quarter longer while a collective runs, and alike otherwise."""
    job = _data_parallel(random, ranks, jitter=0.0)
    return replace(job, conditions=Conditions(contention=Fraction(5, 4)))
