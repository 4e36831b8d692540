"""What became of conditions, in a terminal: two lines each, and how many failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rich.console import Console

from traceparse.report.lines import say
from traceparse.report.notes import note_lines
from traceparse.run.check import Checked, Compared, Gate
from traceparse.units import (
    format_bytes,
    format_count,
    format_figure,
    format_flop_per_s,
    format_ns,
    format_number_of,
    format_ratio,
    format_usd,
)

__all__ = ["found_lines", "render", "render_notes", "verdict"]

_STYLES: Final = {"pass": "green", "fail": "bold red", "unknown": "bold yellow"}
_CONSTANTS: Final = ("null", "true", "false")
_INDENT: Final = 9


def render(checked: Checked, console: Console) -> None:
    """Print each condition with what was found, those that fail last, where one looks."""
    for gate in sorted(checked.gates, key=lambda gate: gate.outcome != "pass"):
        lead = f"{gate.outcome:<{_INDENT - 1}}"
        say(console, gate.expression, lead=lead, lead_style=_STYLES[gate.outcome])
        for line in found_lines(gate):
            say(console, line, indent=_INDENT)
    say(console, verdict(checked), "bold")


def render_notes(checked: Checked, console: Console) -> None:
    """Print what was repaired, skipped or assumed in the report: a line each."""
    for line in note_lines(checked.notes):
        say(console, line.text, lead=f"{line.code}:", lead_style="yellow")


def verdict(checked: Checked) -> str:
    """Say in a line how many conditions failed."""
    num = {
        outcome: sum(gate.outcome == outcome for gate in checked.gates) for outcome in _STYLES
    }
    total = format_number_of(len(checked.gates), "condition")
    if checked.is_passed:
        return f"passed: of {total} to fail on, none holds"
    said = [f"{num['fail']} {'holds' if num['fail'] == 1 else 'hold'}"] * bool(num["fail"])
    if num["unknown"]:
        said.append(f"{num['unknown']} cannot be told, which fails too")
    return f"failed: of {total} to fail on, {' and '.join(said)}"


def found_lines(gate: Gate) -> Iterator[str]:
    """Say what was found, and what it was compared with; or why that is unknown."""
    for one in gate.comparisons:
        if one.holds is not None:
            yield _found(one)
    yield from gate.reasons


def _found(one: Compared) -> str:
    sides = (
        (one.left, _value(one.left_value, one.left_kind)),
        (one.right, _value(one.right_value, one.right_kind)),
    )
    said = [f"{text} is {value}" for text, value in sides if not _is_literal(text)]
    limits = [text for text, _ in sides if _is_literal(text)]
    return ", threshold ".join([", ".join(said), *limits]) if said else " and ".join(limits)


def _is_literal(text: str) -> bool:
    words = text.replace("(", "").replace("-", "").lstrip()
    return words[:1].isdigit() or words[:1] in {"'", '"', "."} or words in _CONSTANTS


_WRITTEN: Final[Mapping[str | None, Callable[[float], str]]] = {
    "ns": lambda value: format_ns(round(value)),
    "bytes": lambda value: format_bytes(round(value)),
    "flop_per_s": format_flop_per_s,
    "bytes_per_s": lambda value: f"{format_bytes(round(value))}/s",
    "usd": format_usd,
    "ratio": lambda value: f"{format_figure(value)} ({format_ratio(value)})",
}


def _value(value: float | str | None, kind: str | None) -> str:
    """Write a value of a field as people do, in the unit of its kind."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value)
    if kind in _WRITTEN:
        return _WRITTEN[kind](value)
    return format_count(value) if isinstance(value, int) else format_figure(value)
