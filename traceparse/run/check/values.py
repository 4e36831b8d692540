"""What the parts of an expression come to: a value, or that it is unknown, and why."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from traceparse.errors import UsageError

__all__ = [
    "NUMBER",
    "RATIO",
    "Known",
    "Unknown",
    "Value",
    "calculated",
    "compared",
    "is_number",
    "kind_of",
]

NUMBER: Final = "number"
RATIO: Final = "ratio"
# what fields measure, by the ends of their names; the longer ones first
_ENDS: Final = ("_flop_per_s", "_bytes_per_s", "_ns", "_bytes", "_flop", "_usd")
_WORDS: Final = {
    "flop_per_s": "FLOP/s",
    "bytes_per_s": "bytes/s",
    "ns": "a time",
    "bytes": "bytes",
    "flop": "FLOP",
    "usd": "USD",
    RATIO: "a share",
    NUMBER: "a number",
}
_SIGNS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_EITHER: Final = ("==", "!=")


@dataclass(frozen=True, slots=True)
class Known:
    """A value; ``kind`` is what it measures, ``None`` for a bare number, which fits to all."""

    value: Any
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Null, and why."""

    reasons: tuple[str, ...]


Value: TypeAlias = Known | Unknown


def is_number(value: object) -> bool:
    """Can one calculate with it?"""
    return isinstance(value, int | float) and not isinstance(value, bool)


def kind_of(name: str) -> str | None:
    """Return what a field of this name measures; ``None`` if the name does not tell."""
    end = next((end for end in _ENDS if name.endswith(end)), None)
    if end is not None:
        return end[1:]
    return RATIO if name.endswith("_ratio") else None


def compared(sign: str, left: Known, right: Known) -> bool:
    """Compare two values of a kind.

    Raises
    ------
    UsageError
        They cannot be compared so.
    """
    for one in (left, right):
        if isinstance(one.value, list | Mapping):
            raise UsageError(f"{_shown(one)} is no value to compare")
    if is_number(left.value) and is_number(right.value):
        _together(left.kind, right.kind)
    elif type(left.value) is not type(right.value) or sign not in _EITHER:
        raise UsageError(
            f"{_shown(left)} and {_shown(right)} cannot be compared by {sign}: numbers can be "
            f"with numbers, and by == and != text with text"
        )
    return _SIGNS[sign](left.value, right.value)


def calculated(sign: str, left: Known, right: Known) -> Value:
    """Calculate with two numbers.

    Raises
    ------
    UsageError
        They are none, or measure what cannot be added.
    """
    for one in (left, right):
        if not is_number(one.value):
            raise UsageError(f"{_shown(one)} is no number to calculate with")
    try:
        return Known(*_calculated(sign, left, right))
    except ZeroDivisionError:
        return Unknown(("a division by zero",))
    except OverflowError:
        return Unknown(("a number that is too large",))


def _calculated(sign: str, left: Known, right: Known) -> tuple[float, str | None]:
    if sign == "+":
        return left.value + right.value, _together(left.kind, right.kind)
    if sign == "-":
        return left.value - right.value, _together(left.kind, right.kind)
    kinds = {left.kind, right.kind} - {None, NUMBER, RATIO}
    if sign == "*":
        return left.value * right.value, kinds.pop() if len(kinds) == 1 else None
    value = left.value / right.value
    if left.kind == right.kind:
        return value, RATIO
    return value, left.kind if right.kind in {None, NUMBER, RATIO} else None


def _together(left: str | None, right: str | None) -> str | None:
    """Return what two numbers measure that are added or compared."""
    if left is None or right is None or left == right:
        return left or right
    if {left, right} == {NUMBER, RATIO}:
        return NUMBER
    raise UsageError(f"{_WORDS[left]} and {_WORDS[right]} cannot be compared or added")


def _shown(one: Known) -> str:
    if isinstance(one.value, list):
        return "a list (take max, min, mean, sum or count of it, or one entry by its number)"
    if isinstance(one.value, Mapping):
        return "an object (name one of its fields)"
    return repr(one.value)[:60]
