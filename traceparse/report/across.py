"""What is said of the ranks together, in words and numbers, wherever it is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceparse.report.safe import visible
from traceparse.report.words import COMMUNICATION, DTYPES
from traceparse.run import DeviceReport, Report
from traceparse.units import (
    UNKNOWN,
    format_count,
    format_duration,
    format_ms,
    format_ns,
    format_number_of,
    format_ranges,
    format_ratio,
    format_size,
    ms_decimals,
    rank_ranges,
)
from traceparse.work import accelerators

__all__ = [
    "CollectiveRow",
    "clock_line",
    "communication_of",
    "is_small",
    "is_split",
    "last_in",
    "latency_of",
    "link_line",
    "link_of",
    "loss_lines",
    "rows_of",
    "waited_for",
    "why_not_split",
]

_PEERS = "send/recv"
_MOST_WAITED_FOR = 3
_NAME_LIMIT = 60
_DTYPE_LIMIT = 12
_RANKS_LIMIT = 9  # characters; more ranks are only counted
_MOST_DECIMALS = 4  # of milliseconds, as for operators
_LATENCY_BYTES = 1 << 20  # about where links of today begin to be busy
_LEAST_DRIFT_PPM = 0.05  # what is written is 0.1 at least

# notes that say why nothing could be split, the first cause first
_REASONS = ("collectives_disagree", "collectives_unmatched")


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One kind of collective, as text. ``ranks`` is compact, ``members`` is in full.

    ``busbw`` of a small message is how long one takes: that is latency.
    """

    collective: str
    group: str
    ranks: str
    members: str
    dtype: str
    size: str
    count: str
    transfer: str
    wait: str
    exposed: str
    algbw: str
    busbw: str
    last: str


def is_split(report: Report) -> bool:
    """Is waiting known apart from transfer, in any collective?"""
    return any(row["transfer_ns"] is not None for row in report.collectives or ())


def why_not_split(report: Report) -> str:
    """Say why waiting and transfer could not be told apart."""
    if len(report.devices) < 2:
        return (
            "one rank only, and what others waited for is in their traces: waiting cannot be "
            "told from transfer"
        )
    said = {note.code: note.message for note in reversed(report.notes)}
    unsaid = (
        "no collective was seen on several ranks, and on all of its group that have a file: "
        "waiting cannot be told from transfer"
    )
    return next((said[code] for code in _REASONS if code in said), unsaid)


def clock_line(report: Report) -> str:
    """Say whether the ranks are on one clock, and how well."""
    clock = report.clock or {}
    offsets: Mapping[str, int] = clock.get("offsets_ns") or {}
    residual = clock.get("residual_ns")
    if residual is None or len(offsets) < 2:
        return "no common clock: no collective that ends on several ranks at once was matched"
    ranks = {device.rank for device in report.devices}
    which = format_number_of(len(offsets), "rank")
    if not clock["aligned"]:
        which = f"{len(offsets):,} of {format_number_of(len(ranks), 'rank')}"
    furthest = max(map(abs, offsets.values()))
    drift = max((abs(ppm) for ppm in clock["drift_ppm"].values()), default=0.0)
    offset = f"offsets up to {format_duration(furthest)}" if furthest else "no offset"
    text = f"{which} on one clock: {offset}"
    if drift >= _LEAST_DRIFT_PPM:
        text += f", drift up to {drift:,.1f} ppm"
    text += f", residual {format_duration(residual)}"
    lost = sorted(rank for rank in ranks if rank is not None and str(rank) not in offsets)
    return f"{text}; not rank {rank_ranges(lost)}" if lost else text


def loss_lines(report: Report) -> Iterator[str]:
    """Write what of a step communication cost, and the factors of parallel efficiency."""
    loss = report.scaling_loss
    if loss is None:
        return
    terms = {
        "transfer": loss["exposed_transfer_ratio"],
        "waiting for the last rank": loss["exposed_wait_ratio"],
        "pipeline wait": loss["pipeline_wait_ratio"],
        "not split": loss["exposed_unsplit_ratio"],
        "contention": loss["contention_ratio"],
    }
    always = list(terms)[:2]
    told = ", ".join(
        f"{name} {format_ratio(ratio)}"
        for name, ratio in terms.items()
        if ratio or name in always
    )
    yield f"Scaling loss of a mean step of {format_ns(loss['step_ns'])}: {told}"
    if loss["comm_ratio"] is not None:
        won = format_ratio(loss["comm_ratio"])
        yield f"A free network and balanced ranks would win back {won} at most"
    names = ("load_balance", "serialization", "transfer")
    factors = " x ".join(
        f"{name.replace('_', ' ')} {format_ratio(loss[name])}" for name in names
    )
    yield f"Parallel efficiency {format_ratio(loss['parallel_efficiency'])} = {factors}"


def link_of(report: Report) -> tuple[str, float] | None:
    """Return what joins the devices, and its bytes/s in each direction, if a table has it."""
    used = report.run.accelerator or {}
    link = next((entry.link for entry in accelerators() if entry.id == used.get("id")), None)
    rate = link.gb_per_s_per_direction if link else None
    if link is None or rate is None:
        return None
    return f"{link.kind} of {used['id']}", rate * 1e9


