"""The scenarios: what kind of job, and what is the matter with it, from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from tools.simulate_costs import Costs, Ledger
from tools.simulate_events import Conditions
from tools.simulate_experts import expert_parallel
from tools.simulate_gloo import gloo_parallel
from tools.simulate_job import QUARTER_NS, Clock, Job, Straggler
from tools.simulate_parts import Writer
from tools.simulate_pipeline import Place, pipelined
from tools.simulate_program import Group
from tools.simulate_repeated import checkpointed, graphed
from tools.simulate_training import (
    Shape,
    data_parallel,
    fully_sharded,
    hybrid_sharded,
    prefetched,
)

__all__ = ["SCENARIOS", "build"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a scenario is given: chance, how many ranks, and sizes if they are not its own."""

    random: Random
    ranks: int
    layers: int | None = None
    steps: int | None = None

    def shape(self, *, layers: int = 4, steps: int = 4, tokens: int = 4096) -> Shape:
        """Return the network and how long it trains, by default as the scenario wants it."""
        return Shape(
            tokens,
            hidden=self.random.choice((1536, 2048, 2560)),
            layers=self.layers or layers,
            steps=self.steps or steps,
            first=self.random.choice((2, 5, 10)),
        )

    def hosts(
        self,
        *,
        old_names: bool = False,
        jitter: float = 0.01,
        scale: int = 1,
        quantum_ns: int = 1,
        dtype: str = "BFloat16",
    ) -> list[Writer]:
        """Return the programs of all ranks, still empty."""
        ledger = Ledger(Costs(self.random, jitter, scale, quantum_ns), dtype)
        return [Writer(rank, ledger, old_names=old_names) for rank in range(self.ranks)]

    @property
    def world(self) -> Group:
        """The group of all ranks."""
        return Group("0", "default_pg", tuple(range(self.ranks)))


Scenario = Callable[[Setting], Job]
SCENARIOS: dict[str, Scenario] = {}


