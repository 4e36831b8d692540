"""Does a job keep its limits? Conditions under which it fails, judged one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from traceparse.errors import Note, UsageError
from traceparse.run.check.evaluate import Compared, judged
from traceparse.run.check.grammar import parse
from traceparse.run.check.words import refusal
from traceparse.run.report import SCHEMA_VERSION, Report

__all__ = ["Checked", "Gate", "Outcome", "check", "require_conditions"]

Outcome: TypeAlias = Literal["pass", "fail", "unknown"]
_MOST = 1_000
_NONE = (
    "nothing to check: give --fail-on 'mfu < 0.35', or fail-on = [...] under "
    "[tool.traceparse.check] in pyproject.toml"
)


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition: ``fail`` where it holds, ``unknown`` (which fails too) with reasons.

    Of findings that were asked for, and are there, the reasons are their titles.
    """

    expression: str
    outcome: Outcome
    comparisons: tuple[Compared, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of all conditions; ``notes`` are those of the report."""

    generator: dict[str, str]
    gates: tuple[Gate, ...]
    notes: tuple[Note, ...]

    @property
    def is_passed(self) -> bool:
        """Did no gate fail?"""
        return all(gate.outcome == "pass" for gate in self.gates)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``--json`` prints: plain dicts, lists, numbers, text."""
        return {
            "schema_version": SCHEMA_VERSION,
            "generator": dict(self.generator),
            "check": {
                "passed": self.is_passed,
                "gates": [asdict(gate) for gate in self.gates],
            },
            "notes": [asdict(note) for note in self.notes],
        }


def require_conditions(expressions: Sequence[str]) -> None:
    """Refuse what cannot be understood, before anything is read.

    Raises
    ------
    UsageError
        There is no condition, or one cannot be understood.
    """
    if not expressions:
        raise UsageError(_NONE)
    if len(expressions) > _MOST:
        raise UsageError(
            f"{len(expressions):,} conditions: more than {_MOST:,} are not checked"
        )
    for expression in expressions:
        parse(expression)


def check(report: Report, expressions: Sequence[str]) -> Checked:
    """Judge a report by conditions under which it fails.

    Raises
    ------
    UsageError
        There is no condition, or one cannot be understood, or names what no report has.
    """
    require_conditions(expressions)
    document = report.to_dict()
    gates = []
    for expression in dict.fromkeys(expressions):
        try:
            found = judged(parse(expression), document)
        except UsageError as error:
            raise refusal(expression, str(error)) from error
        outcome: Outcome = "fail" if found.holds else "pass"
        if found.holds is None:
            outcome = "unknown"
        gates.append(Gate(expression, outcome, found.comparisons, found.reasons))
    return Checked(dict(report.generator), tuple(gates), report.notes)
