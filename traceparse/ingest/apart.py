"""A piece of damaged text, taken apart: the events in it that are whole, and how many are not.

Off the fast path. Seams between events are known by what events begin with, so an event whose
own beginning is torn hangs together with the one before it. Here whole objects are taken off
the front of such a piece, and what lies between them is counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from traceparse.ingest.decode import Event
from traceparse.ingest.repair import Repaired, repair
from traceparse.ingest.split import ObjectSeams

__all__ = ["Apart", "take_apart"]

_OBJECT_SEAMS = ObjectSeams()
_BEGIN = re.compile(rb'\{\s*"')
_GOES_ON = re.compile(r'\s*+,\s*+"(\w{1,32})"\s*+:')  # after a bracket that closed too early
_PHASE = b'"ph"'  # every event has one
_OBJECTS = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)
_PATIENCE = 8  # times the length of a piece: how much is read to find out where events are
_AROUND = b" \t\r\n,"
_CLOSED = b" \t\r\n,]}"


class Apart(NamedTuple):
    """The events of a piece, the repairs that they needed, and how many more there were.

    ``ends_torn`` says that the last thing in the piece was no whole event.
    """

    events: list[Event]
    repaired: Repaired
    num_lost: int
    ends_torn: bool


def take_apart(piece: bytes) -> Apart:
    """Decode a piece of text that should hold one event, but may hold several, or torn ones."""
    whole, repaired = repair(piece)
    if whole is not None:
        return Apart([whole], repaired, 0, ends_torn=False)
    events: list[Event] = []
    num_lost, ends_torn = 0, False
    for part in _parts(piece):
        num_phases = part.count(_PHASE)
        event, done = (None, Repaired())
        if num_phases and len(part) < len(piece):
            event, done = repair(part)
        if event is not None:
            events.append(event)
            repaired.update(done)
        elif not part.strip(_CLOSED):
            repaired["stray_bracket"] += 1
            continue
        elif num_phases or not ends_torn:  # else an object among the arguments of a torn one
            num_lost += max(1, num_phases)
        ends_torn = event is None
    return Apart(events, repaired, num_lost, ends_torn)


def _parts(piece: bytes) -> Iterator[bytes]:
    """Cut a piece around every whole event in it, and what is left where objects begin."""
    place = 0
    for start, end in (*_whole_events(piece), (len(piece), len(piece))):
        torn = [part.strip(_AROUND) for part in _OBJECT_SEAMS.pieces(piece[place:start])]
        yield from filter(None, (*torn, piece[start:end]))
        place = end


def _whole_events(piece: bytes) -> Iterator[tuple[int, int]]:
    """Find where valid objects that are events begin and end."""
    text = piece.decode("latin-1")  # so that places in it are places in the piece
    patience = _PATIENCE * len(piece)
    place = 0
    while patience > 0 and (begin := _BEGIN.search(piece, place)):
        start = begin.start()
        try:
            found, end = _OBJECTS.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            # an error's position is counted in lines from the beginning: that takes time too
            patience -= getattr(error, "pos", len(text))
            place = start + 1
            continue
        patience -= end - start
        goes_on = _GOES_ON.match(text, end)
        if "ph" not in found:
            place = end
        elif goes_on and goes_on[1] not in found:
            place = start + 1
        else:
            yield start, end
            place = end
