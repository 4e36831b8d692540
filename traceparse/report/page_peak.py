"""The section of the page that says where 100 % of the peak goes, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceparse.report.bars import Amount, Bar, Segment, Tick
from traceparse.report.cells import (
    AnyCell,
    Cell,
    Column,
    Picture,
    Table,
    Words,
    count,
    ms,
    ratio,
    tera,
    usd,
)
from traceparse.report.choose import Picked
from traceparse.report.page_steps import rank_cell
from traceparse.report.peak import (
    cost_lines,
    has_figures,
    operators_of,
    operators_title,
    premises,
    priced_by,
    ratio_of,
    terms_of,
    why_unknown,
)
from traceparse.report.words import Term
from traceparse.run import Report
from traceparse.units import format_ratio, format_tflop, ms_decimals

__all__ = ["Peak", "Step", "operator_table", "peak_of", "shares_bar"]

_MAX_OPERATORS = 100
_MOST_DECIMALS = 4  # of milliseconds: a kernel's time has no more that mean anything
_TICKS = (0, 20, 40, 60, 80, 100)


@dataclass(frozen=True, slots=True)
class Step:
    """One step down the waterfall: from what was left of the peak to what is left after it."""

    key: str
    name: str
    share: Cell
    cost: Cell | None
    x: str
    width: str
    is_nothing: bool


@dataclass(frozen=True, slots=True)
class Peak:
    """All that the section shows; ``unknown`` says why figures are missing."""

    facts: Sequence[tuple[str, str]]
    premises: Sequence[str]
    unknown: str
    steps: Sequence[Step]
    ticks: Sequence[Tick]
    has_cost: bool
    cost_of: str
    ranks: Table | None
    cost: str


def peak_of(report: Report, picked: Sequence[Picked]) -> Peak | None:
    """Lay the section out; there is none for a report that knows nothing of utilization."""
    use = report.utilization
    if use is None:
        return None
    known = [
        one for one in picked if one.device.utilization and one.device.utilization["waterfall"]
    ]
    return Peak(
        facts=_facts(report, use) if has_figures(report) else (),
        premises=list(premises(report)) if has_figures(report) else (),
        unknown="" if use.get("waterfall") else why_unknown(report),
        steps=[*_steps(use.get("waterfall") or (), report.cost)],
        ticks=[Tick(f"{place}%", f"{place}%") for place in _TICKS],
        has_cost=report.cost is not None,
        cost_of=priced_by(report.cost).words,
        ranks=_rank_table(report, known) if len(known) > 1 else None,
        cost=next(cost_lines(report.cost), ""),
    )


def _facts(report: Report, use: Mapping[str, Any]) -> list[tuple[str, str]]:
    accelerator = report.run.accelerator
    named = accelerator and (accelerator["id"] or accelerator["name"])
    return [
        ("executed", f"{format_tflop(use['executed_flop'])} TFLOP"),
        ("of the model", f"{format_tflop(use['model_flop'])} TFLOP"),
        ("accelerator", named or "unknown"),
        ("reference dtype", report.run.reference_dtype or "unknown"),
    ]


def _steps(
    waterfall: Sequence[Mapping[str, Any]], cost: Mapping[str, Any] | None
) -> Iterator[Step]:
    """Go down from the peak; what is negative goes back up, and nothing leaves the picture."""
    places = {share["name"]: place for place, share in enumerate(waterfall)}
    lost = (cost or {}).get("lost_usd_per_step") or {}
    priced = priced_by(cost)
    left = 1.0
    for term in terms_of(waterfall):
        share = ratio_of(waterfall, term)
        name = next(name for name in _names_of(term) if name in places)
        before, left = left, left - (share or 0.0)
        low, high = (min(max(place, 0.0), 1.0) for place in sorted((before, left)))
        yield Step(
            key=term.key,
            name=term.name,
            share=ratio(share, f"utilization.waterfall.{places[name]}.ratio"),
            cost=usd(lost[name], f"cost.lost_usd_per_step.{name}", priced)
            if name in lost
            else None,
            x=f"{100 * low:.3f}%",
            width=f"{100 * (high - low):.3f}%",
            is_nothing=not share,
        )


def _names_of(term: Term) -> tuple[str, str]:
    """Return what a waterfall may call a term: what could not be split is its exposed comm."""
    return term.key, "exposed_comm"


def _rank_table(report: Report, picked: Sequence[Picked]) -> Table:
    uses = [one.device.utilization or {} for one in picked]
    terms = terms_of(*(use["waterfall"] for use in uses))
    several = len({one.device.rank for one in picked}) < len(picked)
    measured = sum(1 for d in report.devices if d.utilization and d.utilization["waterfall"])
    rows: list[Sequence[AnyCell]] = []
    for one, use in zip(picked, uses, strict=True):
        path = f"devices.{one.place}.utilization"
        places = {share["name"]: n for n, share in enumerate(use["waterfall"])}
        cells = [
            ratio(ratio_of(use["waterfall"], term), _share_path(path, places, term))
            for term in terms
        ]
        rows.append(
            [
                rank_cell(one.device, several=several),
                Picture(shares_bar(use["waterfall"], terms)),
                tera(use["achieved_flop_per_s"], f"{path}.achieved_flop_per_s"),
                ratio(use["hfu"], f"{path}.hfu"),
                *cells,
            ]
        )
    return Table(
        key="peak-ranks",
        label="Shares of the peak by rank",
        columns=[
            Column("rank", "", "text"),
            Column("shares", "", "picture"),
            Column("TFLOP/s", "achieved"),
            Column("HFU", "hfu"),
            *(Column(term.name, term.key) for term in terms),
        ],
        rows=rows,
        left=measured - len(picked),
        what="device",
    )


def _share_path(path: str, places: Mapping[str, int], term: Term) -> str:
    name = next((name for name in _names_of(term) if name in places), None)
    return "" if name is None else f"{path}.waterfall.{places[name]}.ratio"


def shares_bar(waterfall: Sequence[Mapping[str, Any]], terms: Sequence[Term]) -> Bar:
    """Stack the shares; one below zero takes no room, and nothing reaches beyond all."""
    segments = []
    end = 0.0
    ratios = [(term, ratio_of(waterfall, term)) for term in terms]
    for term, share in ratios:
        start, end = end, min(end + max(share or 0.0, 0.0), 1.0)
        if end > start:
            title = f"{term.name} {format_ratio(share)}"
            segments.append(
                Segment(term.key, f"{100 * start:.3f}%", f"{100 * (end - start):.3f}%", title)
            )
    amounts = [Amount(term.key, term.name, "", format_ratio(share)) for term, share in ratios]
    spoken = ", ".join(f"{amount.name} {amount.percent}" for amount in amounts)
    return Bar("", amounts, segments, spoken)


def operator_table(report: Report) -> Table | None:
    """Write the operators of the roofline, those that lose most first."""
    rows = report.roofline or ()
    operators = operators_of(rows, _MAX_OPERATORS)
    if not operators:
        return None
    longest = max((row["time_ns"] for row in rows[: len(operators)]), default=0)
    decimals = min(ms_decimals(longest), _MOST_DECIMALS)
    return Table(
        key="operators-table",
        label=operators_title(operators),
        columns=[
            Column("operator and shapes", "", "text"),
            Column("dtype", "", "text"),
            Column("runs"),
            Column("time, ms", "sum of its kernels"),
            Column("TFLOP/s"),
            Column("% of roof", "roof"),
            Column("bound", "latency", "text"),
            Column("lost, ms", "time above the roof"),
        ],
        rows=[
            [
                Words(one.name, one.shapes),
                Words(one.dtype),
                count(row["count"], f"roofline.{place}.count"),
                ms(row["time_ns"], decimals, f"roofline.{place}.time_ns"),
                tera(row["flop_per_s"], f"roofline.{place}.flop_per_s"),
                ratio(row["roof_ratio"], f"roofline.{place}.roof_ratio"),
                Words(one.bound),
                ms(row["lost_ns"], decimals, f"roofline.{place}.lost_ns"),
            ]
            for place, (one, row) in enumerate(zip(operators, rows, strict=False))
        ],
        left=len(rows) - len(operators),
    )
