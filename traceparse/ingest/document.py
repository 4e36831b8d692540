"""One trace file as a stream of decoded events, and its header.

Blocks of the file go through one buffer; what is decoded leaves it. The header may stand on
either side of the events, in any order. What breaks off is used up to there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from traceparse.errors import InputError
from traceparse.ingest import sniff
from traceparse.ingest.decode import Event, decode_block, decode_piece
from traceparse.ingest.source import Source
from traceparse.ingest.split import Separator, delimiter, outline, pieces

__all__ = ["BLOCK", "Document"]

BLOCK = 1 << 20  # of 0.25 to 4 MiB the fastest: what it decodes to still fits the cache
_MOST = 64 << 20  # the longest header, trailer or single event that is held in memory
_MOST_DECOYS = (
    64  # nested keys of that name that are looked at before the header counts as damaged
)

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
# header facts that are looked for one by one where the header as a whole does not decode
_FACTS = ("distributedInfo", "baseTimeNanoseconds", "deviceProperties", "schemaVersion")
_DAMAGE = (ValueError, RecursionError)


class Document:
    """The events of one file, in order, a list at a time, by :meth:`batches`; then its facts.

    ``header`` holds the top-level keys other than ``traceEvents`` (complete only after the last
    batch); ``damage`` says in words what was wrong, ``truncated`` whether the end is missing,
    ``undecodable`` how many events could not be read.
    """

    def __init__(self, source: Source, *, block: int = BLOCK) -> None:
        self.header: dict[str, Any] = {}
        self.layout = ""
        self.truncated = False
        self.damage: list[str] = []
        self.undecodable = 0
        self._source = source
        self._block = block
        self._buffer = b""
        self._read_all = False
        self._offset = 0
        self._is_list = False
        self._first_bytes = b""

    def batches(self) -> Iterator[list[Event]]:
        """Decode the file from its first event to its last."""
        self._read_head()
        separator = delimiter(self._buffer)
        self.layout = self._name_layout(separator)
        ended = False
        while not ended:
            events, ended = self._next(separator)
            yield events
        if not self.truncated:
            self._read_tail()
        if self._source.damage:
            self.truncated = True
            self.damage = [self._source.damage]

    # -- the buffer

    def _fill(self) -> bool:
        """Read one block more; say whether there was one."""
        more = b"" if self._read_all else self._source.read(self._block)
        self._read_all = not more
        self._buffer += more
        return bool(more)

    def _drop(self, count: int) -> None:
        self._buffer = self._buffer[count:]
        self._offset += count

    # -- before the events

    def _read_head(self) -> None:
        path = self._source.path
        while not self._buffer.strip() and self._fill():
            pass
        self._buffer = self._buffer.removeprefix(b"\xef\xbb\xbf")
        self._first_bytes = self._buffer[:4]
        if not self._buffer.strip():
            raise sniff.empty(path, self._source.damage, self._source.size)
        if other := sniff.binary(path, self._buffer):
            raise other
        blanks = len(self._buffer) - len(self._buffer.lstrip())
        if self._buffer[blanks : blanks + 1] == b"[":
            self._is_list = True
            self._drop(blanks + 1)
            while not self._buffer.strip() and self._fill():
                pass
            if other := sniff.listing(path, self._buffer.lstrip()):
                raise other
        else:
            self._find_events()

    def _find_events(self) -> None:
        """Drop all up to the bracket that opens the events, keeping the header."""
        while True:
            for found in islice(_EVENTS_KEY.finditer(self._buffer), _MOST_DECOYS):
                header = _loads(self._buffer[: found.end() - 1] + b"0}")
                if header is not None:  # it decodes, so this is no key inside something else
                    header.pop("traceEvents")
                    self.header.update(header)
                    self._drop(found.end())
                    return
            if len(self._buffer) > _MOST or not self._fill():
                break
        first = _EVENTS_KEY.search(self._buffer)
        if first is None:
            raise self._no_events()
        self.header.update(_salvage(self._buffer[: first.start()]))
        self.damage.append("its header is damaged; what could be read of it is used")
        self._drop(first.end())

    def _no_events(self) -> InputError:
        path = self._source.path
        if not self._read_all:
            return InputError(
                f"{path}: no traceEvents in its first {_MOST >> 20} MiB, so it is no profiler "
                f"trace; give the trace file that torch.profiler exported"
            )
        try:
            found = json.loads(self._buffer)
        except _DAMAGE as error:
            if self._source.damage or outline(self._buffer.lstrip()[1:]).end < 0:
                return sniff.empty(path, self._source.damage or "the file breaks off", 1)
            return InputError(
                f"{path}: this is not valid JSON ({_short(error)}) and has no traceEvents; "
                f"give the trace file that torch.profiler exported"
            )
        return sniff.document(path, found)

    def _name_layout(self, separator: Separator | None) -> str:
        if self._is_list:
            return "list"
        if separator is None:
            return "compact"
        if separator.close == 1:
            return "python-export"
        first_line = self._buffer.lstrip()[1:].lstrip().partition(b"\n")[0]
        if first_line.count(b'": ') > 1:
            return "libkineto"
        return "libkineto-2026" if self._first_bytes.startswith(b" {") else "indented"

    # -- the events

    def _next(self, separator: Separator | None) -> tuple[list[Event], bool]:
        """Decode what the buffer holds of whole events; say whether they were the last."""
        more = self._fill()
        if more and separator:
            cut = self._buffer.rfind(separator.between)
            events = decode_block(self._buffer[: cut + separator.close]) if cut >= 0 else None
            if events is not None:
                self._drop(cut + len(separator.between) - 1)
                return events, False
        return self._next_by_outline(separator, more=more)

    def _next_by_outline(
        self, separator: Separator | None, *, more: bool
    ) -> tuple[list[Event], bool]:
        text = self._buffer
        shape = outline(text)
        ended = shape.end >= 0
        if ended:
            cut, following = shape.end, shape.end + 1
        elif shape.commas.size:
            cut = int(shape.commas[-1])
            following = cut + 1
        else:
            cut = following = 0
        events = decode_block(text[:cut])
        if events is None and separator:
            return self._next_by_separator(separator)
        if events is None:
            events = self._one_by_one(pieces(text[:cut], separator))
        self._drop(following)
        if not ended and not more:
            return events + self._last_words(), True
        return events, ended or self._too_long()

    def _next_by_separator(self, separator: Separator) -> tuple[list[Event], bool]:
        """Take a block with damage in it apart where no damage can hide a boundary."""
        text = self._buffer
        end = separator.end_of_array(text)
        if end >= 0:
            events = self._one_by_one(pieces(text[:end], separator))
            self._drop(text.index(b"]", end) + 1)
            return events, True
        cut = text.rfind(separator.between)
        if cut < 0:
            return (self._last_words(), True) if self._read_all else ([], self._too_long())
        events = self._one_by_one(pieces(text[: cut + separator.close], separator))
        self._drop(cut + len(separator.between) - 1)
        return events, False

    def _one_by_one(self, texts: list[bytes]) -> list[Event]:
        events = [decode_piece(text) for text in texts if text.strip()]
        kept = [event for event in events if event is not None]
        self.undecodable += len(events) - len(kept)
        return kept

    def _last_words(self) -> list[Event]:
        """Use the last event of a file that breaks off, if it is whole."""
        self.truncated = True
        self.damage.append(f"it breaks off after byte {self._offset + len(self._buffer)}")
        event = decode_piece(self._buffer) if self._buffer.strip() else None
        return [event] if event else []

    def _too_long(self) -> bool:
        if len(self._buffer) <= _MOST:
            return False
        self.truncated = True
        self.damage.append(
            f"from byte {self._offset} on no event ends within {_MOST >> 20} MiB, so it is not "
            f"read further"
        )
        return True

    # -- after the events

    def _read_tail(self) -> None:
        while len(self._buffer) <= _MOST and self._fill():
            pass
        text = self._buffer.strip()
        if self._is_list or text == b"}":
            return
        tail = _loads(b"{" + text.removeprefix(b",")) if text else None
        if tail is None:
            self.truncated = not text.endswith(b"}")
            self.damage.append(
                "it breaks off after the events"
                if self.truncated
                else "what follows its events is damaged; what could be read of it is used"
            )
            tail = _salvage(text)
        self.header.update(tail)


def _loads(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text, strict=False)
    except _DAMAGE:
        return None
    return found if isinstance(found, dict) else None


def _salvage(text: bytes) -> dict[str, Any]:
    """Pick single facts out of a header that does not decode as a whole."""
    words = text.decode("utf-8", "replace")
    facts = {}
    for key in _FACTS:
        found = re.search(rf'"{key}"\s*:\s*', words)
        if found:
            try:
                facts[key] = json.JSONDecoder(strict=False).raw_decode(words, found.end())[0]
            except _DAMAGE:
                continue
    return facts


def _short(error: Exception) -> str:
    return str(error) or type(error).__name__
