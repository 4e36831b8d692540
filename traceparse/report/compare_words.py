"""What a comparison says, in sentences and rows of text: what a terminal and a page show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from traceparse.report.safe import visible
from traceparse.report.words import DTYPES, term_of
from traceparse.run import Comparison
from traceparse.run.compare import SideSummary
from traceparse.units import (
    UNKNOWN,
    PerSteps,
    format_bytes,
    format_figure,
    format_ms,
    format_number_of,
    format_ratio,
    ms_decimals,
    per_steps,
    rank_ranges,
)

__all__ = [
    "CHANGES",
    "Row",
    "TermRow",
    "collective_rows",
    "operator_rows",
    "reasons",
    "side_lines",
    "term_rows",
    "verdict",
]

CHANGES: Final = {
    "appeared": "new",
    "disappeared": "gone",
    "reshaped": "other shapes",
    "renamed": "other kernel",
    "changed": "",
    "same": "",
}
_LONGEST_NAME: Final = 72
_MATTERS: Final = 0.005  # of a step: what is less is not shown
_STRUCTURAL: Final = frozenset({"appeared", "disappeared", "reshaped", "renamed"})
_MARKS: Final = {True: "yes", False: "no", None: UNKNOWN}


@dataclass(frozen=True, slots=True)
class TermRow:
    """One term, or the step, on both sides; times are in milliseconds."""

    name: str
    base: str
    new: str
    delta: str
    share: str
    is_significant: str


@dataclass(frozen=True, slots=True)
class Row:
    """An operator or a collective that changed: how much, what it is, and how it changed."""

    delta: str
    share: str
    name: str
    change: str
    details: tuple[str, ...]


def verdict(found: Comparison) -> str:
    """Say whether a step takes longer, and whether that is more than chance."""
    step, places = found.step_ns, _places(found)
    before, after = (f"{format_ms(step[side], places)} ms" for side in ("base", "new"))
    change = f"{_signed(step['delta'], places)} ms"
    if step["interval"] is not None:
        low, high = (_signed(bound, places) for bound in step["interval"])
        change += f", 95% interval {low} to {high} ms"
    if found.verdict in ("slower", "faster"):
        share = format_ratio(abs(step["ratio"]))
        start = f"{found.verdict.capitalize()} by {share}"
        return f"{start}: a mean step takes {after} instead of {before} ({change})"
    if found.verdict == "no difference":
        if not step["delta"] and _is_all_zero(found):
            return f"No difference: a mean step takes {after} on both sides, term by term"
        takes = f"{after} on both sides" if before == after else f"{after}, before {before}"
        return f"No difference: a mean step takes {takes} ({change})"
    if found.verdict == "shifted":
        return (
            f"No difference in the whole: a mean step takes {after}, before {before} "
            f"({change}); but what it consists of changed"
        )
    return (
        f"A mean step takes {after}, before {before} ({change}); whether that is chance is "
        f"unknown, as there are too few steps"
    )


def reasons(found: Comparison) -> Iterator[str]:
    """Say which rank it comes from, if it is one, and which terms changed most."""
    if found.rank is not None:
        yield _rank(found.rank, _places(found))
    if found.verdict == "no difference":
        return
    changed = [
        (name, term["delta_ns"])
        for name, term in found.terms.items()
        if term["significant"] or (term["significant"] is None and term["delta_ns"])
    ]
    changed.sort(key=lambda one: -abs(one[1]))
    if changed:
        places = _places(found)
        words = [f"{term_of(name).name} {_signed(ns, places)} ms" for name, ns in changed[:4]]
        yield f"what changed: {', '.join(words)}"
    if found.operators and found.verdict != "unknown":
        yield from _largest_operator(found)


def _rank(rank: Mapping[str, Any], places: int) -> str:
    cause = f": {rank['cause']}" if rank["cause"] else ""
    if rank["delta_ns"] is None:
        return f"it is one rank: rank {rank['rank']}{cause}"
    own, others = (_signed(rank[key], places) for key in ("delta_ns", "others_delta_ns"))
    return (
        f"it is one rank: rank {rank['rank']}{cause}; what it does itself changed by {own} ms "
        f"(most of it {term_of(rank['term']).name}), by {others} ms on the median of the others"
    )


def _largest_operator(found: Comparison) -> Iterator[str]:
    first = max(found.operators or (), key=lambda row: abs(row["delta_ns"]))
    if 2 * abs(first["delta_ns"]) < abs(found.step_ns["delta"]) or not first["delta_ns"]:
        return
    said = CHANGES[first["change"]]
    yield (
        f"it is one operator: {_operator(first)}, {_signed(first['delta_ns'], _places(found))} "
        f"ms{f' ({said})' if said else ''}"
    )


def side_lines(found: Comparison) -> tuple[str, str]:
    """Say what each side is, the base first; what steps cost, of as many on both."""
    both = (found.base, found.new)
    costs = [side.usd_per_step for side in both if side.usd_per_step is not None]
    base, new = (_side_line(side, per_steps(min(costs, default=None))) for side in both)
    return base, new


def _side_line(side: SideSummary, priced: PerSteps) -> str:
    """Say what a side is: its runs, its size, what is compared of it."""
    more = f" and {side.num_runs - 1} more runs" if side.num_runs > 1 else ""
    steps = format_number_of(side.num_steps, "step")
    parts = [
        format_number_of(side.num_devices, "device"),
        side.accelerator or "accelerator unknown",
        "whole windows" if side.basis == "windows" else steps,
    ]
    if side.mfu is not None:
        parts.append(f"MFU {format_ratio(side.mfu)}")
    if side.usd_per_step is not None:
        parts.append(priced.text(side.usd_per_step))
    return f"{side.paths[0]}{more}: {', '.join(parts)}"


def term_rows(found: Comparison) -> list[TermRow]:
    """Write the terms that there are, and the step, which they add up to."""
    places = _places(found)
    rows = [
        TermRow(
            term_of(name).name,
            format_ms(term["base_ns"], places),
            format_ms(term["new_ns"], places),
            _signed(term["delta_ns"], places),
            _signed_ratio(term["ratio"]),
            _MARKS[term["significant"]],
        )
        for name, term in found.terms.items()
        if _shows(term, places)
    ]
    step = found.step_ns
    whole = (format_ms(step["base"], places), format_ms(step["new"], places))
    change = _signed(step["delta"], places), _signed_ratio(step["ratio"])
    return [*rows, TermRow("step", *whole, *change, _MARKS[step["significant"]])]


def _shows(term: Mapping[str, Any], places: int) -> bool:
    """Leave out what would be zeros only."""
    texts = [format_ms(term[key], places) for key in ("base_ns", "new_ns", "delta_ns")]
    return bool(term["significant"]) or any(text.strip("-0.") for text in texts)


def operator_rows(found: Comparison, limit: int) -> tuple[list[Row], int]:
    """Write the operators that changed enough to matter, and count what is left out."""
    is_quiet = found.verdict == "no difference"
    wanted = [
        row
        for row in found.operators or ()
        if row["change"] in _STRUCTURAL or (abs(row["ratio"]) >= _MATTERS and not is_quiet)
    ]
    places = _places(found)
    rows = [
        Row(
            _signed(row["delta_ns"], places),
            _signed_ratio(row["ratio"]),
            _operator(row),
            CHANGES[row["change"]],
            tuple(_operator_details(row, places)),
        )
        for row in wanted[:limit]
    ]
    return rows, len(wanted) - len(rows)


def _operator(row: Mapping[str, Any]) -> str:
    words = [row["op"], row["shapes"] or "", row["dtype"] or ""]
    return " ".join(word for word in words if word)


def _operator_details(row: Mapping[str, Any], places: int) -> Iterator[str]:
    base, new = row["base"], row["new"]
    yield _both(" ms", *(side and format_ms(side["time_ns"], places) for side in (base, new)))
    yield _times(base, new)
    again = [side and side["recompute_count"] for side in (base, new)]
    if any(again) and again[0] != again[1]:
        yield _both(" recomputed", *(format_figure(one or 0.0) for one in again))
    if row["change"] == "reshaped":
        yield f"shapes were {base['shapes']}"
    if row["change"] == "renamed":
        gone = [name for name in base["kernels"] if name not in new["kernels"]]
        come = [name for name in new["kernels"] if name not in base["kernels"]]
        yield f"kernel {_kernels(gone)} -> {_kernels(come)}"


def _kernels(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return visible(names[0], _LONGEST_NAME) + more if names else "none"


def collective_rows(found: Comparison, limit: int) -> tuple[list[Row], int]:
    """Write the collectives that changed enough to matter, and count what is left out."""
    is_quiet = found.verdict == "no difference"
    least = _MATTERS * found.step_ns["base"]
    wanted = [
        row
        for row in found.collectives or ()
        if row["change"] in _STRUCTURAL
        or row["delta_count"]
        or (not is_quiet and max(abs(row[key] or 0) for key in _DELTAS) >= least)
    ]
    places = _places(found)
    rows = [
        Row(
            _signed(row["delta_exposed_ns"], places),
            _signed_ratio((row["delta_exposed_ns"] or 0) / found.step_ns["base"]),
            _collective(row),
            CHANGES[row["change"]],
            tuple(_collective_details(row, places)),
        )
        for row in wanted[:limit]
    ]
    return rows, len(wanted) - len(rows)


_DELTAS: Final = ("delta_transfer_ns", "delta_wait_ns", "delta_exposed_ns")


def _collective(row: Mapping[str, Any]) -> str:
    words = [row["collective"] or "unknown collective"]
    if row["message_bytes"] is not None:
        words.append(f"of {format_bytes(row['message_bytes'])}")
    if row["dtype"]:
        words.append(DTYPES.get(row["dtype"], row["dtype"]))
    if row["ranks"]:
        words.append(f"among ranks {rank_ranges(row['ranks'])}")
    return " ".join(words)


def _collective_details(row: Mapping[str, Any], places: int) -> Iterator[str]:
    base, new = row["base"], row["new"]
    for words in ("transfer", "wait", "exposed"):
        sides = (side and format_ms(side[f"{words}_ns"], places) for side in (base, new))
        yield f"{words} {_both(' ms', *sides)}"
    yield _times(base, new)


def _times(base: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    counts = (None if side is None else format_figure(side["count"]) for side in (base, new))
    return f"{_both('x', *counts)} a step"


def _both(unit: str, before: str | None, after: str | None) -> str:
    """Write what was and what is; of what came or went the one that there is."""
    if before is None or after is None or before == after:
        return f"{before or after}{unit}"
    return f"{before} -> {after}{unit}"


def _places(found: Comparison) -> int:
    return ms_decimals(max(found.step_ns["base"], found.step_ns["new"]))


def _is_all_zero(found: Comparison) -> bool:
    return not any(term["delta_ns"] for term in found.terms.values())


def _signed(ns: int | None, places: int) -> str:
    """Write a change in milliseconds with its sign; exactly nothing is 0."""
    if ns is None:
        return UNKNOWN
    text = format_ms(ns, places)
    if not text.strip("-0."):
        return text.lstrip("-")
    return f"{'+' if ns > 0 else ''}{text}"


def _signed_ratio(ratio: float) -> str:
    text = format_ratio(ratio)
    return f"+{text}" if ratio > 0 and text != "0.0%" else text
