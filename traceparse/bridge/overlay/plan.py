"""What is written, so that the file stays under its size: the most important things first.

What was drawn is put aside layer by layer and step by step. Sizes only grow, so that a choice
that has become too large stays so: then the next one is taken, and what no later one has is
not drawn any more. So the limit holds to the byte, and every trace is read once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from traceparse.bridge.overlay.lines import MOST_AROUND, Event, encoded
from traceparse.bridge.overlay.steps import StepPlaces, Window
from traceparse.intervals import Int64s
from traceparse.spill import Place, Spill

__all__ = [
    "COLLECTIVES",
    "COUNTERS",
    "DETAILS_NS",
    "FINDINGS",
    "FLOWS",
    "LAUNCHES",
    "NAMES",
    "OPERATORS",
    "PYTHON",
    "Choice",
    "Entry",
    "Plan",
    "choices",
    "host_layer",
    "tracks_layer",
]

NAMES, FINDINGS, COUNTERS = "names", "findings", "counters"
COLLECTIVES, FLOWS = "collectives", "flows"
LAUNCHES, OPERATORS, PYTHON = range(3)  # what of the host is drawn, each with those before it
_NO_HOST = -1
_HOST_WORDS: Final = ("launches", "host operators", "Python functions")
# slices shorter than that are put together; the last one leaves one of each step
DETAILS_NS: Final = (0, 10_000, 100_000, 1_000_000, 10_000_000, 1 << 62)
_FEW_STEPS = 3  # fewer say less than the host's operators do


def host_layer(most: int) -> str:
    """Name what is drawn of hosts: launches and annotations, also operators, also Python."""
    return f"host {most}"


def tracks_layer(detail: int) -> str:
    """Name what is drawn of devices, at one of the :data:`DETAILS_NS`."""
    return f"tracks {detail}"


@dataclass(frozen=True)
class Choice:
    """What is written: of which steps, in which detail."""

    window: Window
    detail: int
    host: int
    has_extras: bool = True  # counters and collectives

    def has(self, layer: str, first: int, last: int) -> bool:
        """Say whether it has something that goes from one step's place to another's."""
        return layer in self.layers and (
            layer in (NAMES, FINDINGS) or self.window.has(first, last)
        )

    @cached_property
    def layers(self) -> frozenset[str]:
        """The layers that it has."""
        found = {NAMES, FINDINGS, tracks_layer(self.detail)}
        if self.host != _NO_HOST:
            found |= {host_layer(self.host), FLOWS}
        if self.has_extras:
            found |= {COLLECTIVES, COUNTERS}
        return frozenset(found)

    def left_out(self, best: Choice) -> Iterator[str]:
        """Say what another choice would have had besides."""
        if self.host == _NO_HOST:
            yield "host events"
        elif self.host < best.host:
            yield " and ".join(_HOST_WORDS[self.host + 1 : best.host + 1])
        if self.detail:
            limit = DETAILS_NS[self.detail]
            yield (
                "single kernels: there is a slice a step and stream"
                if self.detail == len(DETAILS_NS) - 1
                else f"slices shorter than {limit // 1000:,} us: neighbors are put together"
            )
        if not self.has_extras:
            yield "counters and collectives"


def choices(
    steps: StepPlaces, asked: Window | None, num_complete: int, *, has_python: bool
) -> list[Choice]:
    """Return what may be written, the best first.

    Python functions go first, then steps down to a few, operators, all of the host, more
    steps, and at last single kernels. ``num_complete`` is how many of the steps, from the
    first one on, have an end on all devices; ``has_python`` says whether there is such a thing.
    """
    every = list(_windows(steps, asked, num_complete))
    few = [window for window in every if window.last - window.first + 1 >= _FEW_STEPS]
    found = [Choice(every[0], 0, PYTHON)] if has_python else []
    found += [Choice(window, 0, OPERATORS) for window in few or every[:1]]
    for host in (LAUNCHES, _NO_HOST):
        found += [Choice(window, 0, host) for window in every]
    smallest = every[-1]
    found += [Choice(smallest, detail, _NO_HOST) for detail in range(1, len(DETAILS_NS))]
    return [*found, Choice(smallest, len(DETAILS_NS) - 1, _NO_HOST, has_extras=False)]


def _windows(steps: StepPlaces, asked: Window | None, num_complete: int) -> Iterator[Window]:
    """Yield what is asked for, then fewer steps: complete ones, half as many each time."""
    yield asked or steps.everything
    first, last = asked or Window(1, len(steps.numbers))
    if not asked and last:
        yield Window(first, last)
    last = max(min(last, num_complete), first)
    while first < last:
        yield Window(first, last)
        first = last - (last - first + 2) // 2 + 1
    if steps.numbers:
        yield Window(first, last)


@dataclass(frozen=True, slots=True)
class Entry:
    """Lines that are put aside; ``first`` and ``last`` are the places of their steps."""

    layer: str
    first: int
    last: int
    lines: Place
    starts: Place | None
    first_ns: int
    num: int
    size: int


class Plan:
    """Takes what is drawn, and knows which choice it still allows."""

    def __init__(self, ordered: Sequence[Choice], max_bytes: int, *, has_details: bool) -> None:
        self._choices = [one for one in ordered if has_details or not one.detail]
        self._max_bytes = max_bytes
        self._sizes: Counter[tuple[str, int, int]] = Counter()
        self._spill = Spill()
        self._at = 0
        self._num_bytes = 0  # of the choice
        self._reserved = 0
        self.entries: list[Entry] = []
        self.least_bytes = 0

    @property
    def best(self) -> Choice:
        """What would be written were there room for all."""
        return self._choices[0]

    @property
    def choice(self) -> Choice | None:
        """The best choice that fits; ``None`` if none does any more."""
        return self._choices[self._at] if self._at < len(self._choices) else None

    def wants(self, layer: str, first: int, last: int) -> bool:
        """Say whether the choice, or one that may yet be taken, has such a thing."""
        return any(one.has(layer, first, last) for one in self._choices[self._at :])

    def wants_layer(self, layer: str) -> bool:
        """Say whether any step of a layer may be written."""
        return any(layer in one.layers for one in self._choices[self._at :])

    def put(
        self, layer: str, events: Sequence[Event], starts_ns: Int64s | None, at: Window
    ) -> None:
        """Put events of one layer aside, in order, with their times if they have any."""
        if not events or not self.wants(layer, at.first, at.last):
            return
        lines = encoded(events)
        size = len(lines) + len(events) * MOST_AROUND
        entry = Entry(
            layer,
            at.first,
            at.last,
            self._spill.put(lines),
            None
            if starts_ns is None
            else self._spill.put(starts_ns.astype(np.int64).tobytes()),
            0 if starts_ns is None else int(starts_ns.min()),
            len(events),
            size,
        )
        self.entries.append(entry)
        self._sizes[layer, at.first, at.last] += size
        if self.choice is not None and self.choice.has(layer, at.first, at.last):
            self._num_bytes += size
        while self.choice is not None and self._num_bytes > self._max_bytes:
            self.least_bytes = self._num_bytes + self._reserved
            self._at += 1
            self._num_bytes = self._size()

    def reserve(self, num_bytes: int) -> None:
        """Leave room for what is not in lines."""
        self._max_bytes -= num_bytes
        self._reserved += num_bytes

    def chosen(self) -> list[Entry]:
        """Return what is to be written, in the order in which it was put aside."""
        choice = self.choice
        if choice is None:
            return []
        return [one for one in self.entries if choice.has(one.layer, one.first, one.last)]

    def content(self, entry: Entry) -> tuple[bytes, Int64s | None]:
        """Return the lines of an entry, and when they begin."""
        lines = self._spill.get(entry.lines)
        if entry.starts is None:
            return lines, None
        return lines, np.frombuffer(self._spill.get(entry.starts), np.int64)

    def _size(self) -> int:
        choice = self.choice
        if choice is None:
            return 0
        return sum(
            size
            for (layer, first, last), size in self._sizes.items()
            if choice.has(layer, first, last)
        )
