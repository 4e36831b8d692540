"""Is a change more than chance? Bootstrap over steps, or over runs where there are several.

A unit is a step with all its ranks (or a run with all its steps): ranks of a step wait for
each other, so they are no samples of their own. Units are drawn again, each side on its own,
and the change is studentized each time: the interval is change ± q · error, q being the 95 %
quantile of |t| (symmetric bootstrap-t, Hall 1988, which holds its level with few units, where
percentiles do not). Of several terms that are tested together, q is that of the largest |t|
among them, so that with no change at all any of them is called significant in 5 % of cases,
not each (Romano and Wolf 2005, single step).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["LEVEL", "NUM_RESAMPLES", "Significance", "Units", "significance_of"]

Floats: TypeAlias = npt.NDArray[np.float64]

LEVEL: Final = 0.95
NUM_RESAMPLES: Final = 1_999
_SEED: Final = 20_260_101
_MOST_NUMBERS: Final = 1 << 22  # drawn at once


@dataclass(frozen=True, slots=True)
class Units:
    """What is drawn from: a row a unit, a column a quantity, summed over its device-steps.

    The first column is what an interval is wanted of, the others are tested together.
    """

    sums: Floats
    num_device_steps: Floats


@dataclass(frozen=True, slots=True)
class Significance:
    """The half width of the interval of the first column; which of the others changed."""

    half_width: float
    significant: tuple[bool, ...]


def significance_of(base: Units, new: Units) -> Significance:
    """Test how much the mean device-step changed, in each column; always the same way."""
    random = np.random.default_rng(_SEED)
    sides = _Side(base), _Side(new)
    error = np.sqrt(sides[0].squared_error + sides[1].squared_error)
    change = sides[1].mean - sides[0].mean
    drawn = [_drawn(sides, num, random) for num in _portions(sides)]
    own = np.concatenate([one for one, _ in drawn])
    together = np.concatenate([most for _, most in drawn])
    highest = _quantile(together)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.abs(change) / error
    # a change between sides that never vary is none of chance
    significant = np.where(error > 0, found > highest, change != 0)
    half_width = float(_quantile(own) * error[0]) if error[0] else 0.0
    return Significance(half_width, tuple(significant[1:].tolist()))


class _Side:
    """The units of a side, and how sure their mean is (of a ratio of sums)."""

    def __init__(self, units: Units) -> None:
        self.num, self.counts = units.num_device_steps.size, units.num_device_steps
        # numbers of a column that are all alike are exactly so about their first
        first = units.sums[0] / self.counts[0]
        shifted = units.sums - np.outer(self.counts, first)
        off = shifted.sum(axis=0) / self.counts.sum()
        self.mean = first + off
        self.off = shifted - np.outer(self.counts, off)
        factor = self.num / (self.num - 1)
        self.squared_error = factor * (self.off**2).sum(axis=0) / self.counts.sum() ** 2

    def again(self, num: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw units so many times: how far their means are off, and their squared errors."""
        times = random.multinomial(self.num, np.full(self.num, 1 / self.num), size=num)
        weights = times.astype(np.float64)
        total = (weights @ self.counts)[:, np.newaxis]
        off = weights @ self.off / total
        squares = (
            weights @ self.off**2
            - 2 * off * (weights @ (self.off * self.counts[:, np.newaxis]))
            + off**2 * (weights @ self.counts**2)[:, np.newaxis]
        )
        factor = self.num / (self.num - 1)
        return off, factor * np.maximum(squares, 0) / total**2


def _drawn(
    sides: tuple[_Side, _Side], num: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return |t| of the first column, and the largest one of the others, for so many draws."""
    (base, base_error), (new, new_error) = (side.again(num, random) for side in sides)
    off, error = np.abs(new - base), np.sqrt(base_error + new_error)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(off == 0, 0.0, off / error)
    return found[:, 0], found[:, 1:].max(axis=1, initial=0.0)


def _portions(sides: tuple[_Side, _Side]) -> list[int]:
    most = max(1, _MOST_NUMBERS // max(side.num for side in sides))
    whole, rest = divmod(NUM_RESAMPLES, most)
    return [most] * whole + [rest] * bool(rest)


def _quantile(values: Floats) -> float:
    """Return what 95 % of draws, with the change itself as one more, do not exceed."""
    rank = int(np.ceil(LEVEL * (values.size + 1))) - 1
    return float(np.partition(values, rank)[rank])
