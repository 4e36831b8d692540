"""What an expression of ``check`` is once it is read: a small tree, and nothing that runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "Aggregate",
    "AllOf",
    "Arithmetic",
    "Comparison",
    "Constant",
    "Field",
    "Filter",
    "Finding",
    "Key",
    "Node",
    "Not",
    "OneOf",
    "Place",
]


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, text, ``true``, ``false`` or ``null``; ``kind`` is what a unit measures."""

    value: float | str | bool | None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """The name of a field in what stands before it."""

    name: str


@dataclass(frozen=True, slots=True)
class Place:
    """The number of an entry of a list, from 0."""

    number: int


@dataclass(frozen=True, slots=True)
class Filter:
    """Those entries of a list for which a condition holds; its names are fields of an entry."""

    condition: Node


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the report: a name, and what leads further into it."""

    steps: tuple[Key | Place | Filter, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One number of a list: ``max``, ``min``, ``mean``, ``sum`` or ``count``."""

    name: str
    over: Node
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether the report has a finding of this code."""

    code: str


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers and ``+``, ``-``, ``*`` or ``/``."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values beside each other, and how each side was written."""

    operator: str
    left: Node
    right: Node
    left_text: str
    right_text: str


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    condition: Node


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conditions joined by ``and``."""

    conditions: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """Conditions joined by ``or``."""

    conditions: tuple[Node, ...]


Node: TypeAlias = (
    Constant | Field | Aggregate | Finding | Arithmetic | Comparison | Not | AllOf | OneOf
)
