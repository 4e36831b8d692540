"""The language of ``check``, read by recursive descent.

::

    condition  = both { "or" both }
    both       = negated { "and" negated }
    negated    = "not" negated | compared
    compared   = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
    sum        = product { ("+" | "-") product }
    product    = value { ("*" | "/") value }
    value      = "-" value | number [unit] | text | "true" | "false" | "null"
               | "(" condition ")" | function | field
    function   = ("max" | "min" | "mean" | "sum" | "count") "(" sum ")" | "finding" "(" text ")"
    field      = name { "." name | "[" number "]" | "[" text "]" | "[" condition "]" }

``devices[0].window.idle_ns`` leads into the report as ``report.json`` has it; a name alone is
a field of ``utilization``, ``scaling_loss`` or ``run``. A list with a condition behind it is
those of its entries for which that holds: ``count(findings[severity == 'error']) > 0``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from traceparse.errors import UsageError
from traceparse.run.check.tree import (
    Aggregate,
    AllOf,
    Arithmetic,
    Comparison,
    Constant,
    Field,
    Filter,
    Finding,
    Key,
    Node,
    Not,
    OneOf,
    Place,
)
from traceparse.run.check.words import Word, refusal, words_of

__all__ = ["AGGREGATES", "parse"]

AGGREGATES: Final = ("max", "min", "mean", "sum", "count")
_FINDING: Final = "finding"
_COMPARE: Final = ("<", "<=", ">", ">=", "==", "!=")
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_RESERVED: Final = frozenset({"and", "or", "not", *_CONSTANTS})
_DEEPEST: Final = 24
_CONDITION: Final = "finish the condition, such as mfu < 0.35"


def parse(expression: str) -> Node:
    """Read a condition.

    Raises
    ------
    UsageError
        It cannot be understood, or is none.
    """
    reader = _Reader(expression)
    node = reader.condition()
    reader.end()
    if isinstance(node, Constant | Arithmetic | Aggregate):
        raise refusal(expression, f"is a value and no condition; {_CONDITION}")
    return node


class _Reader:
    """Goes through the words of an expression from left to right, and never back."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._words = words_of(expression)
        self._place = 0
        self._depth = 0

    @property
    def _next(self) -> Word:
        return self._words[self._place]

    def _take(self) -> Word:
        word = self._next
        if word.kind != "end":
            self._place += 1
        return word

    def _is_next(self, *texts: str) -> bool:
        return self._next.kind in {"sign", "name"} and self._next.text in texts

    def _try(self, text: str) -> bool:
        found = self._is_next(text)
        if found:
            self._take()
        return found

    def _want(self, text: str, where: str) -> None:
        if not self._try(text):
            raise self._refusal(f"{text} is missing {where}")

    def _refusal(self, why: str) -> UsageError:
        word = self._next
        at = "at its end" if word.kind == "end" else f"before {word.text[:20]!r}"
        return refusal(self._expression, f"{why} ({at})")

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise refusal(self._expression, f"is nested more than {_DEEPEST} deep")
        yield
        self._depth -= 1

    def _text_since(self, start: int) -> str:
        return self._expression[start : self._words[self._place - 1].end]

    def end(self) -> None:
        """See that nothing is left."""
        if self._next.kind == "end":
            return
        if self._is_next(*_COMPARE):
            raise self._refusal("compares three things; join two comparisons with and")
        raise self._refusal("something is left over; join conditions with and, or")

    def condition(self) -> Node:
        """Read conditions that ``or`` joins."""
        with self._deeper():
            found = [self._both()]
            while self._try("or"):
                found.append(self._both())
        return found[0] if len(found) == 1 else OneOf(tuple(found))

    def _both(self) -> Node:
        found = [self._negated()]
        while self._try("and"):
            found.append(self._negated())
        return found[0] if len(found) == 1 else AllOf(tuple(found))

    def _negated(self) -> Node:
        if not self._try("not"):
            return self._compared()
        with self._deeper():
            return Not(self._negated())

    def _compared(self) -> Node:
        start = self._next.start
        left = self._sum()
        if not self._is_next(*_COMPARE):
            return left
        left_text = self._text_since(start)
        operator = self._take().text
        start = self._next.start
        right = self._sum()
        return Comparison(operator, left, right, left_text, self._text_since(start))

    def _sum(self) -> Node:
        found = self._product()
        while self._is_next("+", "-"):
            found = Arithmetic(self._take().text, found, self._product())
        return found

    def _product(self) -> Node:
        found = self._value()
        while self._is_next("*", "/"):
            found = Arithmetic(self._take().text, found, self._value())
        return found

    def _value(self) -> Node:
        if self._try("-"):
            with self._deeper():
                return Arithmetic("-", Constant(0), self._value())
        if self._try("("):
            found = self.condition()
            self._want(")", "behind what a parenthesis opened")
            return found
        word = self._next
        if word.kind in {"number", "text"}:
            self._take()
            return Constant(word.value, word.measures)
        if word.kind == "name" and word.text in _CONSTANTS:
            self._take()
            return Constant(_CONSTANTS[word.text])
        if word.kind != "name" or word.text in _RESERVED:
            raise self._refusal(f"a number or a field is missing; {_CONDITION}")
        return self._named()

    def _named(self) -> Node:
        word = self._take()
        if self._is_next("("):
            return self._function(word)
        steps: list[Key | Place | Filter] = [Key(word.text)]
        while self._is_next(".", "["):
            steps.append(self._inner() if self._try("[") else self._outer())
        return Field(tuple(steps), self._text_since(word.start))

    def _outer(self) -> Key:
        self._want(".", "before the name of a field")
        if self._next.kind != "name":
            raise self._refusal("the name of a field is missing behind the dot")
        return Key(self._take().text)

    def _inner(self) -> Key | Place | Filter:
        word, after = self._next, self._words[min(self._place + 1, len(self._words) - 1)]
        step: Key | Place | Filter
        if after.text == "]" and isinstance(word.value, int) and word.measures is None:
            self._take()
            step = Place(word.value)
        elif after.text == "]" and isinstance(word.value, str):
            self._take()
            step = Key(word.value)
        else:
            step = Filter(self.condition())
        self._want("]", "behind what a bracket opened")
        return step

    def _function(self, name: Word) -> Node:
        self._want("(", "behind the name of a function")
        if name.text == _FINDING:
            code = self._take()
            if not isinstance(code.value, str):
                raise self._refusal("finding takes the code of one, such as 'straggler'")
            self._want(")", "behind the code")
            return Finding(code.value)
        if name.text not in AGGREGATES:
            known = ", ".join((*AGGREGATES, _FINDING))
            raise refusal(self._expression, f"no function {name.text!r}; there are {known}")
        with self._deeper():
            over = self._sum()
        self._want(")", f"behind what {name.text} is of")
        return Aggregate(name.text, over, self._text_since(name.start))
