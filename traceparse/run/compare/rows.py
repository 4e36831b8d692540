"""Rows of two sides beside each other: what is new, what is gone, what takes longer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

__all__ = ["Pair", "paired", "rounded", "shared_out"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Pair(Generic[K, V]):
    """The same thing on both sides; ``None`` where one has it not."""

    key: K
    base: V | None
    new: V | None

    @property
    def change(self) -> str | None:
        """Say whether it came or went."""
        if self.base is None or self.new is None:
            return "appeared" if self.base is None else "disappeared"
        return None


def paired(base: Mapping[K, V], new: Mapping[K, V]) -> list[Pair[K, V]]:
    """Put what has the same key beside each other."""
    return [Pair(key, base.get(key), new.get(key)) for key in dict.fromkeys((*base, *new))]


def rounded(value: Fraction | None) -> int | None:
    """Return whole nanoseconds."""
    return None if value is None else round(value)


def shared_out(parts: Mapping[str, Fraction], total: int) -> dict[str, int]:
    """Round parts to whole numbers that still add up, by largest remainders.

    Their sum is the total but for less than half a unit, so that each is off by less than one.
    """
    down = {name: part.numerator // part.denominator for name, part in parts.items()}
    left = total - sum(down.values())
    rest: Callable[[str], Fraction] = lambda name: parts[name] - down[name]  # noqa: E731
    up = sorted(parts, key=rest, reverse=True)[:left]
    return {name: ns + (name in up) for name, ns in down.items()}