def link_line(report: Report) -> str | None:
    """Say what bandwidths compare with, if a table has the accelerator's link."""
    link = link_of(report)
    if link is None:
        return None
    fastest = max(
        (
            row["busbw_bytes_per_s"] or 0
            for row in report.collectives or ()
            if not is_small(row)
        ),
        default=0,
    )
    if not fastest:
        return None
    name, rate = link
    share = fastest / rate
    text = (
        f"{name} has {rate / 1e9:,g} GB/s in each direction, the fastest busbw "
        f"is {format_ratio(share)} of that"
    )
    if share > 1:
        return f"{text}: it may be more where the network itself reduces (NVLS, SHARP)"
    return f"{text}; between nodes it is their network that counts"


def waited_for(report: Report) -> str | None:
    """Name the ranks that came last most often, and what waiting is theirs alone.

    Peers are left out: whom they wait for is the pipeline's order. How long each rank was
    waited for is known only where it was last in all collectives of a kind; else at least that.
    """
    lasts = last_in(report)
    if not lasts:
        return None
    rows = _among_groups(report)
    told = [_about_last(rank, num, rows) for rank, num in lasts.most_common(_MOST_WAITED_FOR)]
    others = len(lasts) - len(told)
    return "; ".join(told) + (f"; and {format_number_of(others, 'other')}" if others else "")


def last_in(report: Report) -> Counter[str]:
    """Return in how many collectives each rank came last, the lowest rank first."""
    found: Counter[str] = Counter()
    for row in _among_groups(report):
        found.update(row["last_rank_counts"])
    return Counter({rank: found[rank] for rank in sorted(found, key=int)})


def _among_groups(report: Report) -> list[Mapping[str, Any]]:
    return [row for row in report.collectives or () if row["collective"] != _PEERS]


def _about_last(rank: str, num: int, rows: Sequence[Mapping[str, Any]]) -> str:
    own = [row for row in rows if int(rank) in row["ranks"]]
    among = sum(sum(row["last_rank_counts"].values()) for row in own)
    hit = [row for row in rows if rank in row["last_rank_counts"]]
    alone = [row for row in hit if len(row["last_rank_counts"]) == 1]
    text = f"rank {rank}, last in {num:,} of its {among:,} ({format_ratio(num / among)}"
    waiting = sum(row["wait_ns"] or 0 for row in alone)
    least = "" if len(alone) == len(hit) else "at least "
    return f"{text}; {least}{format_duration(waiting)} of waiting)" if waiting else f"{text})"


def communication_of(device: DeviceReport) -> dict[str, int] | None:
    """Add up what exposed communication was in all steps of a device, if that is known."""
    told = [step.communication_ns for step in device.steps if step.communication_ns]
    return {term: sum(one[term] for one in told) for term in COMMUNICATION} if told else None


def rows_of(rows: Sequence[Mapping[str, Any]], most: int) -> list[CollectiveRow]:
    """Write the first collectives, which cost most, their times with as many decimals."""
    shown = rows[:most]
    names = ("transfer_ns", "wait_ns", "exposed_ns")
    longest_ns = max((row[name] or 0 for row in shown for name in names), default=0)
    decimals = min(ms_decimals(longest_ns), _MOST_DECIMALS)
    return [_row(row, decimals) for row in shown]


def _row(row: Mapping[str, Any], decimals: int) -> CollectiveRow:
    transfer, wait, exposed = (
        format_ms(row[name], decimals) for name in ("transfer_ns", "wait_ns", "exposed_ns")
    )
    ranks, dtype = list(row["ranks"]), row["dtype"]
    compact = format_ranges(ranks) or UNKNOWN
    if len(compact) > _RANKS_LIMIT:
        compact = format_number_of(len(ranks), "rank")
    lasts = Counter(row["last_rank_counts"]).most_common(_MOST_WAITED_FOR)
    return CollectiveRow(
        collective=_shown(row["collective"], _NAME_LIMIT),
        group=_shown(row["process_group"], _NAME_LIMIT),
        ranks=compact,
        members=rank_ranges(ranks),
        dtype=_shown(dtype and DTYPES.get(dtype, dtype))[:_DTYPE_LIMIT],
        size=format_size(row["message_bytes"]),
        count=format_count(row["count"]),
        transfer=transfer,
        wait=wait,
        exposed=exposed,
        algbw=UNKNOWN if is_small(row) else _bandwidth(row["algbw_bytes_per_s"]),
        busbw=latency_of(row) if is_small(row) else _bandwidth(row["busbw_bytes_per_s"]),
        last=", ".join(f"rank {rank}: {num:,}" for rank, num in lasts) or UNKNOWN,
    )


def _shown(text: str | None, limit: int = _NAME_LIMIT) -> str:
    return UNKNOWN if text is None else visible(text, limit)


def is_small(row: Mapping[str, Any]) -> bool:
    """Say whether a message is so small that its transfer is latency, not bandwidth."""
    return 0 < (row["message_bytes"] or 0) < _LATENCY_BYTES


def latency_of(row: Mapping[str, Any]) -> str:
    """Write how long one instance transfers."""
    num = sum(row["last_rank_counts"].values())  # those that were split
    if row["transfer_ns"] is None or not num:
        return UNKNOWN
    return format_duration(round(row["transfer_ns"] / num))


def _bandwidth(rate: float | None) -> str:
    """Write bytes/s in decimal GB/s, without the unit."""
    if rate is None:
        return UNKNOWN
    giga = rate / 1e9
    return f"{giga:,.{1 if giga >= 10 else 3}f}" if giga else "0"
