"""What the page says first: findings and key figures, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from traceparse.report.bars import parts_of
from traceparse.report.cells import Cell, Figure, ms, percent, ratio, tera, usd
from traceparse.report.peak import priced_by
from traceparse.report.words import PARTS, SOURCES
from traceparse.run import Report
from traceparse.units import ms_decimals

__all__ = ["Finding", "figures_of", "findings_of", "part_figures"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something found: what, how it is known, what to do, and what that would win back."""

    severity: str
    code: str
    title: str
    evidence: str
    advice: str
    lost: Cell | None
    cost: Cell | None
    cost_of: str


def findings_of(report: Report) -> list[Finding]:
    """List what was found, in the report's order: what costs most first."""
    found = []
    priced = priced_by(report.cost)
    for index, row in enumerate(report.findings or ()):
        path = f"findings.{index}"
        lost, cost = row["lost_ratio"], row["lost_usd"]
        found.append(
            Finding(
                severity=row["severity"],
                code=row["code"],
                title=row["title"],
                evidence=row["evidence"],
                advice=row["advice"],
                lost=None if lost is None else ratio(lost, f"{path}.lost_ratio"),
                cost=None if cost is None else usd(cost, f"{path}.lost_usd", priced),
                cost_of=priced.words,
            )
        )
    return found


def figures_of(report: Report, bands: Mapping[str, Any] | None) -> list[Figure]:
    """List the key figures that are known, with the bands that they fall into."""
    figures = [
        *_peak_figures(report.utilization or {}),
        *_step_figures(report),
        *_cost_figures(report.cost or {}),
    ]
    return [_banded(figure, bands or {}) for figure in figures]


def _peak_figures(use: Mapping[str, Any]) -> Iterator[Figure]:
    if use.get("mfu") is not None or use.get("hfu") is not None:
        below = SOURCES.get(use.get("mfu_source") or "", "")
        path = "utilization"
        yield Figure("MFU", "mfu", ratio(use["mfu"], f"{path}.mfu"), below, key="mfu")
        yield Figure("HFU", "hfu", ratio(use["hfu"], f"{path}.hfu"), "with recomputation")
    if (rate := use.get("achieved_flop_per_s")) is not None:
        cell = tera(rate, "utilization.achieved_flop_per_s")
        yield Figure("achieved", "achieved", cell, "TFLOP/s a device")


def _step_figures(report: Report) -> Iterator[Figure]:
    summary, loss = report.summary, report.scaling_loss
    if loss is not None:
        step = ms(loss["step_ns"], ms_decimals(loss["step_ns"]), "scaling_loss.step_ns")
        yield Figure("mean step", "step", step, "ms a device-step")
    elif summary.num_device_steps:
        mean_ns = round(summary.times.span_ns / summary.num_device_steps)
        what = "window" if summary.basis == "windows" else "step"
        cell = ms(mean_ns, ms_decimals(mean_ns))
        yield Figure(f"mean {what}", what, cell, f"ms a device-{what}")
    yield Figure(
        "exposed comm",
        "exposed_comm",
        ratio(summary.exposed_comm_ratio, "summary.exposed_comm_ratio"),
        "of the device-steps",
        key="exposed_comm_ratio",
    )
    yield Figure(
        "idle", "idle", ratio(summary.idle_ratio, "summary.idle_ratio"), "of the device-steps"
    )
    if loss is not None and loss["parallel_efficiency"] is not None:
        yield Figure(
            "parallel efficiency",
            "parallel_efficiency",
            ratio(loss["parallel_efficiency"], "scaling_loss.parallel_efficiency"),
            "mean compute of a step",
            key="parallel_efficiency",
        )


def _cost_figures(cost: Mapping[str, Any]) -> Iterator[Figure]:
    if cost:
        priced = priced_by(cost)
        a_step = usd(cost["usd_per_step"], "cost.usd_per_step", priced)
        yield Figure("cost", "", a_step, priced.words)
        if cost["usd_per_million_tokens"] is not None:
            price = usd(cost["usd_per_million_tokens"], "cost.usd_per_million_tokens")
            yield Figure("cost", "", price, "a million tokens")


def _banded(figure: Figure, bands: Mapping[str, Any]) -> Figure:
    band = bands.get(figure.key) if figure.key else None
    if band is None:
        return figure
    return Figure(
        figure.name,
        figure.definition,
        figure.cell,
        figure.below,
        key=figure.key,
        band=band["band"],
        source=band["source"],
    )


def part_figures(report: Report) -> list[tuple[str, str, Cell, Cell]]:
    """List key, name, share and time of the parts that the run's device-steps consist of."""
    summary = report.summary
    span = summary.times.span_ns
    decimals = ms_decimals(span)
    shares = {
        part.key: ratio(getattr(summary, f"{part.key}_ratio"), f"summary.{part.key}_ratio")
        for part in PARTS
    }
    return [
        (key, name, shares[key], ms(ns, decimals, f"summary.times.{key}_ns"))
        if key in shares
        else (key, name, percent(ns, span), ms(ns, decimals, f"summary.communication_ns.{key}"))
        for key, name, ns in parts_of(summary.times, summary.communication_ns)
    ]
