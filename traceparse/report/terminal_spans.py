"""Spans of devices and of steps in a terminal: numbers, and bars where there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceparse.rank import Times
from traceparse.report.choose import StepRow, choose_devices, steps_in_order
from traceparse.report.lines import as_text, natural_width, say
from traceparse.report.safe import encodable, visible
from traceparse.report.words import OPEN_ENDED, PARTS
from traceparse.run import DeviceReport
from traceparse.units import UNKNOWN, format_ms, format_number_of, format_percent

__all__ = ["print_devices", "print_steps"]

_MAX_ROWS = 16
_SHORTEST_BAR = 10
_LONGEST_BAR = 32
_NAME_LIMIT = 24


@dataclass(frozen=True, slots=True)
class _Row:
    """What leads a line of a table, and the span that it is about."""

    labels: Sequence[str]
    times: Times | None


@dataclass(frozen=True, slots=True)
class _Layout:
    """How much of a table there is room for."""

    gap: int
    milliseconds: bool = True
    bar: int = 0


_LAYOUTS = (
    _Layout(gap=2, bar=_SHORTEST_BAR),
    _Layout(gap=2),
    _Layout(gap=1),
    _Layout(gap=1, milliseconds=False, bar=_SHORTEST_BAR),
    _Layout(gap=1, milliseconds=False),
)


def print_devices(
    devices: Sequence[DeviceReport], console: Console, decimals: int, *, most: int = _MAX_ROWS
) -> None:
    """Print the whole window of each device, or of those that matter where there are more."""
    shown = choose_devices(devices, most)
    rows = [_Row([_label(d.rank), _label(d.device)], d.window) for d in shown]
    _heading(console, "Ranks", "the whole window of each device")
    _print_table(console, ["rank", "device"], rows, decimals)
    if left := len(devices) - len(shown):
        say(
            console,
            f"… {format_number_of(left, 'more row')} in report.json; "
            "these are the first, and those with the largest shares of exposed comm and idle",
            "dim",
        )


def print_steps(devices: Sequence[DeviceReport], console: Console, decimals: int) -> None:
    """Print each step on each device; nothing where there are no step markers."""
    steps = steps_in_order(devices)
    if all(row.step.step is None for row in steps):
        return
    several = len({device.rank for device in devices}) < len(devices)
    names = ["step", "rank", "device"] if several else ["step", "rank"]
    shown = steps[:_MAX_ROWS]
    rows = [_Row(_step_labels(row)[: len(names)], row.step.times) for row in shown]
    _heading(console, "Steps", "each step on each device")
    _print_table(console, names, rows, decimals)
    if any(row.step.open_ended for row in shown):
        say(console, f"* {OPEN_ENDED}", "dim")
    if left := len(steps) - len(shown):
        say(console, f"… {format_number_of(left, 'more row')} in report.json", "dim")


def _step_labels(row: StepRow) -> list[str]:
    mark = "*" if row.step.open_ended else ""
    return [_label(row.step.step) + mark, _label(row.device.rank), _label(row.device.device)]


def _label(value: int | str | None) -> str:
    return UNKNOWN if value is None else visible(str(value), _NAME_LIMIT)


def _heading(console: Console, title: str, of_what: str) -> None:
    console.print()
    say(console, f" {of_what}: ms, and % of its span", lead=title, lead_style="bold")


def _print_table(
    console: Console, names: Sequence[str], rows: Sequence[_Row], decimals: int
) -> None:
    """Print the roomiest layout that fits; if none does, the terminal wraps it, uncut."""

    def build(layout: _Layout) -> Table:
        return _table(console, names, rows, decimals, layout)

    table, width = _fit(build, console)
    table.width = width
    console.print(table, crop=False)


def _fit(build: Callable[[_Layout], Table], console: Console) -> tuple[Table, int]:
    def width(layout: _Layout) -> int:
        return natural_width(build(layout), console)

    fitting = (layout for layout in _LAYOUTS if width(layout) <= console.width)
    layout = next(fitting, _LAYOUTS[-1])
    if layout.bar:
        spare = console.width - width(layout)
        layout = replace(layout, bar=min(layout.bar + spare, _LONGEST_BAR))
    table = build(layout)
    return table, natural_width(table, console)


def _table(
    console: Console,
    names: Sequence[str],
    rows: Sequence[_Row],
    decimals: int,
    layout: _Layout,
) -> Table:
    table = Table(box=None, padding=(0, layout.gap, 0, 0), pad_edge=False)
    for name in (*names, "span"):
        table.add_column(Text(name), justify="right", no_wrap=True, header_style="bold")
    for part in PARTS:
        header = f"{part.glyph} {part.name}" if layout.bar else part.name
        style = f"bold {part.style}" if part.style != "dim" else part.style
        table.add_column(as_text(console, header, style), justify="right", no_wrap=True)
    if layout.bar:
        table.add_column("", no_wrap=True)
    percents = _percents(rows)
    width = max((len(text) for line in percents for text in line), default=0)
    for row, line in zip(rows, percents, strict=True):
        padded = [text.rjust(width) for text in line]
        table.add_row(*_cells(console, row, padded, decimals, layout))
    return table


def _percents(rows: Iterable[_Row]) -> list[list[str]]:
    return [
        [format_percent(part.of(row.times), row.times.span_ns) for part in PARTS]
        if row.times
        else []
        for row in rows
    ]


def _cells(
    console: Console, row: _Row, percents: Sequence[str], decimals: int, layout: _Layout
) -> list[Text]:
    labels = [as_text(console, label) for label in row.labels]
    times = row.times
    if times is None:
        unknown = [as_text(console, UNKNOWN, "dim") for _ in PARTS]
        return [*labels, unknown[0], Text("no device work", "dim"), *unknown[1:]]
    texts = [
        f"{format_ms(part.of(times), decimals)} {percent}" if layout.milliseconds else percent
        for part, percent in zip(PARTS, percents, strict=True)
    ]
    cells = [*labels, Text(format_ms(times.span_ns, decimals))]
    cells += [as_text(console, text) for text in texts]
    if layout.bar:
        cells.append(_bar(console, times, layout.bar))
    return cells


def _bar(console: Console, times: Times, width: int) -> Text:
    bar = Text()
    sums = accumulate((part.of(times) for part in PARTS), initial=0)
    ends = [
        (2 * width * total + times.span_ns) // (2 * max(times.span_ns, 1)) for total in sums
    ]
    for part, (start, end) in zip(PARTS, pairwise(ends), strict=True):
        bar.append(encodable(part.glyph, console.encoding) * (end - start), part.style)
    return bar
