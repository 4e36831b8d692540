"""One document of a file as a stream of decoded events, and its header.

Blocks go through one window; what is decoded leaves it. Valid JSON takes the fast path. A
block with damage in it is taken apart at its seams, so that one broken event costs one event;
what breaks off is used up to there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from traceparse.ingest.apart import Apart, take_apart
from traceparse.ingest.closing import OVERLAP, goes_on, may_follow, rest_of_document
from traceparse.ingest.decode import Event, decode_block, is_json
from traceparse.ingest.envelope import read_opening, read_trailer
from traceparse.ingest.native import CLOSED, MORE, NativeEngine
from traceparse.ingest.repair import Repaired, repair
from traceparse.ingest.split import (
    KeySeams,
    LineSeams,
    ObjectSeams,
    Outline,
    Seam,
    Seams,
    find_seams,
    layout_of,
    outline,
)
from traceparse.ingest.window import MOST, Window

__all__ = ["Document"]

_HEADER = re.compile(rb'"schemaVersion"\s*:')
_LAST_EVENT = "Record Window End"  # libkineto's and torch's last event
_PIECE = 2 << 20  # bytes that are taken apart at a time
_DOUBTFUL_PIECE = 1 << 16  # the same, at least, where the native engine stopped
_PATIENCE = 1 << 20  # of text without a whole event before that is taken for damage
_MOST_ENDS = 8  # places where the last event may end that are tried


class Document:
    """The events of one document, in order, by :meth:`batches`; then its facts.

    What ``native`` takes goes to its collector at once and is in no batch.

    ``header`` holds the top-level keys other than ``traceEvents`` (complete only after the
    last batch); ``damage`` says in words what was wrong, ``truncated`` whether the end is
    missing; ``undecodable`` counts events that could not be read, ``repaired`` those that
    could after a repair, by its name; ``headers_inside`` counts headers among the events.
    """

    def __init__(self, window: Window, native: NativeEngine | None = None) -> None:
        self.header: dict[str, Any] = {}
        self.layout = ""
        self.truncated = False
        self.damage: list[str] = []
        self.undecodable = 0
        self.headers_inside = 0
        self.repaired = Repaired()
        self._window = window
        self._native = native
        self._last_name: str | None = ""
        self._closes = True
        self._is_list = False
        self._is_stuck = False
        self._follows_comma = False
        self._piece = _DOUBTFUL_PIECE if native else _PIECE  # bytes that are outlined at a time

    def batches(self) -> Iterator[list[Event]]:
        """Decode the document from its first event to its last.

        Raises
        ------
        InputError
            It is no trace.
        """
        window = self._window
        opening = read_opening(window, self.repaired)
        self.header.update(opening.facts)
        self._is_list = opening.is_list
        self.damage.extend([opening.damage] if opening.damage else [])
        window.hold(OVERLAP)  # enough to see how the first event is laid out
        seams = find_seams(window.text)
        self.layout = layout_of(
            window.text, seams, opening.first_bytes, is_list=opening.is_list
        )
        ended = False
        while not ended:
            events, ended = self._next(seams)
            if self._native and (events or ended):
                self._native.flush()  # these come first
            if events:
                self._last_name = events[-1].name
            yield events
        if self._closes and not self.truncated:
            trailer = read_trailer(window, self.repaired, is_list=opening.is_list)
            self.header.update(trailer.facts)
            self.truncated = trailer.truncated
            self.damage.extend([trailer.damage] if trailer.damage else [])
        if window.source.damage and not window.text.strip():
            self.truncated = True
            self.damage = [window.source.damage]

    def _next(self, seams: Seams) -> tuple[list[Event], bool]:
        """Decode what the window holds of whole events; say whether they were the last."""
        window = self._window
        if self._is_stuck or len(window.text) < window.block:
            window.fill()
        self._is_stuck = False
        if self._native:
            ended = self._next_natively(self._native)
            if ended is not None:
                return [], ended
        if isinstance(seams, LineSeams) and self._piece == _PIECE:
            seam = seams.last(window.text)
            events = decode_block(window.text[: seam.end]) if seam else None
            if seam and events is not None:
                window.drop(seam.following)
                return events, False
        return self._next_by_outline(seams)

    def _next_natively(self, native: NativeEngine) -> bool | None:
        """Let the native engine take what it can; say whether that was the last event.

        ``None`` if the next event is not for it.
        """
        window = self._window
        taken, ended = native.take(window.text), False
        at = taken.at
        if taken.status == CLOSED:
            ended = self._closes_at(at)
            if not ended:
                native.give_back()
            at = at + 1 if ended else taken.last
            native.flush(window.text)
        # the more is not for it, the more is tried the other way before it goes on
        self._piece = _DOUBTFUL_PIECE if at > self._piece else min(2 * self._piece, _PIECE)
        if at:
            self._last_name = None  # the engine knows it
            self._follows_comma = True
        window.drop(at)
        return ended if ended or (at and taken.status == MORE) else None

    def _next_by_outline(self, seams: Seams) -> tuple[list[Event], bool]:
        window = self._window
        shape = _outline_of_some(window.text, self._piece)
        ended = shape.end >= 0
        nothing = not ended and not shape.commas.size
        if (ended and not self._closes_at(shape.end)) or (nothing and self._is_torn(seams)):
            return self._next_by_seams(seams)
        text, commas = window.text, shape.commas.tolist()
        if ended:
            cut = Seam(shape.end, shape.end + 1)
        else:
            cut = Seam(commas[-1], commas[-1] + 1) if commas else Seam(0, 0)
        events = decode_block(text[: cut.end])
        if events is None:
            events = self._all_of(_elements(text, commas, cut.end))
        if events is None:
            return self._next_by_seams(seams)
        window.drop(cut.following)
        if not ended:
            self._follows_comma = self._follows_comma or bool(cut.following)
            return events, self._stop_if_stuck(events, seams, stuck=not cut.following)
        begin = commas[-1] + 1 if commas else 0
        if (begin or self._follows_comma) and not text[begin : shape.end].strip():
            self.repaired["trailing_comma"] += 1
        return events, True

    def _closes_at(self, place: int) -> bool:
        """Say whether a closing bracket is that of the events, by what follows it."""
        window = self._window
        if window.text[place : place + 1] != b"]":
            return False
        window.hold(place + 1 + OVERLAP)
        return may_follow(window.text[place + 1 : place + OVERLAP], is_list=self._is_list)

    def _is_torn(self, seams: Seams) -> bool:
        """Say whether a window shows no whole event for a quote or bracket too many."""
        window = self._window
        if not window.at_end and len(window.text) < _PATIENCE:
            return False
        return seams.first(window.text) is not None or any(seams.ends(window.text))

    def _all_of(self, texts: list[bytes]) -> list[Event] | None:
        """Repair every one of these elements, or say with ``None`` that one is no JSON."""
        done = Repaired()
        events = []
        num_other = 0
        for text in texts:
            if _HEADER.search(text):
                return None
            event, how = repair(text)
            if event is not None:
                events.append(event)
            elif is_json(text) and b'"ph"' not in text:
                num_other += 1
            else:
                return None
            done.update(how)
        self.repaired.update(done)
        self.undecodable += num_other
        return events

    def _next_by_seams(self, seams: Seams) -> tuple[list[Event], bool]:
        """Take a block with damage in it apart where no damage can hide a boundary."""
        window = self._window
        text = window.text
        if isinstance(seams, LineSeams):
            end = next(seams.ends(text), None)
            if end is not None:
                events = self._one_by_one(seams.pieces(text[: end.end]))
                window.drop(end.following)
                return events, True
        seam = seams.last(text)
        events = self._one_by_one(seams.pieces(text[: seam.end])) if seam else []
        window.drop(seam.following if seam else 0)
        if window.at_end and isinstance(seams, KeySeams):
            ending = self._ending(seams)
            if ending is not None:
                return events + ending, True
        return events, self._stop_if_stuck(events, seams, stuck=seam is None)

    def _ending(self, seams: KeySeams) -> list[Event] | None:
        """Return the last events, if the array closes behind them: where, decoding tells."""
        text = self._window.text
        best: tuple[Apart, Seam] | None = None
        for seam in islice(self._likely_ends(seams), _MOST_ENDS):
            apart = take_apart(text[: seam.end])
            if best is None or len(apart.events) > len(best[0].events):
                best = apart, seam
            if not apart.ends_torn:
                break
        if best is None:
            return None
        self._window.drop(best[1].following)
        return self._count(best[0])

    def _likely_ends(self, seams: KeySeams) -> Iterator[Seam]:
        """Find where the array may close: where no more events follow, if there is such."""
        text = self._window.text
        likely = (
            seam
            for seam in seams.ends(text)
            if not goes_on(text[seam.following : seam.following + OVERLAP])
        )
        first = next(likely, None)
        return seams.ends(text) if first is None else chain((first,), likely)

    def _count(self, apart: Apart) -> list[Event]:
        """Count what was repaired and what was lost, and return the events."""
        self.repaired.update(apart.repaired)
        self.undecodable += apart.num_lost
        return apart.events

    def _one_by_one(self, texts: list[bytes]) -> list[Event]:
        kept = []
        for text in texts:
            if _HEADER.search(text):
                self.undecodable += 1
                self.headers_inside += 1
            elif text.strip():
                kept.extend(self._count(take_apart(text)))
        return kept

    def _stop_if_stuck(self, events: list[Event], seams: Seams, *, stuck: bool) -> bool:
        """Decide what to do when no event ended: read on, give up one event, or end."""
        self._is_stuck = stuck
        if not stuck:
            return False
        if self._window.at_end:
            closing = rest_of_document(self._window.text)
            if closing is not None:
                events.extend(self._one_by_one([self._window.text[: closing.end]]))
                self._window.drop(closing.following)
                return True
            events.extend(self._last_words())
            self._close(events)
            return True
        return self._window.is_full and self._give_up(events, seams)

    def _last_words(self) -> list[Event]:
        """Use what is whole of the end of a file that breaks off."""
        window = self._window
        self.truncated = True
        self.damage.append(f"it breaks off after byte {window.offset + len(window.text)}")
        events: list[Event] = []
        if window.text.strip():
            apart = take_apart(window.text)
            events = self._count(apart)
            self.undecodable -= apart.ends_torn  # that the file breaks off says it
        window.drop(len(window.text))
        return events

    def _close(self, events: list[Event]) -> None:
        """Take a file whose last event is there for whole, though its brackets do not close."""
        last = events[-1].name if events else self._last_name
        if last is None and self._native:
            last = self._native.last_name
        if last == _LAST_EVENT and not self._window.source.damage:
            self.truncated = False
            self._closes = False
            self.damage.pop()
            self.repaired["missing_bracket"] += 1

    def _give_up(self, events: list[Event], seams: Seams) -> bool:
        """Make do with the weakest seams, or give up one event; say whether it was the last."""
        window = self._window
        seam = ObjectSeams().last(window.text)
        if seam is None:
            return self._skip_event(seams)
        events.extend(self._one_by_one([window.text[: seam.end]]))
        window.drop(seam.following)
        return False

    def _skip_event(self, seams: Seams) -> bool:
        """Give up an event that is too long to hold; say whether it was the last."""
        window = self._window
        self.undecodable += 1
        while True:
            seam = seams.first(window.text)
            if seam is not None:
                window.drop(seam.following)
                return False
            window.drop(max(len(window.text) - OVERLAP, 0))
            if not window.fill():
                self.truncated = True
                self.damage.append(
                    f"an event of more than {MOST >> 20} MiB is not read, and none follows it"
                )
                return True


def _outline_of_some(text: bytes, size: int) -> Outline:
    """Outline as much of a window as has any whole event."""
    shape = outline(text[:size])
    if shape.end < 0 and not shape.commas.size and len(text) > size:
        return outline(text)
    return shape


def _elements(text: bytes, commas: list[int], end: int) -> list[bytes]:
    starts = [0, *(comma + 1 for comma in commas)]
    bounds = zip(starts, [*commas, end], strict=True)
    return [text[a:b] for a, b in bounds if b > a and text[a:b].strip()]
