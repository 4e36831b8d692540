"""Numbers as people write them: milliseconds, megabytes, percent, ranks.

Only whole numbers go in, wherever there is a choice, so that nothing is rounded twice. What is
unknown (``None``) is an en dash, never 0; exactly nothing is ``0``, so that ``0.0`` always
means "a little".
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "UNKNOWN",
    "PerSteps",
    "format_amount",
    "format_bytes",
    "format_count",
    "format_duration",
    "format_figure",
    "format_flop_per_s",
    "format_ms",
    "format_ns",
    "format_number_of",
    "format_percent",
    "format_ranges",
    "format_ratio",
    "format_size",
    "format_tflop",
    "format_usd",
    "ms_decimals",
    "num_in_ranges",
    "number_ranges",
    "parse_ranges",
    "parse_runs",
    "per_steps",
    "rank_ranges",
]

UNKNOWN = "\N{EN DASH}"
_NS_PER_MS = 1_000_000
_BYTES_PER_MB = 1_000_000
_RANGES_WIDTH = 80
_TERA = 1e12
_RANGES = re.compile(r"\d{1,7}(?:-\d{1,7})?(?:,\d{1,7}(?:-\d{1,7})?)*", re.ASCII)
_MOST_RANKS = 1 << 20  # more than anybody has


def ms_decimals(largest_ns: int) -> int:
    """How many decimals of a millisecond do times up to this one deserve?

    A table asks once, with its largest span, so that all its numbers line up.
    """
    if largest_ns < 100_000:
        return 6
    return 3 if largest_ns < 100 * _NS_PER_MS else 1


def format_ms(ns: int | None, decimals: int = 1) -> str:
    """Write nanoseconds in milliseconds, without the unit: ``1,282.7``."""
    return UNKNOWN if ns is None else _fixed(ns, _NS_PER_MS, decimals)


def format_ns(ns: int | None) -> str:
    """Write nanoseconds in milliseconds, for running text: ``1,282.7 ms``."""
    if ns is None:
        return UNKNOWN
    return f"{format_ms(ns, ms_decimals(abs(ns)))} ms"


def format_duration(ns: int) -> str:
    """Write a time that may be of any size: ``20 ns``, ``0.5 us``, ``1.3 ms``, ``2.1 s``."""
    for unit, unit_ns in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 100)):
        if ns >= unit_ns:
            return f"{ns / max(unit_ns, 1000):,.1f} {unit}"
    return f"{ns} ns" if ns else "0"


def format_bytes(count: int | None) -> str:
    """Write a number of bytes in decimal megabytes: ``523.4 MB``, ``0.012 MB``."""
    if count is None:
        return UNKNOWN
    return f"{_fixed(count, _BYTES_PER_MB, 1 if count >= 10 * _BYTES_PER_MB else 3)} MB"


def format_size(count: int | None) -> str:
    """Write bytes with one to three digits before the point: ``4 B``, ``24.6 kB``."""
    if count is None:
        return UNKNOWN
    if count < 1000:
        return f"{count} B"
    size, units = count / 1000, iter(("kB", "MB", "GB"))
    unit = next(units)
    while size >= 999.95 and (larger := next(units, None)):
        size, unit = size / 1000, larger
    return f"{size:,.1f} {unit}"


def format_count(count: int | None) -> str:
    """Write a count with its thousands apart: ``1,234``."""
    return UNKNOWN if count is None else f"{count:,}"


def format_amount(count: int) -> str:
    """Write a count that may be of any size: ``4,096``, ``0.5 M``, ``8.0 B``, ``1.2 T``."""
    for unit, one in (("T", 10**12), ("B", 10**9), ("M", 10**6)):
        # so that 999,960,000 is not 1,000.0 M
        if count >= (one - one // 20_000 if unit != "M" else one // 10):
            return f"{_fixed(count, one, 1)} {unit}"
    return f"{count:,}"


def format_figure(value: float) -> str:
    """Write a number with four digits, or all before the point: ``0.1869``, ``190,272``."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def format_number_of(count: int, what: str) -> str:
    """Write a count and what is counted: ``1 rank``, ``1,024 ranks``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def format_percent(part: int | None, whole: int | None) -> str:
    """Write a share in percent: ``12.3%``. A share of nothing is unknown."""
    if part is None or not whole:
        return UNKNOWN
    return f"{_fixed(100 * part, whole, 1)}%"


def format_ratio(ratio: float | None) -> str:
    """Write a ratio in percent: ``12.3%``, never ``-0.0%``."""
    if ratio is None:
        return UNKNOWN
    return f"{100 * ratio:z,.1f}%" if ratio else "0%"


def format_tflop(flop: float | None) -> str:
    """Write FLOP, or FLOP/s, in units of 10^12, without the unit: ``989.4``, ``0.012``."""
    if flop is None:
        return UNKNOWN
    tera = flop / _TERA
    if not tera:
        return "0"
    return f"{tera:,.{1 if tera >= 10 else 3 if tera >= 0.01 else 6}f}"


def format_flop_per_s(rate: float | None) -> str:
    """Write a rate in TFLOP/s: ``989.4 TFLOP/s``."""
    return UNKNOWN if rate is None else f"{format_tflop(rate)} TFLOP/s"


def format_usd(usd: float | None) -> str:
    """Write an amount of money, cents and below where they matter: ``$1,234.50``."""
    if usd is None:
        return UNKNOWN
    if not usd:
        return "$0"
    # of tiny amounts the first two digits, however far behind the point
    tiny = 1 - math.floor(math.log10(abs(usd)))
    return f"${usd:,.{2 if usd >= 1 else 3 if usd >= 0.01 else tiny}f}"


class PerSteps(NamedTuple):
    """In how many steps amounts of money are told, and what that is called."""

    num_steps: int
    words: str

    def text(self, usd_per_step: float | None) -> str:
        """Write an amount that a step costs: ``$1.25 a step``, ``$3.40 a million steps``."""
        return f"{format_usd(self.amount(usd_per_step))} {self.words}"

    def amount(self, usd_per_step: float | None) -> float | None:
        """Return what so many steps cost."""
        return None if usd_per_step is None else usd_per_step * self.num_steps


def per_steps(usd_per_step: float | None) -> PerSteps:
    """Return of how many steps to tell costs, so that those of all of a step are a dollar."""
    for found in (PerSteps(1, "a step"), PerSteps(1000, "a thousand steps")):
        if not usd_per_step or usd_per_step * found.num_steps >= 1:
            return found
    return PerSteps(1_000_000, "a million steps")


def rank_ranges(ranks: Sequence[int]) -> str:
    """Write sorted ranks compactly: ``0-2, 5``; what exceeds 80 characters is only counted."""
    return number_ranges(_runs(ranks))


def number_ranges(runs: Sequence[range]) -> str:
    """Write runs of numbers, as :func:`rank_ranges` does, without counting through them."""
    text = ", ".join(map(_run_text, runs))
    if len(text) <= _RANGES_WIDTH:
        return text or "none"

    def first(num: int) -> str:
        left = sum(map(len, runs[num:]))
        return ", ".join([*map(_run_text, runs[:num]), f"... and {left:,} more"])

    most = min(len(runs), _RANGES_WIDTH)
    return next(first(num) for num in range(most, -1, -1) if len(first(num)) <= _RANGES_WIDTH)


def format_ranges(ranks: Sequence[int]) -> str:
    """Write sorted ranks in full, for programs: ``0-2,5``; :func:`parse_ranges` reads it."""
    return ",".join(map(_run_text, _runs(ranks)))


def parse_ranges(text: str) -> tuple[int, ...]:
    """Read what :func:`format_ranges` writes, and nothing else.

    Raises
    ------
    ValueError
        It does not: ranks are out of order or twice, or above what anybody has.
    """
    return tuple(rank for run in parse_runs(text) for rank in run)


def parse_runs(text: str) -> tuple[range, ...]:
    """Read what :func:`format_ranges` writes as runs, without counting through them.

    Raises
    ------
    ValueError
        As :func:`parse_ranges`.
    """
    runs = [*map(_run_of, text.split(","))] if _RANGES.fullmatch(text) else []
    # runs that touch would be written as one
    ends = [-2, *(run[-1] if run else -2 for run in runs)]
    in_order = all(run and run.start > end + 1 for run, end in zip(runs, ends, strict=False))
    if runs and in_order and ends[-1] < _MOST_RANKS and ",".join(map(_run_text, runs)) == text:
        return tuple(runs)
    raise ValueError(f"{text[:40]!r}: no ascending ranges of ranks, such as 0-2,5")


def num_in_ranges(text: str) -> int:
    """How many ranks are in what :func:`format_ranges` has written?"""
    return sum(len(_run_of(run)) for run in text.split(","))


def _run_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _fixed(numerator: int, denominator: int, decimals: int) -> str:
    """Write a quotient with so many decimals, rounded half up in whole numbers."""
    if not numerator:
        return "0"
    unit = 10**decimals
    scaled = (2 * abs(numerator) * unit + denominator) // (2 * denominator)
    whole, rest = divmod(scaled, unit)
    return f"{'-' if numerator < 0 else ''}{whole:,}.{rest:0{decimals}}"


def _runs(ranks: Sequence[int]) -> list[range]:
    runs: list[range] = []
    for rank in ranks:
        if runs and rank == runs[-1].stop:
            runs[-1] = range(runs[-1].start, rank + 1)
        else:
            runs.append(range(rank, rank + 1))
    return runs


def _run_text(run: range) -> str:
    return f"{run.start}" if len(run) == 1 else f"{run.start}-{run[-1]}"
