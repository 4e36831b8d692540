"""Spans as rows of numbers and stacked bars on one scale, for the pictures of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, pairwise

from traceparse.rank import Times
from traceparse.report.choose import StepRow
from traceparse.report.words import PARTS
from traceparse.run import DeviceReport
from traceparse.units import UNKNOWN, format_count, format_ms, format_percent

__all__ = [
    "Amount",
    "Bar",
    "Picture",
    "Row",
    "Scale",
    "Segment",
    "Tick",
    "bar_of",
    "device_picture",
    "stacked",
    "step_picture",
]

_MAX_TICKS = 6


@dataclass(frozen=True, slots=True)
class Amount:
    """A part of a span, in ms and in percent of it."""

    key: str
    name: str
    ms: str
    percent: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a bar, in percent of the picture's width."""

    key: str
    x: str
    width: str
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A span in numbers, as a stack of its parts, and in one sentence."""

    span: str
    amounts: Sequence[Amount]
    segments: Sequence[Segment]
    spoken: str


@dataclass(frozen=True, slots=True)
class Row:
    """One span of one device. A step that did no device work has no bar."""

    rank: str
    device: str
    bar: Bar | None
    step: str = UNKNOWN
    step_name: str = ""
    open_ended: bool = False
    opens_group: bool = False
    details: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Tick:
    """A line across a picture, and the milliseconds that it stands for."""

    x: str
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Bars on one scale, and how many rows there was no room for."""

    rows: Sequence[Row]
    ticks: Sequence[Tick]
    left: int


@dataclass(frozen=True, slots=True)
class Scale:
    """How long the full width of a picture is, and how finely its times are written."""

    full_ns: int
    decimals: int

    def percent(self, ns: int) -> str:
        """Return a place in the picture, to a thousandth of a percent."""
        thousandths = 100_000 * ns // max(self.full_ns, 1)
        return f"{thousandths // 1000}.{thousandths % 1000:03}%"

    def ticks(self) -> list[Tick]:
        """Divide the picture at round times, into six parts at most."""
        step = _round_up(max(-(-self.full_ns // _MAX_TICKS), 1))
        return [
            Tick(self.percent(ns), f"{Decimal(ns) / 1_000_000:,f}")
            for ns in range(0, self.full_ns + 1, step)
        ]


def device_picture(shown: Sequence[DeviceReport], scale: Scale, *, left: int) -> Picture:
    """Draw the whole window of each device."""
    rows = [
        Row(
            _label(d.rank),
            _label(d.device),
            bar_of(d.window, scale),
            details=_details(d, scale),
        )
        for d in shown
    ]
    return Picture(rows, scale.ticks(), left)


def step_picture(steps: Sequence[StepRow], scale: Scale, *, left: int) -> Picture:
    """Draw each step on each device, the devices of one step together."""
    rows: list[Row] = []
    for device, step in steps:
        label = _label(step.step)
        rows.append(
            Row(
                _label(device.rank),
                _label(device.device),
                bar_of(step.times, scale) if step.times else None,
                step=label,
                step_name=step.name or "",
                open_ended=step.open_ended,
                opens_group=not rows or rows[-1].step != label,
            )
        )
    return Picture(rows, scale.ticks(), left)


def bar_of(times: Times, scale: Scale) -> Bar:
    """Write one span out, and stack its parts, which add up to it."""
    parts = [(part.key, part.name, part.of(times)) for part in PARTS]
    return stacked(parts, times.span_ns, scale)


def stacked(parts: Sequence[tuple[str, str, int]], whole_ns: int, scale: Scale) -> Bar:
    """Stack parts: keys, names, times. Each ends exactly where the next one starts.

    The percentages are of ``whole_ns``, which may be more than the parts add up to.
    """
    amounts = [
        Amount(key, name, format_ms(ns, scale.decimals), format_percent(ns, whole_ns))
        for key, name, ns in parts
    ]
    ends = accumulate((ns for _, _, ns in parts), initial=0)
    segments = [
        Segment(amount.key, scale.percent(start), scale.percent(end - start), _sentence(amount))
        for amount, (start, end) in zip(amounts, pairwise(ends), strict=True)
        if end > start
    ]
    span = format_ms(sum(ns for _, _, ns in parts), scale.decimals)
    return Bar(span, amounts, segments, f"{span} ms: {', '.join(map(_sentence, amounts))}")


def _sentence(amount: Amount) -> str:
    return f"{amount.name} {amount.ms} ms ({amount.percent})"


def _details(device: DeviceReport, scale: Scale) -> list[str]:
    times, kernels = device.window, device.kernels
    return [
        format_ms(times.comm_ns, scale.decimals),
        format_ms(times.overlap_ns, scale.decimals),
        format_count(kernels.count),
        format_count(kernels.unlinked_count),
    ]


def _label(value: int | str | None) -> str:
    return UNKNOWN if value is None else str(value)


def _round_up(ns: int) -> int:
    """Return the next number of the form 1, 2 or 5 times a power of ten."""
    power: int = 10 ** (len(str(ns)) - 1)
    return min(factor * power for factor in (1, 2, 5, 10) if factor * power >= ns)
