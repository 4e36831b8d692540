"""An expression of ``check``, cut into words. What is no word of the language is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from traceparse.errors import UsageError
from traceparse.run.check.values import RATIO

__all__ = ["Word", "refusal", "words_of"]

_LONGEST: Final = 1_000  # characters
_MOST: Final = 200  # words
_LARGEST: Final = 10**30

_TIME, _RATE, _BANDWIDTH, _BYTES, _FLOP = "ns", "flop_per_s", "bytes_per_s", "bytes", "flop"
_DECIMAL: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
# what a unit measures, as the names of fields end, and how many of the field's unit it is
_UNITS: Final[Mapping[str, tuple[str, Fraction]]] = {
    "%": (RATIO, Fraction(1, 100)),
    "ns": (_TIME, Fraction(1)),
    "us": (_TIME, Fraction(10**3)),
    "ms": (_TIME, Fraction(10**6)),
    "s": (_TIME, Fraction(10**9)),
    "min": (_TIME, Fraction(60 * 10**9)),
    **{f"{p}FLOP/s": (_RATE, Fraction(n)) for p, n in _DECIMAL.items()},
    **{f"{p}FLOP": (_FLOP, Fraction(n)) for p, n in _DECIMAL.items()},
    **{f"{p}B/s": (_BANDWIDTH, Fraction(n)) for p, n in _DECIMAL.items()},
    **{f"{p}B": (_BYTES, Fraction(n)) for p, n in _DECIMAL.items()},
}
_UNIT = "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True))
_WORD = re.compile(
    rf"(?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?)"
    rf"(?:\s*(?P<unit>{_UNIT})(?![A-Za-z0-9_]))?(?![A-Za-z0-9_.])"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<sign><=|>=|==|!=|[<>()\[\].+*/-])",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its ``kind`` (``number``, ``name``, ``text``, ``sign``, ``end``) and place."""

    kind: str
    text: str
    start: int
    end: int
    value: int | float | str | None = None
    measures: str | None = None


def refusal(expression: str, why: str) -> UsageError:
    """Return the error that says why an expression cannot be understood."""
    shown = expression if len(expression) <= 120 else f"{expression[:117]}..."
    return UsageError(f"--fail-on {shown!r}: {why}")


def words_of(expression: str) -> list[Word]:
    """Cut an expression into words; the last one is its end.

    Raises
    ------
    UsageError
        It is too long, or has something in it that is no word.
    """
    if len(expression) > _LONGEST:
        raise refusal(expression, f"has more than {_LONGEST:,} characters")
    found = [*_words(expression)]
    if len(found) > _MOST:
        raise refusal(expression, f"has more than {_MOST} words; give several --fail-on")
    return [*found, Word("end", "", len(expression), len(expression))]


def _words(expression: str) -> Iterator[Word]:
    place = 0
    while place < len(expression):
        if expression[place] in " \t\n":
            place += 1
            continue
        match = _WORD.match(expression, place)
        if match is None:
            raise refusal(expression, _odd(expression[place:]))
        yield _word(expression, match)
        place = match.end()


def _word(expression: str, match: re.Match[str]) -> Word:
    kind = match.lastgroup or ""
    start, end = match.span()
    if match["number"] is not None:
        measures, factor = _UNITS[match["unit"]] if match["unit"] else (None, Fraction(1))
        exact = Fraction(match["number"]) * factor
        if exact > _LARGEST:
            raise refusal(expression, f"{match['number'][:20]} is more than anybody has")
        value = int(exact) if exact.denominator == 1 else float(exact)
        assert math.isfinite(value)
        return Word("number", match[0], start, end, value, measures)
    if match["text"] is not None:
        if not match["text"].isprintable():
            raise refusal(expression, "a text with invisible characters is none to look for")
        return Word(kind, match[0], start, end, match["text"][1:-1])
    return Word(kind, match[0], start, end)


def _odd(rest: str) -> str:
    first = rest[:12].split(" ", maxsplit=1)[0]
    if first[0] == "=":
        return "write == to compare, = sets nothing here"
    if first[:2] in {"&&", "||"} or first[0] in "&|!":
        return "write and, or, not"
    if first[0].isdigit():
        units = "%, ns, us, ms, s, min, B, KB, MB, GB, TB, GB/s, FLOP, TFLOP, TFLOP/s"
        return f"{first!r} is no number with a unit; units are {units}"
    return f"{first!r} is no word of an expression"
