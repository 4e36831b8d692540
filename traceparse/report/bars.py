"""Spans as rows of numbers and stacked bars on one scale, for the pictures of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from traceparse.rank import Times
from traceparse.report.words import NOT_SPLIT, PARTS, RARE, term_of
from traceparse.units import format_ms, format_percent

__all__ = [
    "SPLIT",
    "Amount",
    "Bar",
    "Scale",
    "Segment",
    "Tick",
    "bar_of",
    "parts_of",
    "stacked",
]

# exposed communication in a bar: what the device worked first, then what it spent on others
SPLIT: Final = ("exposed_transfer", "exposed_wait", "pipeline_wait", NOT_SPLIT)


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
class Tick:
    """A line across a picture, and the milliseconds that it stands for."""

    x: str
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """How long the full width of a picture is, and how finely its times are written."""

    full_ns: int
    decimals: int

    def percent(self, ns: int) -> str:
        """Return a place in the picture, to a thousandth of a percent."""
        thousandths = 100_000 * ns // max(self.full_ns, 1)
        return f"{thousandths // 1000}.{thousandths % 1000:03}%"


def bar_of(times: Times, scale: Scale, communication: Mapping[str, int] | None = None) -> Bar:
    """Write one span out, and stack its parts, which add up to it."""
    return stacked(parts_of(times, communication), times.span_ns, scale)


def parts_of(
    times: Times, communication: Mapping[str, int] | None = None
) -> list[tuple[str, str, int]]:
    """List key, name and time of the parts of a span; exposed comm by what it was, if known."""
    parts = [(part.key, part.name, part.of(times)) for part in PARTS]
    if communication is None:
        return parts
    known = [
        (name, term_of(name).name, communication[name])
        for name in SPLIT
        if communication[name] or name not in RARE
    ]
    place = [part.key for part in PARTS].index("exposed_comm")
    return [*parts[:place], *known, *parts[place + 1 :]]


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
