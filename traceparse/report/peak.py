"""What is said of the use of the peak, in words and numbers, wherever it is drawn."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceparse.report.safe import visible
from traceparse.report.words import NOT_SPLIT, RARE, SOURCES, Term, term_of
from traceparse.run import DeviceReport, Report
from traceparse.units import (
    UNKNOWN,
    PerSteps,
    format_count,
    format_flop_per_s,
    format_ms,
    format_ratio,
    format_tflop,
    format_usd,
    ms_decimals,
    per_steps,
)

__all__ = [
    "Operator",
    "cost_lines",
    "has_figures",
    "headline",
    "measured_devices",
    "operators_of",
    "operators_title",
    "premises",
    "priced_by",
    "ratio_of",
    "terms_of",
    "why_unknown",
]

_NAME_LIMIT = 60
_SHAPES_LIMIT = 90
_MOST_DECIMALS = 4  # of milliseconds: a kernel's time has no more that mean anything
_DTYPE_LIMIT = 12  # of ours; a formula of others may say anything

# notes that say why a figure is missing, the first cause first
_REASONS = (
    "flop_unknown",
    "peak_unknown",
    "peak_missing",
    "accelerator_doubtful",
    "reference_dtype_unknown",
    "model_flop_unknown",
    "waterfall_unknown",
)


@dataclass(frozen=True, slots=True)
class Operator:
    """One row of the roofline, as text."""

    name: str
    shapes: str
    dtype: str
    count: str
    time: str
    rate: str
    roof: str
    bound: str
    lost: str


def has_figures(report: Report) -> bool:
    """Is anything known of the use of the peak?"""
    use = report.utilization or {}
    return any(use.get(name) is not None for name in ("executed_flop", "hfu", "mfu"))


def why_unknown(report: Report) -> str:
    """Say why a figure is missing: the message of the note that comes first as a cause."""
    said = {note.code: note.message for note in reversed(report.notes)}
    return next((said[code] for code in _REASONS if code in said), "the notes say why")


def headline(report: Report) -> str:
    """Say in one line how fast a device was, and what share of its peak that is."""
    use = report.utilization or {}
    return (
        f"{format_flop_per_s(use.get('achieved_flop_per_s'))} a device, "
        f"HFU {format_ratio(use.get('hfu'))}, MFU {format_ratio(use.get('mfu'))}"
    )


def premises(report: Report) -> Iterator[str]:
    """Say what that rests on: the source of model FLOP, conventions, peaks, what is missing."""
    run = report.run
    conventions = dict(run.conventions or {})
    model = conventions.pop("model_flop", None)
    use = report.utilization or {}
    source = use.get("mfu_source") if use.get("mfu") is not None else None
    said = [SOURCES.get(source or "", "")]
    if said[0] and model not in {None, "given", "counted"}:
        said[0] += f": {model}"
    if conventions:
        told = ", ".join(
            f"{name.replace('_', ' ')} {value}".rstrip() for name, value in conventions.items()
        )
        said.append(f"counted with {told}")
    if line := "; ".join(filter(None, said)):
        yield line[0].upper() + line[1:]
    if run.accelerator is not None:
        name = run.accelerator["id"] or run.accelerator["name"] or "a device without a name"
        peak = run.accelerator["peak_flop_per_s"].get(run.reference_dtype)
        told = "unknown" if peak is None else format_flop_per_s(peak)
        rate = f": {told} in {run.reference_dtype}" if run.reference_dtype else ""
        yield f"Peak of {name}{rate}; {run.accelerator['source']}"
    for note in report.notes:
        if note.code == "kernels_unattributed":
            yield note.message


def terms_of(*waterfalls: Sequence[Mapping[str, Any]]) -> list[Term]:
    """Return the terms to show of waterfalls, less those that none has and most jobs lack."""
    shares = [share for waterfall in waterfalls for share in waterfall]
    names = dict.fromkeys(share["name"] for share in shares)
    some = {share["name"] for share in shares if share["ratio"]}
    terms = [(name, _term_of(name, names)) for name in names]
    return [term for name, term in terms if term.key not in RARE or name in some]


def ratio_of(waterfall: Sequence[Mapping[str, Any]], term: Term) -> float | None:
    """Return a term's share of a waterfall, if it is there."""
    names = [share["name"] for share in waterfall]
    own = (share["ratio"] for share in waterfall if _term_of(share["name"], names) == term)
    return next(own, None)


def _term_of(name: str, names: Collection[str]) -> Term:
    """Return a term; beside transfer, exposed communication is what could not be split."""
    is_rest = name == "exposed_comm" and "exposed_transfer" in names
    return term_of(NOT_SPLIT if is_rest else name)


def measured_devices(devices: Sequence[DeviceReport]) -> list[DeviceReport]:
    """Return the devices whose waterfall is known."""
    return [
        device for device in devices if device.utilization and device.utilization["waterfall"]
    ]


def operators_of(rows: Sequence[Mapping[str, Any]], most: int) -> list[Operator]:
    """Write the operators that lose most, their times with as many decimals."""
    shown = rows[:most]
    longest_ns = max((row["time_ns"] for row in shown), default=0)
    decimals = min(ms_decimals(longest_ns), _MOST_DECIMALS)
    return [
        Operator(
            name=visible(row["op"], _NAME_LIMIT),
            shapes=visible(row["shapes"], _SHAPES_LIMIT),
            dtype=visible(row["dtype"])[:_DTYPE_LIMIT],
            count=format_count(row["count"]),
            time=format_ms(row["time_ns"], decimals),
            rate=format_tflop(row["flop_per_s"]),
            roof=format_ratio(row["roof_ratio"]),
            bound=row["bound"] or UNKNOWN,
            lost=format_ms(row["lost_ns"], decimals),
        )
        for row in shown
    ]


def operators_title(operators: Sequence[Operator]) -> str:
    """Say what the operators are sorted by: time above their roofs, where any is known."""
    is_known = any(one.lost != UNKNOWN for one in operators)
    return "Operators that lose most" if is_known else "Operators that take most"


def priced_by(cost: Mapping[str, Any] | None) -> PerSteps:
    """Return of how many steps the costs of a report are told."""
    return per_steps((cost or {}).get("usd_per_step"))


def cost_lines(cost: Mapping[str, Any] | None) -> Iterator[str]:
    """Write what a step costs, and what of it is lost to what."""
    if cost is None:
        return
    a_step, tokens = cost["usd_per_step"], cost["usd_per_million_tokens"]
    priced = priced_by(cost)
    million = "" if tokens is None else f", {format_usd(tokens)} a million tokens"
    yield (
        f"{priced.text(a_step)} ({cost['gpu_hours_per_step'] * priced.num_steps:,.3g} "
        f"GPU-hours at {format_usd(cost['usd_per_gpu_hour'])}){million}"
    )
    shares = cost["lost_usd_per_step"]
    lost = ", ".join(
        f"{_term_of(name, shares).name} {format_usd(priced.amount(usd))}"
        for name, usd in sorted(shares.items(), key=lambda item: item[1], reverse=True)
        if usd > 0
    )
    if lost:
        yield f"Lost of it to {lost}"
