"""Which device-steps can be compared? Every number of the whole run is over the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from traceparse.errors import Note
from traceparse.rank import Times

__all__ = ["Basis", "choose"]


class _Step(Protocol):
    @property
    def step(self) -> int | None: ...
    @property
    def open_ended(self) -> bool: ...
    @property
    def times(self) -> Times | None: ...


class _Device(Protocol):
    @property
    def rank(self) -> int | None: ...
    @property
    def steps(self) -> Sequence[_Step]: ...


@dataclass(frozen=True, slots=True)
class Basis:
    """The device-steps that a run is judged by, as places in the steps of each device.

    ``name`` is ``complete_steps`` (steps that are not open-ended and present on every rank),
    ``all_steps`` where there is none, ``windows`` where the traces have no step markers.
    """

    name: str
    places: tuple[tuple[int, ...], ...]
    notes: tuple[Note, ...] = ()


def choose(devices: Sequence[_Device]) -> Basis:
    """Choose the steps that are complete on every rank; if there is none, all, with a note."""
    everywhere = _on_every_rank(devices)
    every = [
        [place for place, step in enumerate(device.steps) if step.times] for device in devices
    ]
    complete = [
        [place for place in places if _is_complete(device.steps[place], everywhere)]
        for device, places in zip(devices, every, strict=True)
    ]
    if any(complete):
        marked = any(
            device.steps[place].step is not None
            for device, places in zip(devices, complete, strict=True)
            for place in places
        )
        name = "complete_steps" if marked else "windows"
        return Basis(name, tuple(map(tuple, complete)))
    notes: tuple[Note, ...] = ()
    if any(every):
        notes = (
            Note(
                "no_complete_step",
                "no step is complete on every rank, so the summary takes all steps, also the "
                "last one, whose end nothing marks",
            ),
        )
    return Basis("all_steps", tuple(map(tuple, every)), notes)


def _is_complete(step: _Step, everywhere: set[int | None]) -> bool:
    return not step.open_ended and step.step in everywhere


def _on_every_rank(devices: Sequence[_Device]) -> set[int | None]:
    """Which steps do all ranks have? Traces of unknown rank count as one each."""
    ranks: dict[object, set[int | None]] = {}
    for index, device in enumerate(devices):
        rank = f"unknown {index}" if device.rank is None else device.rank
        found = ranks.setdefault(rank, set())
        found.update(step.step for step in device.steps if step.times)
    return set.intersection(*ranks.values()) if ranks else set()