def build(
    name: str, *, ranks: int, seed: int, layers: int | None = None, steps: int | None = None
) -> Job:
    """Return the job of a scenario; the same for the same seed, always."""
    chance = Random(f"{name} {seed}")  # noqa: S311 - not a secret
    return SCENARIOS[name](Setting(chance, ranks, layers, steps))


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under its name."""
    SCENARIOS[function.__name__] = function
    return function


def _data_parallel(setting: Setting, *, jitter: float = 0.01, scale: int = 1) -> Job:
    shape, world = setting.shape(), setting.world
    hosts = setting.hosts(jitter=jitter, scale=scale)
    for host in hosts:
        data_parallel(host, shape, world)
    return Job(hosts, [world])


@scenario
def ddp(setting: Setting) -> Job:
    """Reduce gradients in buckets while backward goes on."""
    return _data_parallel(setting)


@scenario
def fsdp(setting: Setting) -> Job:
    """Gather weights a layer ahead, scatter gradients behind."""
    return _sharded(setting, fully_sharded)


@scenario
def fsdp_prefetch(setting: Setting) -> Job:
    """Gather weights a layer ahead, before computing waits for those of its own layer."""
    return _sharded(setting, prefetched)


def _sharded(setting: Setting, trains: Callable[[Writer, Shape, Group, Group], None]) -> Job:
    shape, every = setting.shape(), tuple(range(setting.ranks))
    gather, scatter = Group("1", "fsdp_gather", every), Group("2", "fsdp_scatter", every)
    hosts = setting.hosts()
    for host in hosts:
        trains(host, shape, gather, scatter)
    return Job(hosts, [setting.world, gather, scatter])


@scenario
def moe(setting: Setting) -> Job:
    """Send tokens to experts on all ranks and back, in each layer; experts have uneven work."""
    shape, every = setting.shape(layers=3), tuple(range(setting.ranks))
    experts, hosts = Group("1", "mesh_ep", every), setting.hosts()
    for host in hosts:
        expert_parallel(host, shape, experts, setting.world)
    return Job(hosts, [setting.world, experts])


@scenario
def tp_pp(setting: Setting) -> Job:
    """Cut layers across pairs of neighbors, and the network across two stages."""
    shape = setting.shape(layers=2, steps=3, tokens=2048)
    copies = setting.ranks // 4
    tensor = [Group("1", "mesh_tp", (rank, rank + 1)) for rank in range(0, setting.ranks, 2)]
    stages = [
        Group("2", "mesh_pp", (4 * copy + neighbor, 4 * copy + 2 + neighbor))
        for copy in range(copies)
        for neighbor in (0, 1)
    ]
    data = [Group("3", "mesh_dp", tuple(range(place, setting.ranks, 4))) for place in range(4)]
    data = data if copies > 1 else []
    hosts = setting.hosts()
    for host in hosts:
        mine = _mine(host.rank, tensor), _mine(host.rank, stages), _mine(host.rank, data)
        assert mine[1] is not None
        pipelined(host, shape, Place(mine[0], mine[1], mine[2]), micro_batches=3)
    return Job(hosts, [setting.world, *tensor, *stages, *data])


def _mine(rank: int, groups: list[Group]) -> Group | None:
    return next((group for group in groups if rank in group.ranks), None)


@scenario
def pipeline(setting: Setting) -> Job:
    """Cut the network across as many stages as there are ranks."""
    shape, stages = setting.shape(layers=1), Group("1", "mesh_pp", tuple(range(setting.ranks)))
    hosts = setting.hosts()
    for host in hosts:
        pipelined(host, shape, Place(None, stages, None), micro_batches=4)
    return Job(hosts, [setting.world, stages])


@scenario
def straggler_compute(setting: Setting) -> Job:
    """Let the kernels of one rank be slower by a third."""
    job, slow = _data_parallel(setting), setting.random.randrange(setting.ranks)
    conditions = Conditions(compute={slow: Fraction(4, 3)})
    return replace(job, conditions=conditions, straggler=Straggler(slow, "slow compute"))


@scenario
def straggler_host(setting: Setting) -> Job:
    """Let one rank launch so slowly that its device waits for its host."""
    job, slow = _data_parallel(setting), setting.random.randrange(setting.ranks)
    conditions = Conditions(host={slow: Fraction(12)})
    return replace(job, conditions=conditions, straggler=Straggler(slow, "late host"))


@scenario
def host_bound(setting: Setting) -> Job:
    """Let every host launch so slowly that all devices wait for their hosts, all the time."""
    shape, world = setting.shape(tokens=1024), setting.world
    hosts = setting.hosts(jitter=0.1)
    for host in hosts:
        data_parallel(host, shape, world)
    return Job(hosts, [world], conditions=Conditions(every_host=Fraction(12)))


@scenario
def straggler_link(setting: Setting) -> Job:
    """Let one rank have a slow link, in groups of its neighbors and across them."""
    shape, half = setting.shape(), setting.ranks // 2
    shards = [Group("1", "mesh_shard", tuple(range(at, at + half))) for at in (0, half)]
    copies = [Group("2", "mesh_replicate", (rank, rank + half)) for rank in range(half)]
    hosts = setting.hosts()
    for host in hosts:
        shard, copy = _mine(host.rank, shards), _mine(host.rank, copies)
        assert shard is not None
        assert copy is not None
        hybrid_sharded(host, shape, shard, copy)
    slow = setting.random.randrange(setting.ranks)
    return Job(
        hosts,
        [setting.world, *shards, *copies],
        conditions=Conditions(link={slow: Fraction(5)}),
        straggler=Straggler(slow, "slow link"),
    )


@scenario
def clock_offset(setting: Setting) -> Job:
    """Let clocks be apart by up to seconds, and files count from different quarters."""
    offsets = [setting.random.randrange(-(3 * 10**9), 3 * 10**9) for _ in range(setting.ranks)]
    earlier = Clock().base_ns - QUARTER_NS
    clocks = {
        rank: Clock(offset, base_ns=earlier if rank % 3 == 1 else Clock().base_ns)
        for rank, offset in enumerate(offsets)
    }
    return replace(_data_parallel(setting), clocks=clocks)


@scenario
def clock_drift(setting: Setting) -> Job:
    """Let clocks also run at different speeds, through a job of half a minute."""
    clocks = {
        rank: Clock(
            setting.random.randrange(-(10**6), 10**6), setting.random.randrange(-20_000, 20_000)
        )
        for rank in range(setting.ranks)
    }
    return replace(_data_parallel(setting, scale=4_000), clocks=clocks)


@scenario
def window_lag(setting: Setting) -> Job:
    """Let ranks be recorded from different collectives on, and not numbered."""
    cuts = {rank: setting.random.randrange(3) for rank in range(setting.ranks)}
    cuts[setting.random.randrange(1, setting.ranks)] = 2
    return replace(_data_parallel(setting), cuts=cuts, age="2024")


@scenario
def missing_rank(setting: Setting) -> Job:
    """Lose the file of one rank."""
    return replace(_data_parallel(setting), missing=(setting.random.randrange(setting.ranks),))


@scenario
def missing_member(setting: Setting) -> Job:
    """Lose the file of one rank of a job whose groups are small: others have nobody left."""
    return replace(tp_pp(setting), missing=(setting.random.randrange(setting.ranks),))


@scenario
def missing_metadata(setting: Setting) -> Job:
    """Record as in 2022: whole microseconds, and of collectives only the kernel's name."""
    shape, world = setting.shape(), setting.world
    hosts = setting.hosts(quantum_ns=1_000, old_names=True)
    for host in hosts:
        data_parallel(host, shape, world)
    return Job(hosts, [world], conditions=Conditions(quantum_ns=1_000), age="2022")


@scenario
def graphs(setting: Setting) -> Job:
    """Replay CUDA graphs, in which nothing has an operator or metadata."""
    shape, world = setting.shape(), setting.world
    hosts = setting.hosts()
    for host in hosts:
        graphed(host, shape, world)
    return Job(hosts, [world])


@scenario
def recompute(setting: Setting) -> Job:
    """Repeat the forward of checkpoints in backward."""
    shape, world = setting.shape(layers=3), setting.world
    hosts = setting.hosts()
    for host in hosts:
        checkpointed(host, shape, world)
    return Job(hosts, [world])


@scenario
def contention(setting: Setting) -> Job:
    """Let kernels take a quarter longer while a collective runs, and alike otherwise."""
    job = _data_parallel(setting, jitter=0.0)
    return replace(job, conditions=Conditions(contention=Fraction(5, 4)))


@scenario
def gloo_cpu(setting: Setting) -> Job:
    """Use no accelerator: hosts compute, and threads of gloo reduce."""
    shape, world = replace(setting.shape(layers=3), tokens=256, hidden=128), setting.world
    hosts = setting.hosts(jitter=0.05, dtype="Float")
    for host in hosts:
        gloo_parallel(host, shape, world)
    return Job(hosts, [world], on_cpu=True)
