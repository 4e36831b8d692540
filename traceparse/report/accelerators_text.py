"""The table of peaks in a terminal: a line an accelerator, or all that is known of a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table

from traceparse.report.lines import as_text, natural_width, say
from traceparse.units import UNKNOWN, format_ratio
from traceparse.work import DTYPES, Accelerator, Dtype
from traceparse.work.accelerators import Measured

__all__ = ["render_entries", "render_table"]

_COLUMNS: tuple[Dtype, ...] = ("bf16", "fp16", "fp8", "fp32")
_NO_PEAK = "*"

CONVENTION = (
    "dense, with fp32 accumulation, of one device as torch sees it, at the vendor's boost clock"
)


def render_table(entries: Sequence[Accelerator], console: Console) -> None:
    """Print one line for each accelerator; names only where there is room for them."""
    say(console, f"Peaks in TFLOP/s: {CONVENTION}", "bold")
    table = _table(entries, console, gap=2, named=True)
    if console.is_terminal and natural_width(table, console) > console.width:
        table = _table(entries, console, gap=1, named=False)
    table.width = natural_width(table, console)
    console.print(table, crop=False)
    if any(entry.needs_user_override for entry in entries):
        say(console, f"{_NO_PEAK} no default peak, as no source can be trusted", "dim")
    say(console, f"{UNKNOWN} unsupported or unknown", "dim")
    say(console, "`traceparse accelerators ID` explains one, with its sources", "dim")


def render_entries(entries: Sequence[Accelerator], console: Console) -> None:
    """Print all numbers of some accelerators, with units, sources and doubts."""
    for number, entry in enumerate(entries):
        if number:
            console.print()
        say(console, ", ".join(entry.names), lead=f"{entry.id}:", lead_style="bold")
        for title, lines in _sections(entry):
            _section(console, title, lines)


def _table(entries: Sequence[Accelerator], console: Console, *, gap: int, named: bool) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    numbers = ("GB", "GB/s", *_COLUMNS)
    for title in ("id", *numbers, "confidence", *(["names"] if named else [])):
        justify: Literal["left", "right"] = "right" if title in numbers else "left"
        table.add_column(title, justify=justify, no_wrap=True, header_style="bold")
    for entry in entries:
        peaks = [entry.dense_tflop_per_s.get(dtype) for dtype in _COLUMNS]
        figures: list[Sequence[float]] = [entry.memory_gb, entry.hbm_gb_per_s]
        figures += [[peak] if peak else [] for peak in peaks]
        cells = [
            entry.id + _NO_PEAK * entry.needs_user_override,
            *("/".join(f"{figure:g}" for figure in some) or UNKNOWN for some in figures),
            entry.confidence,
            *([", ".join(entry.names)] if named else []),
        ]
        table.add_row(*(as_text(console, cell) for cell in cells))
    return table


def _sections(entry: Accelerator) -> Iterator[tuple[str, list[str]]]:
    """Yield what there is to say of an accelerator: titles, and lines below each."""
    yield "recognized by", _recognition(entry)
    yield "memory", _memory(entry)
    yield "link", _link(entry)
    yield f"peaks, {CONVENTION}", [_peak(entry, dtype) for dtype in entry.dense_tflop_per_s]
    yield "with fp16 accumulation (never used as a peak)", _accumulated(entry)
    yield "16-bit peak checked against", _formula(entry)
    yield "matrix products, as fast as they were measured", _measured(entry)
    yield "confidence", [entry.confidence]
    yield "doubts", _doubts(entry)
    yield "sources", entry.sources
    yield "notes", entry.notes


def _recognition(entry: Accelerator) -> list[str]:
    lines = ["the names above" + (f", or the pattern {entry.pattern}" if entry.pattern else "")]
    if entry.not_pattern:
        lines[0] += f" without {entry.not_pattern}"
    if entry.compute_capability and entry.warp_size and entry.sm_count:
        lines.append(
            f"compute capability {entry.compute_capability}, warp size {entry.warp_size}, "
            f"{entry.sm_count} SMs and {_any_of(entry.memory_gb)} GB together"
        )
    return lines


def _memory(entry: Accelerator) -> list[str]:
    told = ((entry.memory_gb, "GB"), (entry.hbm_gb_per_s, "GB/s"))
    return [", ".join(f"{_any_of(some)} {unit}" for some, unit in told if some) or "unknown"]


def _link(entry: Accelerator) -> list[str]:
    link = entry.link
    if link is None:
        return ["none known"]
    rate = link.gb_per_s_per_direction
    if rate is None:
        return [f"{link.kind}, bandwidth unknown"]
    return [
        f"{link.kind}, {_number(rate)} GB/s in each direction: compare busbw with that; "
        f"vendors quote {_number(2 * rate)}, both together"
    ]


def _peak(entry: Accelerator, dtype: Dtype) -> str:
    unit = "TOP/s" if dtype == "int8" else "TFLOP/s"
    return f"{dtype:11} {_number(entry.dense_tflop_per_s[dtype]):>8} {unit}"


def _accumulated(entry: Accelerator) -> list[str]:
    rates = entry.fp16_accumulate_tflop_per_s
    return [f"{dtype:11} {_number(rate):>8} TFLOP/s" for dtype, rate in rates.items()]


def _formula(entry: Accelerator) -> list[str]:
    if entry.formula is None or entry.sm_count is None:
        return []
    clock, width = entry.formula.clock_mhz, entry.formula.flop_per_clock_per_sm
    product = f"{entry.sm_count} SMs x {clock:,} MHz x {width:,} FLOP per clock and SM"
    return [f"{product} = {_number(entry.sm_count * clock * width / 1e6)} TFLOP/s"]


def _measured(entry: Accelerator) -> list[str]:
    return [_measurement(entry, measured) for measured in entry.measured]


def _measurement(entry: Accelerator, measured: Measured) -> str:
    peak = entry.dense_tflop_per_s.get(measured.dtype)
    share = f" ({format_ratio(measured.tflop_per_s / peak)} of the peak)" if peak else ""
    torch = f"torch {measured.torch}" if measured.torch else None
    where = [text for text in (measured.shape, torch, measured.source, measured.note) if text]
    use = "" if measured.is_ceiling else "; not the ceiling of --ceiling mamf"
    rate = f"{measured.dtype:11} {_number(measured.tflop_per_s):>8} TFLOP/s{share}"
    return f"{rate}: {', '.join(where)}{use}"


def _doubts(entry: Accelerator) -> list[str]:
    lines = []
    if entry.needs_user_override:
        lines.append("no default peak, as no source can be trusted: HFU and MFU stay unknown")
    if entry.device_is != "device":
        lines.append(f"a device is a {entry.device_is}: figures of whole cards are twice these")
    if missing := [dtype for dtype in DTYPES if dtype not in entry.dense_tflop_per_s]:
        lines.append(f"unsupported or unknown: {', '.join(missing)}")
    if recalled := [text for text in entry.sources if text.startswith("recalled:")]:
        lines.append(
            f"{len(recalled)} of {len(entry.sources)} sources from memory, not read again"
        )
    return lines


def _section(console: Console, title: str, lines: Sequence[str]) -> None:
    if len(lines) == 1:
        say(console, lines[0].lstrip(), lead=f"{title}:", lead_style="dim", indent=2)
        return
    if lines:
        say(console, title, "dim", indent=2)
    for line in lines:
        say(console, line, indent=4)


def _any_of(values: Sequence[float]) -> str:
    """Write the numbers that a part of this name may have."""
    return " or ".join(map(_number, values))


def _number(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")
