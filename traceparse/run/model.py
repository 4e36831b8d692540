"""What does a step of the model need? As the user says, as capture recorded, or as it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

from traceparse.errors import Note
from traceparse.run.asked import Asked
from traceparse.units import format_number_of

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
    asked: Asked,
    facts: Sequence[Mapping[str, Any]],
    devices: Fraction,
    *,
    world_size: int | None,
) -> tuple[Model, list[Note]]:
    """Choose the source: the user before what was recorded before an estimate.

    Of what was recorded, the whole job's FLOP count before the sum of what each rank counted,
    and that before 6ND. ``facts`` are those of each rank's header, ``devices`` how many share
    the work of a step.
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
    if flop is None:
        flop = _added_up(facts, world_size, notes)
    convention = "counted"
    if flop is None:
        params = fact_of("params", facts, notes)
        tokens = fact_of("tokens_per_step", facts, notes)
        convention = "6nd"
        flop = 6 * params * tokens if params and tokens else None
    if flop is None:
        return ESTIMATED, notes
    return Model("counted", flop / devices, convention=convention), notes


def _added_up(
    facts: Sequence[Mapping[str, Any]], world_size: int | None, notes: list[Note]
) -> Fraction | None:
    """Add up what each rank counted of its own work, which may differ: a pipeline's stages do.

    Ranks that did not count are taken to work as much as the others on average.
    """
    name = "model_flop_per_rank_step"
    counted = list(_numbers(name, facts, lowest=0))
    if not sum(counted):
        return None
    ranks = max(world_size or 0, len(facts))
    if len(counted) < ranks:
        message = (
            f"{format_number_of(len(counted), 'rank')} of {ranks:,} recorded {name}: their sum "
            f"is scaled to all {ranks:,}"
        )
        notes.append(Note("model_flop_scaled", message))
    return Fraction(sum(counted) * ranks, len(counted))


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


def _numbers(name: str, facts: Sequence[Mapping[str, Any]], lowest: int = 1) -> Iterator[int]:
    for each in facts:
        value = each.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= _MOST:
            yield value


def num_devices(world_size: int | None, ranks: int, devices: int) -> Fraction:
    """How many devices has the job? Ranks without a trace have as many as the others."""
    return Fraction(devices * max(world_size or ranks, ranks), ranks)
