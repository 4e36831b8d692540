"""What stands around the events: a header before them, a trailer behind, keys in any order."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any, NamedTuple

from traceparse.errors import InputError
from traceparse.ingest import sniff
from traceparse.ingest.repair import Repaired, loads_leniently
from traceparse.ingest.split import outline
from traceparse.ingest.window import MOST, Window

__all__ = ["Opening", "Trailer", "read_opening", "read_trailer"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SMALL = 1 << 16  # bytes: what is looked at first of what may be long
_ENOUGH = 64  # bytes, to tell what kind of file it is
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_MOST_DECOYS = 64  # nested keys of that name that are looked at
# header facts that are looked for one by one where the header as a whole does not decode
_FACTS = (
    "distributedInfo",
    "baseTimeNanoseconds",
    "deviceProperties",
    "schemaVersion",
    "trace_id",
    "traceparse",
)
_JOB_FACTS = re.compile(
    r'"(rank|world_size)"\s*:\s*"?(\d{1,9})\b|"(backend)"\s*:\s*"([\w:,]+)"'
)
_NEXT_DOCUMENT = re.compile(rb'\}\s*(?=\{\s*"schemaVersion"\s*:)')
_DAMAGE = (ValueError, RecursionError)


class Opening(NamedTuple):
    """What came before the events; ``is_list`` if the file is a bare list of them."""

    facts: dict[str, Any]
    is_list: bool
    first_bytes: bytes
    damage: str | None = None


class Trailer(NamedTuple):
    """What came behind the events."""

    facts: dict[str, Any]
    truncated: bool = False
    damage: str | None = None


def read_opening(window: Window, repaired: Repaired) -> Opening:
    """Drop all up to the bracket that opens the events, and return what the header says.

    Raises
    ------
    InputError
        The file is no trace.
    """
    path = window.source.path
    window.hold(_ENOUGH)
    window.text = window.text.removeprefix(_BYTE_ORDER_MARK)
    first_bytes = window.text[:4]
    window.skip_blanks()
    window.hold(_ENOUGH)
    if not window.text:
        raise sniff.empty(path, window.source.damage, window.source.size)
    if other := sniff.binary(path, window.text):
        raise other
    if not window.text.startswith(b"["):
        facts, damage = _find_events(window, repaired)
        return Opening(facts, is_list=False, first_bytes=first_bytes, damage=damage)
    window.drop(1)
    window.skip_blanks()
    window.hold(_SMALL)
    if other := sniff.listing(path, window.text):
        raise other
    return Opening({}, is_list=True, first_bytes=first_bytes)


def _find_events(window: Window, repaired: Repaired) -> tuple[dict[str, Any], str | None]:
    while True:
        text, seen, shape = window.text, 0, outline(b"")
        for found in islice(_EVENTS_KEY.finditer(text), _MOST_DECOYS):
            if found.start() >= seen:
                seen = max(2 * found.start(), _SMALL)
                shape = outline(text[1:seen])
            if shape.is_top_level(found.start() - 1):
                return _header(window, found, repaired)
        if window.is_full or not window.fill():
            break
    # nowhere at the top level: a stray quote before it hides what is inside a string
    decoy = _EVENTS_KEY.search(window.text)
    if decoy is None:
        raise _no_events(window)
    return _header(window, decoy, repaired)


def _header(
    window: Window, key: re.Match[bytes], repaired: Repaired
) -> tuple[dict[str, Any], str | None]:
    text = window.text[: key.start()]
    window.drop(key.end())
    facts = _loads(text.rstrip().removesuffix(b",") + b"}", repaired)
    if facts is not None:
        return facts, None
    return _salvage(text), "its header is damaged; what could be read of it is used"


def _no_events(window: Window) -> InputError:
    path, damage = window.source.path, window.source.damage
    if not window.at_end and window.is_full:
        return InputError(
            f"{path}: no traceEvents in its first {MOST >> 20} MiB, and a longer header is not "
            f"read; give the trace file that torch.profiler exported"
        )
    try:
        found = json.loads(window.text)
    except _DAMAGE as error:
        if damage or outline(window.text[1:]).end < 0:
            return sniff.empty(path, damage or "the file breaks off", 1)
        return InputError(
            f"{path}: this is not valid JSON ({str(error) or type(error).__name__}) and has no "
            f"traceEvents; give the trace file that torch.profiler exported"
        )
    return sniff.document(path, found)


def read_trailer(window: Window, repaired: Repaired, *, is_list: bool) -> Trailer:
    """Drop what stands behind the events, and return what it says.

    The window then begins with whatever follows the document: nothing, or another one.
    """
    window.skip_blanks()
    if is_list:
        return Trailer({})
    end = _end_of_object(window)
    facts = None
    if end >= 0:
        facts = _loads(b"{" + window.text[:end].lstrip().removeprefix(b",") + b"}", repaired)
    if facts is not None:
        window.drop(end + 1)
        window.skip_blanks()
        return Trailer(facts)
    return _damaged_trailer(window)


def _end_of_object(window: Window) -> int:
    """Return where the object that the window begins inside closes, or -1; look no further."""
    size = _SMALL
    while True:
        window.hold(min(size, MOST))
        end = outline(window.text[:size]).end
        if end >= 0 or size >= MOST or (window.at_end and size >= len(window.text)):
            return end
        size *= 4


def _damaged_trailer(window: Window) -> Trailer:
    following = _NEXT_DOCUMENT.search(window.text)
    text = window.text[: following.start() + 1] if following else window.text
    facts = _salvage(text)
    if not following and not text.rstrip().endswith(b"}") and window.at_end:
        window.drop(len(text))
        return Trailer(facts, truncated=True, damage="it breaks off after the events")
    window.drop(following.end() if following else len(text))
    return Trailer(
        facts, damage="what follows its events is damaged; what could be read of it is used"
    )


def _loads(text: bytes, repaired: Repaired) -> dict[str, Any] | None:
    """Read an object, repairing only what Python's reader lets pass."""
    done: Repaired = Repaired()
    words = text.decode("utf-8", "replace")
    if words.encode() != text:
        done["not_utf8"] = 1
    found = loads_leniently(words, done)
    if not isinstance(found, dict):
        return None
    repaired.update(done)
    return found


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
                if key == "distributedInfo" and (job := _job_facts(words[found.end() :])):
                    facts[key] = job
    return facts


def _job_facts(words: str) -> dict[str, str]:
    """Pick rank, world size and backend out of a ``distributedInfo`` with damage in it."""
    facts: dict[str, str] = {}
    for found in _JOB_FACTS.finditer(words):
        key, value = (found[1], found[2]) if found[1] else (found[3], found[4])
        facts.setdefault(key, value)
    return facts
