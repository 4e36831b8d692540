"""Ranks by steps on the page, as plain data: a picture of who is behind, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from traceparse.report.across import last_in
from traceparse.report.bars import SPLIT, Bar, Scale, bar_of
from traceparse.report.cells import AnyCell, Cell, Column, Picture, Table, Words, count, ms
from traceparse.report.choose import Picked, quantile_indices
from traceparse.report.named import Flag, stragglers_of
from traceparse.report.words import PARTS, RARE, term_of
from traceparse.run import DeviceReport, Report, StepReport
from traceparse.units import UNKNOWN, format_number_of, ms_decimals

__all__ = [
    "StepMap",
    "StepMapRow",
    "Term",
    "own_steps",
    "rank_cell",
    "step_map",
    "step_table",
    "terms_in",
]

_MAX_COLUMNS = 8
_MAX_ROWS = 256
_DENSE = 16  # rows from which on they are lower


@dataclass(frozen=True, slots=True)
class Term:
    """A color of the picture and its name; its definition has the same key."""

    key: str
    name: str


@dataclass(frozen=True, slots=True)
class StepMapRow:
    """One device through the steps; ``flag`` says why it is a straggler."""

    rank: Words
    flag: Flag | None
    why: str
    bars: Sequence[Bar | None]
    last: Cell
    last_width: str


@dataclass(frozen=True, slots=True)
class StepMap:
    """The picture: a row a device, a column a step, one scale; and what was left out of it."""

    terms: Sequence[Term]
    steps: Sequence[str]
    rows: Sequence[StepMapRow]
    merged: Sequence[str]
    is_dense: bool
    has_last: bool
    has_open_ended: bool


def step_map(report: Report, picked: Sequence[Picked]) -> StepMap:
    """Draw the picked devices through at most eight steps."""
    numbers, columns = _columns(report.devices)
    cells = [_steps_of(one.device, columns) for one in picked]
    longest = max((s.times.span_ns for row in cells for s in row if s and s.times), default=0)
    scale = Scale(longest, ms_decimals(longest))
    flags, lasts = stragglers_of(report), last_in(report)
    most = max(lasts.values(), default=0)
    several = len({one.device.rank for one in picked}) < len(picked)
    rows = [
        StepMapRow(
            rank=rank_cell(one.device, several=several),
            flag=flags.get(one.device.rank),
            why=one.why,
            bars=[_bar(step, scale) for step in row],
            last=count(lasts.get(str(one.device.rank), 0)),
            last_width=f"{100 * lasts.get(str(one.device.rank), 0) / max(most, 1):.1f}%",
        )
        for one, row in zip(picked, cells, strict=True)
    ]
    open_ended = {s.step for row in cells for s in row if s and s.open_ended}
    return StepMap(
        terms=terms_in(step for row in cells for step in row if step),
        steps=[
            "whole window"
            if step is None
            else f"step {step}{'*' if step in open_ended else ''}"
            for step in columns
        ],
        rows=rows,
        merged=[*_merged(report, picked, numbers, columns)],
        is_dense=len(rows) > _DENSE,
        has_last=most > 0,
        has_open_ended=bool(open_ended),
    )


def terms_in(steps: Iterator[StepReport]) -> list[Term]:
    """List what bars of these steps are made of, each color once."""
    known: list[bool] = []
    rare: set[str] = set()
    for step in steps:
        if step.times:
            known.append(step.communication_ns is not None)
            rare |= {name for name in RARE if (step.communication_ns or {}).get(name)}
    names: list[Term] = []
    for part in PARTS:
        if part.key != "exposed_comm" or not known or not all(known):
            names.append(Term(part.key, part.name))
        if part.key == "exposed_comm" and any(known):
            names += [
                Term(name, term_of(name).name)
                for name in SPLIT
                if name not in RARE or name in rare
            ]
    return names


def rank_cell(device: DeviceReport, *, several: bool = False) -> Words:
    """Name a device by its rank, with a link to what is known of that."""
    if device.rank is None:
        return Words("unknown rank", f"device {device.device}" if several else "")
    return Words(
        f"rank {device.rank}",
        f"device {device.device}" if several else "",
        href=f"#rank-{device.rank}",
        value=device.rank,
    )


def step_table(report: Report, picked: Sequence[Picked]) -> Table:
    """Write the steps of the picked devices, those of one step together."""
    found = [
        (one, place)
        for one in picked
        for place, step in enumerate(one.device.steps)
        if step.step is not None
    ]
    found.sort(key=lambda row: row[0].device.steps[row[1]].step or 0)
    total = sum(len(device.steps) for device in report.devices)
    shown = found[:_MAX_ROWS]
    return Table(
        key="steps-table",
        label="Every step of every rank shown",
        left=total - len(shown),
        what="device-step",
        **_written(shown, with_rank=True),
    )


def own_steps(one: Picked, limit: int) -> Table:
    """Write the steps of one device; where not all fit, the longest of them."""
    steps = one.device.steps
    by_length = sorted(range(len(steps)), key=lambda place: -_span_ns(steps[place]))
    shown = sorted(by_length[:limit])
    return Table(
        key=f"steps-of-{one.place}",
        label=f"Steps of {rank_cell(one.device).text}",
        left=len(steps) - len(shown),
        what="step",
        which="the longest are here",
        **_written([(one, place) for place in shown], with_rank=False),
    )


class _Written(TypedDict):
    columns: Sequence[Column]
    rows: Sequence[Sequence[AnyCell]]


def _written(shown: Sequence[tuple[Picked, int]], *, with_rank: bool) -> _Written:
    steps = [one.device.steps[place] for one, place in shown]
    longest = max(map(_span_ns, steps), default=0)
    scale = Scale(longest, ms_decimals(longest))
    terms = terms_in(iter(steps))
    devices = {(one.device.rank, one.device.device) for one, _ in shown}
    several = len({rank for rank, _ in devices}) < len(devices)
    return {
        "columns": [*_heads(terms, with_rank=with_rank)],
        "rows": [
            [
                _step_cell(step),
                *([rank_cell(one.device, several=several)] if with_rank else []),
                *_numbers(f"devices.{one.place}.steps.{place}", step, terms, scale),
            ]
            for (one, place), step in zip(shown, steps, strict=True)
        ],
    }


def _span_ns(step: StepReport) -> int:
    return step.times.span_ns if step.times else 0


def _heads(terms: Sequence[Term], *, with_rank: bool) -> Iterator[Column]:
    yield Column("step", "step", "text")
    if with_rank:
        yield Column("rank", "", "text")
    yield Column("parts", "", "picture")
    yield Column("span, ms", "span")
    for term in terms:
        yield Column(f"{term.name}, ms", term.key)


def _step_cell(step: StepReport) -> Words:
    text = UNKNOWN if step.step is None else f"{step.step}{'*' if step.open_ended else ''}"
    return Words(text, value=step.step)


def _numbers(
    path: str, step: StepReport, terms: Sequence[Term], scale: Scale
) -> Iterator[Cell | Picture]:
    yield Picture(_bar(step, scale))
    times, split = step.times, step.communication_ns
    yield ms(times.span_ns if times else None, scale.decimals, f"{path}.span_ns")
    parts = {part.key: part for part in PARTS}
    for term in terms:
        if term.key in parts:
            ns = parts[term.key].of(times) if times else None
            yield ms(ns, scale.decimals, f"{path}.{term.key}_ns")
        else:
            ns = None if split is None else split[term.key]
            known = f"{path}.communication_ns.{term.key}" if split is not None else ""
            yield ms(ns, scale.decimals, known)


def _bar(step: StepReport | None, scale: Scale) -> Bar | None:
    if step is None or step.times is None:
        return None
    return bar_of(step.times, scale, step.communication_ns)


def _columns(devices: Sequence[DeviceReport]) -> tuple[list[int], list[int | None]]:
    """Return all steps, and those to draw: the first, the last, and by their length."""
    spans: dict[int, int] = {}
    for device in devices:
        for step in device.steps:
            if step.step is not None:
                spans.setdefault(step.step, 0)
                spans[step.step] += step.times.span_ns if step.times else 0
    numbers = sorted(spans)
    if not numbers:
        return [], [None]
    if len(numbers) <= _MAX_COLUMNS:
        return numbers, list[int | None](numbers)
    by_length = sorted(numbers, key=lambda number: (spans[number], number))
    chosen = {by_length[place] for place in quantile_indices(len(by_length))}
    return numbers, list[int | None](sorted(chosen | {numbers[0], numbers[-1]}))


def _steps_of(device: DeviceReport, columns: Sequence[int | None]) -> list[StepReport | None]:
    own: Mapping[int | None, StepReport] = {step.step: step for step in device.steps}
    return [own.get(number) for number in columns]


def _merged(
    report: Report,
    picked: Sequence[Picked],
    numbers: Sequence[int],
    columns: Sequence[int | None],
) -> Iterator[str]:
    if len(picked) < len(report.devices):
        yield (
            f"{len(picked)} of {format_number_of(len(report.devices), 'device')} stand for "
            "all: those that findings name, the least, the quartiles and the most of the "
            "window and of its compute, exposed comm and idle, and outliers (1.5 interquartile "
            "ranges beyond quartiles)"
        )
    if len(columns) < len(numbers):
        yield (
            f"{len(columns)} of {format_number_of(len(numbers), 'step')} are drawn: the first, "
            "the last, the shortest, the quartiles and the longest"
        )
