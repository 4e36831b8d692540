"""Does a condition hold in a report? Yes, no, or unknown, with what was compared.

What is unknown stays so: ``null`` compares with nothing but ``null``. In ``and`` and ``or`` it
counts only where it decides (Kleene's logic): ``world_size > 1 and comm_ratio > 10%`` is false
on one device, where ``comm_ratio`` is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from traceparse.errors import UsageError
from traceparse.run.check.lookup import looked_up
from traceparse.run.check.tree import (
    Aggregate,
    AllOf,
    Arithmetic,
    Comparison,
    Constant,
    Field,
    Finding,
    Node,
    Not,
    OneOf,
)
from traceparse.run.check.values import (
    NUMBER,
    Known,
    Unknown,
    Value,
    calculated,
    compared,
    is_number,
)
from traceparse.run.findings import RULES

__all__ = ["CODES", "Compared", "Judged", "judged"]

# codes of all findings that there can be, so that a slip in one is none that never fails
CODES: Final = frozenset(
    {
        *(rule.__name__ for rule in RULES),
        "capture_overhead",
        "faster_than_peak",
        "mfu_above_measured_maximum",
        "model_flop_exceed_executed",
        "straggler",
    }
)
_NUMBER_OF: Final[Mapping[str, Callable[[list[Any]], float]]] = {
    "max": max,
    "min": min,
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
}


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison: each side as written and as found, ``holds`` null where unknown."""

    left: str
    left_value: float | str | bool | None
    left_kind: str | None
    operator: str
    right: str
    right_value: float | str | bool | None
    right_kind: str | None
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether a condition holds; ``None`` where that is unknown, with the reasons.

    Where it holds, the reasons are the titles of findings that it asked for.
    """

    holds: bool | None
    comparisons: tuple[Compared, ...]
    reasons: tuple[str, ...]


def judged(condition: Node, document: Mapping[str, Any]) -> Judged:
    """Judge a report, given as ``report.json`` has it.

    Raises
    ------
    UsageError
        A field is none of the report's, or is compared with what it cannot be.
    """
    judge = _Judge(document)
    found = judge.condition(condition)
    if isinstance(found, Unknown):
        reasons = tuple(dict.fromkeys(found.reasons))
        return Judged(None, tuple(judge.comparisons), reasons)
    titles = tuple(dict.fromkeys(judge.titles)) if found.value else ()
    return Judged(bool(found.value), tuple(judge.comparisons), titles)


class _Judge:
    def __init__(
        self, document: Mapping[str, Any], scope: Mapping[str, Any] | None = None
    ) -> None:
        self._document = document
        self._scope = scope
        self.comparisons: list[Compared] = []
        self.titles: list[str] = []

    def condition(self, node: Node) -> Value:
        """Return whether a condition holds."""
        found = self._value(node)
        if isinstance(found, Known) and not isinstance(found.value, bool):
            what = node.text if isinstance(node, Field) else "a value"
            raise UsageError(f"{what} is no condition; compare it, such as mfu < 0.35")
        return found

    def _value(self, node: Node) -> Value:
        ways: Mapping[type[Node], Callable[[Any], Value]] = {
            Constant: _constant,
            Field: self._field,
            Aggregate: self._aggregate,
            Finding: self._finding,
            Arithmetic: self._arithmetic,
            Comparison: self._comparison,
            Not: self._not,
            AllOf: lambda both: self._joined(both.conditions, decides=False),
            OneOf: lambda either: self._joined(either.conditions, decides=True),
        }
        return ways[type(node)](node)

    def _field(self, node: Field) -> Value:
        return looked_up(node, self._document, self._scope, self._chosen)

    def _not(self, node: Not) -> Value:
        found = self.condition(node.condition)
        return Known(not found.value) if isinstance(found, Known) else found

    def _joined(self, conditions: Sequence[Node], *, decides: bool) -> Value:
        found = [self.condition(one) for one in conditions]
        if any(isinstance(one, Known) and one.value is decides for one in found):
            return Known(decides)
        reasons = [r for one in found if isinstance(one, Unknown) for r in one.reasons]
        return Unknown(tuple(reasons)) if reasons else Known(not decides)

    def _chosen(self, condition: Node, entry: Mapping[str, Any], where: str) -> Value:
        try:
            return _Judge(self._document, entry).condition(condition)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error

    def _arithmetic(self, node: Arithmetic) -> Value:
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return _unknown(left, right)
        return calculated(node.operator, left, right)

    def _comparison(self, node: Comparison) -> Value:
        left, right = self._value(node.left), self._value(node.right)
        holds: bool | None = None
        if _is_null(node.left) or _is_null(node.right):
            if node.operator not in {"==", "!="}:
                raise UsageError("null compares by == and != only")
            is_alike = isinstance(left, Unknown) and isinstance(right, Unknown)
            holds = is_alike == (node.operator == "==")
        elif isinstance(left, Known) and isinstance(right, Known):
            holds = compared(node.operator, left, right)
        self.comparisons.append(
            Compared(
                node.left_text,
                *_plain(left),
                node.operator,
                node.right_text,
                *_plain(right),
                holds,
            )
        )
        return _unknown(left, right) if holds is None else Known(holds)

    def _finding(self, node: Finding) -> Value:
        findings = self._document.get("findings")
        if findings is None:
            return Unknown(("findings are unknown (null in the report)",))
        found = {one["code"] for one in findings}
        if node.code not in found | CODES:
            near = get_close_matches(node.code, sorted(found | CODES), cutoff=0.5)
            hint = f"did you mean {', '.join(near)}?" if near else _codes()
            raise UsageError(f"no finding has the code {node.code!r}; {hint}")
        self.titles += [one["title"] for one in findings if one["code"] == node.code]
        return Known(node.code in found)

    def _aggregate(self, node: Aggregate) -> Value:
        found = self._value(node.over)
        if isinstance(found, Unknown):
            return found
        if not isinstance(found.value, list):
            raise UsageError(f"{node.text}: {node.name} is of a list, and that is none")
        if node.name == "count":
            return Known(len(found.value), NUMBER)
        return _of_numbers(node, found.value, found.kind)


def _of_numbers(node: Aggregate, values: list[Any], kind: str | None) -> Value:
    missing = sum(value is None for value in values)
    if missing:
        return Unknown((f"{node.text} is unknown: {missing} of {len(values)} are null",))
    if not all(map(is_number, values)):
        raise UsageError(f"{node.text}: name a field of the entries that is a number")
    if not values and node.name != "sum":
        return Unknown((f"{node.text} is unknown: the list is empty",))
    try:
        return Known(_NUMBER_OF[node.name](values), kind)
    except OverflowError:
        return Unknown((f"{node.text} is unknown: a number is too large",))


def _codes() -> str:
    return f"there are {', '.join(sorted(CODES))}"


def _constant(node: Constant) -> Value:
    if node.value is None:
        return Unknown(("null compares by == and != only",))
    return Known(node.value, node.kind)


def _is_null(node: Node) -> bool:
    return isinstance(node, Constant) and node.value is None


def _unknown(*parts: Value) -> Unknown:
    return Unknown(
        tuple(r for part in parts if isinstance(part, Unknown) for r in part.reasons)
    )


def _plain(value: Value) -> tuple[Any, str | None]:
    if isinstance(value, Unknown):
        return None, None
    found = value.value
    if isinstance(found, Mapping | list):  # compared with null: it is there
        return "object" if isinstance(found, Mapping) else "list", None
    return found, value.kind
