"""What does a step of the model need? As the user says, as capture recorded, or as it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

from traceparse.errors import Note
from traceparse.run.asked import Asked

__all__ = ["ESTIMATED", "Model", "Source", "fact_of", "model_of", "num_devices"]

Source: TypeAlias = Literal["declared", "counted", "estimated"]

_MOST = 10**30  # what a file claims beyond it is not believed


@dataclass(frozen=True, slots=True)
class Model:
    """FLOP of the model for one device and one step: its part of the whole job's.

    ``None`` where they are estimated: what the device executed without what it repeated.
    ``hardware_flop`` are those that the user declares to be executed.
    """

    source: Source
    flop: Fraction | None = None
    hardware_flop: Fraction | None = None
    convention: str | None = None


ESTIMATED: Final = Model("estimated")


def model_of(
    asked: Asked, facts: Sequence[Mapping[str, Any]], devices: Fraction
) -> tuple[Model, list[Note]]:
    """Choose the source: the user before what was recorded before an estimate.

    ``facts`` are those of each rank's header, ``devices`` how many share the work of a step.
    """
    if asked.model_flop_per_step is not None:
        hardware = asked.hardware_flop_per_step
        declared = Model(
            "declared",
            asked.model_flop_per_step / devices,
            None if hardware is None else hardware / devices,
            asked.convention,
        )
        return declared, []
    notes: list[Note] = []
    flop = fact_of("model_flop_per_step", facts, notes)
    convention = "counted"
    if flop is None:
        params = fact_of("params", facts, notes)
        tokens = fact_of("tokens_per_step", facts, notes)
        convention = "6nd"
        flop = 6 * params * tokens if params and tokens else None
    if flop is None:
        return ESTIMATED, notes
    return Model("counted", flop / devices, convention=convention), notes


def fact_of(
    name: str, facts: Sequence[Mapping[str, Any]], notes: list[Note]
) -> Fraction | None:
    """Return what all ranks that recorded it say of the job; ``None`` if they disagree."""
    said = list(dict.fromkeys(_numbers(name, facts)))
    if len(said) > 1:
        told = ", ".join(f"{value:,}" for value in said[:4])
        message = f"the traces disagree on {name} ({told}), so it is not used"
        notes.append(Note("facts_disagree", message))
        return None
    return Fraction(said[0]) if said else None


def _numbers(name: str, facts: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    for each in facts:
        value = each.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST:
            yield value


def num_devices(world_size: int | None, ranks: int, devices: int) -> Fraction:
    """How many devices has the job? Ranks without a trace have as many as the others."""
    return Fraction(devices * max(world_size or ranks, ranks), ranks)
