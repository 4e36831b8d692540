"""Communication that costs: too much of it exposed, too little beside compute, too small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from traceparse.rank.collective_names import collective_named
from traceparse.run.across import PEERS
from traceparse.run.bands import bands
from traceparse.run.findings.finding import Finding, finding
from traceparse.run.findings.view import Row, View
from traceparse.units import (
    format_count,
    format_duration,
    format_ratio,
    format_size,
    rank_ranges,
)

__all__ = ["communication_bound", "low_overlap", "tiny_collectives"]

_TERMS: Final = {
    "exposed_transfer": "transfer",
    "exposed_wait": "waiting for other ranks in collectives",
    "pipeline_wait": "waiting in send/recv",
    "exposed_unsplit": "transfer or waiting, which cannot be told apart",
}
_WAITS: Final = ("exposed_wait", "pipeline_wait")
_WORTH_TELLING: Final = 0.001
_LITTLE: Final = 0.01  # of the device-steps; less is not worth a change
_TOLD_STRAGGLERS: Final = "findings `straggler` claim {} of the steps, which is in this"

# overlap
_LEAST_HIDEABLE: Final = 0.05
_LITTLE_OVERLAP: Final = 0.5  # of the time of collectives

# sizes: below about 1 MiB a collective takes its latency, whatever its size (the way that
# nccl-tests' bandwidths fall off; metrics.md, section 5)
_TINY_BYTES: Final = 1 << 20
_MANY_PER_STEP: Final = 10

_BY_FAMILY: Final = {
    "all_reduce": (
        "if these are gradients of DDP, let the first bucket go out early in backward and keep "
        "the last one small (bucket_cap_mb), with static_graph=True and "
        "find_unused_parameters=False"
    ),
    "shards": (
        "let FSDP gather ahead: forward_prefetch=True and backward_prefetch=BACKWARD_PRE "
        "(FSDP2: set_modules_to_forward_prefetch, set_modules_to_backward_prefetch), "
        "limit_all_gathers=False if memory allows, each layer wrapped on its own"
    ),
    "peers": (
        "start a micro-batch's receive before the one before is done "
        "(batch_isend_irecv; Megatron: overlap_p2p_comm), with more micro-batches or an "
        "interleaved schedule"
    ),
    "other": (
        "issue it earlier, with async_op=True, and wait for it only where its result is needed"
    ),
}
_LESS: Final = {
    "all_reduce": (
        "reduce less often (gradient accumulation under no_sync()) or less "
        "(bf16_compress_hook, gradients in bf16)"
    ),
    "shards": (
        "shard within a node only (HYBRID_SHARD; FSDP2: a 2-D mesh), keep weights of small "
        "layers (reshard_after_forward=False), gather in bf16 (MixedPrecision param_dtype)"
    ),
    "peers": "send activations in 16 bits, and keep stages that talk within a node",
    "other": "send less, or between ranks that are nearer (topology, process groups in a node)",
}


def communication_bound(view: View) -> Iterator[Finding]:
    """Find steps that wait for or transfer with nothing computed meanwhile.

    What it would win back is what a free network would: by a replay of the job, where there is
    one, else by subtraction (an upper bound). Waiting is not won back by a faster network.
    """
    exposed_ratio = view.ratio(view.times.exposed_comm_ns)
    band = bands()["exposed_comm_ratio"]
    if exposed_ratio < band.limit("typical"):
        return
    terms = view.terms(_TERMS)
    waits = sum(terms.get(name, 0.0) for name in _WAITS)
    is_waiting = waits > exposed_ratio / 2
    replayed = view.won_ratio("network_free")
    subtracted = exposed_ratio - waits
    yield finding(
        "communication_bound",
        "warning" if exposed_ratio >= band.limit("poor") else "info",
        f"communication is exposed for {format_ratio(exposed_ratio)} of the {view.unit}"
        + (", most of it waiting for others" if is_waiting else ""),
        "; ".join(_about_exposure(view, terms, replayed)),
        _less(view, is_waiting=is_waiting),
        lost_ratio=subtracted if replayed is None else max(replayed, 0.0),
    )


def _less(view: View, *, is_waiting: bool) -> str:
    won = view.won_ratio("network_free")
    if won is not None and won < _LITTLE:
        return (
            "look at what else bounds the steps first (findings on hosts and stragglers): "
            "while that lasts, a faster network wins nothing"
        )
    if is_waiting:
        return (
            "balance the ranks first, as most of this is waiting for the last one, which a "
            "faster network does not shorten (see the findings on stragglers and pipeline "
            "stages)"
        )
    family = _family(_by_exposure(view.collectives))
    return f"{_LESS[family]}; {_BY_FAMILY[family]}"


def _about_exposure(
    view: View, terms: dict[str, float], replayed: float | None
) -> Iterator[str]:
    parts = [
        f"{format_ratio(ratio)} {words}"
        for name, words in _TERMS.items()
        if (ratio := terms.get(name, 0.0)) >= _WORTH_TELLING
    ]
    if parts:
        yield f"of the {view.unit}: {', '.join(parts)}"
    else:
        yield "waiting and transfer cannot be told apart: give the traces of all ranks"
    for row in _by_exposure(view.collectives)[:1]:
        size = row["message_bytes"]
        yield f"most exposed is {_named(row)}" + (
            "" if size is None else f" of {format_size(size)}"
        )
    if claimed := view.straggler_ratio():
        yield _TOLD_STRAGGLERS.format(format_ratio(claimed))
    if replayed is not None:
        won = format_ratio(max(replayed, 0.0))
        yield f"a replay with a network that takes no time wins {won}"
    else:
        yield "what it would win back is an upper bound: waiting may take the place of transfer"


def low_overlap(view: View) -> Iterator[Finding]:
    """Find transfer that stands beside no compute, although there is compute to hide it.

    It would win back, at most, what is exposed and no waiting, as far as there is compute that
    no collective overlaps yet, and a network that takes no time wins anything.
    """
    times = view.times
    if not times.comm_ns or times.overlap_ns >= _LITTLE_OVERLAP * times.comm_ns:
        return
    waits = sum(view.terms(_WAITS).values())
    transfer = view.ratio(times.exposed_comm_ns) - waits
    alone = view.ratio(times.compute_ns - times.overlap_ns)
    won = view.won_ratio("network_free")
    hideable = min(transfer, alone, transfer if won is None else won)
    if hideable < _LEAST_HIDEABLE:
        return
    family = _family(_by_exposure(view.collectives))
    what = "transfer" if view.communication_ns else "transfer, or waiting,"
    exposed = format_ratio(view.ratio(times.exposed_comm_ns))
    yield finding(
        "low_overlap",
        "warning" if hideable >= 2 * _LEAST_HIDEABLE else "info",
        f"only {format_ratio(times.overlap_ns / times.comm_ns)} of communication runs beside "
        f"compute",
        f"of the {exposed} of the {view.unit} in which it is exposed, "
        f"{format_ratio(hideable)} is {what} that compute could hide, an upper bound; "
        f"compute beside no collective is {format_ratio(alone)}{_also_bound(view)}",
        _BY_FAMILY[family],
        lost_ratio=hideable,
    )


def tiny_collectives(view: View) -> Iterator[Finding]:
    """Find many collectives that are so small that they take nothing but their latency.

    One for all of each kind in a step would win back all but their part of what is exposed:
    an upper bound, as some of that is waiting.
    """
    tiny = [
        row
        for row in view.collectives
        if row["message_bytes"] is not None and 0 < row["message_bytes"] <= _TINY_BYTES
    ]
    steps = max(view.num_steps_in_files, 1)
    count = sum(row["count"] for row in tiny)
    exposed_ns = sum(row["exposed_ns"] for row in tiny)
    every_ns = sum(row["exposed_ns"] for row in view.collectives)
    if not every_ns or count < _MANY_PER_STEP * steps:
        return
    exposed = exposed_ns / every_ns * view.ratio(view.times.exposed_comm_ns)
    groups = {(row["process_group"], *row["ranks"], row["collective"]) for row in tiny}
    left = min(len(groups) * steps / count, 1.0)
    lost = exposed * (1 - left)
    if lost < _LITTLE:
        return
    timed = [row for row in tiny if row["transfer_ns"]]
    num_timed = sum(row["count"] for row in timed)
    mean = ""
    if num_timed:
        mean_ns = round(sum(row["transfer_ns"] for row in timed) / num_timed)
        mean = f", {format_duration(mean_ns)} each once all have come"
    most = max(tiny, key=lambda row: row["exposed_ns"])
    yield finding(
        "tiny_collectives",
        "warning" if lost >= 5 * _LITTLE else "info",
        f"{format_count(round(count / steps))} collectives a step are too small for the "
        f"network's bandwidth",
        f"they are of {format_size(_TINY_BYTES)} or less{mean}, and exposed for "
        f"{format_ratio(exposed)} of the {view.unit}, an upper bound of what larger ones "
        f"win{_also_bound(view)}; most exposed is {_named(most)} of "
        f"{format_size(most['message_bytes'])}",
        "put them together: flatten tensors into one buffer, all_reduce_coalesced or "
        "_coalescing_manager, DDP with a larger bucket_cap_mb, one all_reduce for all logged "
        "values",
        lost_ratio=lost,
    )


def _also_bound(view: View) -> str:
    """Say that another finding is about the same time, if it is there."""
    limit = bands()["exposed_comm_ratio"].limit("typical")
    is_bound = view.ratio(view.times.exposed_comm_ns) >= limit
    return "; finding `communication_bound` is about the same time" if is_bound else ""


def _by_exposure(rows: Sequence[Row]) -> list[Row]:
    return sorted(
        (row for row in rows if row["exposed_ns"]), key=lambda row: -row["exposed_ns"]
    )


def _named(row: Row) -> str:
    group = f" in group {row['process_group']}" if row["process_group"] is not None else ""
    ranks = row["ranks"]
    who = f" among ranks {rank_ranges(ranks)}" if len(ranks) > 1 else ""
    return f"{row['collective']}{group}{who}"


def _family(rows: Sequence[Row]) -> str:
    """Say by whom a job's most exposed collective is called, as far as its name tells."""
    for row in rows:
        if row["collective"] == PEERS:
            return "peers"
        known = collective_named(row["collective"] or "")
        name = known.name if known else ""
        if name.startswith("allreduce"):
            return "all_reduce"
        if "gather" in name or "reduce_scatter" in name:
            return "shards"
        return "other"
    return "other"
