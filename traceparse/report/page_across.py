"""The section of the page that says what ranks did together, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceparse.report.across import (
    CollectiveRow,
    clock_line,
    communication_of,
    is_split,
    last_in,
    link_line,
    loss_lines,
    rows_of,
    waited_for,
    why_not_split,
)
from traceparse.report.bars import Bar, Scale, Tick, stacked
from traceparse.report.choose import choose_devices
from traceparse.report.words import RARE, Term, term_of
from traceparse.run import DeviceReport, Report
from traceparse.units import UNKNOWN, format_count, format_ms, ms_decimals

__all__ = ["Across", "CommunicationRow", "across_of"]

_MAX_DEVICES = 64
_MAX_COLLECTIVES = 24


@dataclass(frozen=True, slots=True)
class CommunicationRow:
    """What exposed communication of one device was, and how its clock goes."""

    rank: str
    device: str
    bar: Bar
    last: str
    offset: str
    drift: str


@dataclass(frozen=True, slots=True)
class Across:
    """All that the section shows; ``unknown`` says why waiting is not told from transfer."""

    unknown: str
    lines: Sequence[str]
    terms: Sequence[Term]
    rows: Sequence[CommunicationRow]
    left: int
    ticks: Sequence[Tick]
    collectives: Sequence[CollectiveRow]
    collectives_left: int
    link: str


def across_of(report: Report) -> Across | None:
    """Lay the section out; there is none where nothing communicated."""
    found = report.collectives
    if not found:
        return None
    known = [
        (device, parts) for device in report.devices if (parts := communication_of(device))
    ]
    shown = choose_devices([device for device, _ in known], _MAX_DEVICES)
    sums = [communication_of(device) or {} for device in shown]
    terms = [name for name in _names(sums) if name not in RARE or any(s[name] for s in sums)]
    longest = max((sum(parts.values()) for parts in sums), default=0)
    scale = Scale(longest, ms_decimals(longest))
    collectives = rows_of(found, _MAX_COLLECTIVES)
    return Across(
        unknown="" if is_split(report) else why_not_split(report),
        lines=_lines(report) if is_split(report) else (),
        terms=[term_of(name) for name in terms],
        rows=[
            _row(report, device, {name: parts[name] for name in terms}, scale)
            for device, parts in zip(shown, sums, strict=True)
        ],
        left=len(known) - len(shown),
        ticks=scale.ticks(),
        collectives=collectives,
        collectives_left=len(found) - len(collectives),
        link=link_line(report) or "",
    )


def _names(sums: Sequence[Mapping[str, int]]) -> list[str]:
    return list(dict.fromkeys(name for parts in sums for name in parts))


def _lines(report: Report) -> list[str]:
    who = waited_for(report)
    return [clock_line(report), *loss_lines(report), *([f"Waited for: {who}"] if who else [])]


def _row(
    report: Report, device: DeviceReport, parts: Mapping[str, int], scale: Scale
) -> CommunicationRow:
    rank = UNKNOWN if device.rank is None else str(device.rank)
    span_ns = sum(step.times.span_ns for step in device.steps if step.times)
    clock: Mapping[str, Any] = report.clock or {}
    offsets: Mapping[str, int] = clock.get("offsets_ns") or {}
    drift = (clock.get("drift_ppm") or {}).get(rank)
    furthest = max(map(abs, offsets.values()), default=0)
    bar = stacked(
        [(name, term_of(name).name, ns) for name, ns in parts.items()], span_ns, scale
    )
    return CommunicationRow(
        rank=rank,
        device=str(device.device),
        bar=bar,
        last=format_count(last_in(report).get(rank, 0)),
        offset=format_ms(offsets.get(rank), ms_decimals(furthest)),
        drift=UNKNOWN if drift is None else f"{drift:,.1f}" if drift else "0",
    )
