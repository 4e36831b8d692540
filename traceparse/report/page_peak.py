"""The section of the page that says where 100 % of the peak goes, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceparse.report.bars import Segment, Tick
from traceparse.report.choose import choose_devices
from traceparse.report.peak import (
    Operator,
    cost_lines,
    has_figures,
    measured_devices,
    operators_of,
    operators_title,
    premises,
    ratio_of,
    terms_of,
    why_unknown,
)
from traceparse.report.words import Term
from traceparse.run import DeviceReport, Report
from traceparse.units import (
    UNKNOWN,
    format_flop_per_s,
    format_ratio,
    format_tflop,
)

__all__ = ["Finding", "Peak", "Share", "SharesRow", "findings_of", "peak_of"]

_MAX_DEVICES = 64
_MAX_OPERATORS = 24
_TICKS = (0, 20, 40, 60, 80, 100)


@dataclass(frozen=True, slots=True)
class Share:
    """One share of the peak, in percent of it."""

    key: str
    name: str
    percent: str


@dataclass(frozen=True, slots=True)
class SharesRow:
    """The shares of one device, or of the run, as a bar and in one sentence."""

    rank: str
    device: str
    rate: str
    hfu: str
    shares: Sequence[Share]
    segments: Sequence[Segment]
    spoken: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something found, in words."""

    severity: str
    title: str
    evidence: str
    advice: str


@dataclass(frozen=True, slots=True)
class Peak:
    """All that the section shows; ``unknown`` says why figures are missing."""

    facts: Sequence[tuple[str, str]]
    premises: Sequence[str]
    unknown: str
    run: SharesRow | None
    rows: Sequence[SharesRow]
    left: int
    ticks: Sequence[Tick]
    operators: Sequence[Operator]
    operators_title: str
    operators_left: int
    cost: Sequence[str]


def peak_of(report: Report) -> Peak | None:
    """Lay the section out; there is none for a report that knows nothing of utilization."""
    use = report.utilization
    if use is None:
        return None
    known = measured_devices(report.devices)
    shown = choose_devices(known, _MAX_DEVICES) if len(known) > 1 else []
    terms = terms_of(*((device.utilization or {})["waterfall"] for device in shown))
    rows = report.roofline or ()
    operators = operators_of(rows, _MAX_OPERATORS)
    return Peak(
        facts=_facts(report, use) if has_figures(report) else (),
        premises=list(premises(report)) if has_figures(report) else (),
        unknown="" if use.get("waterfall") else why_unknown(report),
        run=_row(None, use, terms_of(use["waterfall"])) if use.get("waterfall") else None,
        rows=[_row(device, device.utilization or {}, terms) for device in shown],
        left=max(len(known) - _MAX_DEVICES, 0),
        ticks=[Tick(f"{place}%", f"{place}%") for place in _TICKS],
        operators=operators,
        operators_title=operators_title(operators),
        operators_left=len(rows) - len(operators),
        cost=list(cost_lines(report.cost)),
    )


def _facts(report: Report, use: Mapping[str, Any]) -> list[tuple[str, str]]:
    accelerator = report.run.accelerator
    named = accelerator and (accelerator["id"] or accelerator["name"])
    return [
        ("HFU", format_ratio(use["hfu"])),
        ("MFU", format_ratio(use["mfu"])),
        ("achieved a device", format_flop_per_s(use["achieved_flop_per_s"])),
        ("executed", f"{format_tflop(use['executed_flop'])} TFLOP"),
        ("of the model", f"{format_tflop(use['model_flop'])} TFLOP"),
        ("accelerator", named or "unknown"),
        ("reference dtype", report.run.reference_dtype or "unknown"),
    ]


def _row(
    device: DeviceReport | None, use: Mapping[str, Any], terms: Sequence[Term]
) -> SharesRow:
    ratios = [(term, ratio_of(use["waterfall"], term)) for term in terms]
    shares = [Share(term.key, term.name, format_ratio(ratio)) for term, ratio in ratios]
    spoken = ", ".join(f"{share.name} {share.percent}" for share in shares)
    return SharesRow(
        rank=_label(device.rank if device else None),
        device=_label(device.device if device else None),
        rate=format_tflop(use["achieved_flop_per_s"]),
        hfu=format_ratio(use["hfu"]),
        shares=shares,
        segments=_segments(ratios),
        spoken=spoken,
    )


def _segments(terms: Sequence[tuple[Term, float | None]]) -> list[Segment]:
    """Stack the shares; one below zero takes no room, and nothing reaches beyond all."""
    segments = []
    end = 0.0
    for term, ratio in terms:
        start, end = end, min(end + max(ratio or 0.0, 0.0), 1.0)
        if end > start:
            title = f"{term.name} {format_ratio(ratio)}"
            segments.append(
                Segment(term.key, f"{100 * start:.3f}%", f"{100 * (end - start):.3f}%", title)
            )
    return segments


def findings_of(report: Report) -> list[Finding]:
    """List what was found, errors first."""
    return [
        Finding(found["severity"], found["title"], found["evidence"], found["advice"])
        for found in report.findings or ()
    ]


def _label(value: int | str | None) -> str:
    return UNKNOWN if value is None else str(value)
