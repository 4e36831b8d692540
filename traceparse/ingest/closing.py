"""Where the array of events closes, in text that damage may have torn."""

from __future__ import annotations

import re
from collections import deque

from traceparse.ingest.decode import is_json
from traceparse.ingest.split import Seam, outline

__all__ = ["OVERLAP", "goes_on", "may_follow", "rest_of_document"]

OVERLAP = 256  # bytes behind a bracket are enough to tell
_MOST_TRIES = 8  # brackets that may be the last one
_OF_EVENT = (
    rb'"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s)"'  # keys of events, not of documents
)
_ANOTHER_KEY = re.compile(rb"\Z|,\s*+(?:\Z|(?!" + _OF_EVENT + rb')")')
_ANOTHER_DOCUMENT = re.compile(rb"\}\s*+(?:\Z|\[|\{(?!\s*" + _OF_EVENT + rb"))")
_ANOTHER_LIST = re.compile(rb'\}?\s*+(?:\Z|\[|\{\s*"schemaVersion")')
_MORE_EVENTS = re.compile(rb",\s*\{|,?\s*\{?\s*" + _OF_EVENT)
_MAY_CLOSE = re.compile(rb'\]\s*,\s*"')


def may_follow(text: bytes, *, is_list: bool) -> bool:
    """Say whether this may stand behind the bracket that closes the events.

    Another key may, or the end of the document; what is left of a torn event may not.
    """
    rest = text.lstrip()
    if is_list:
        return _ANOTHER_LIST.match(rest) is not None
    return bool(_ANOTHER_KEY.match(rest) or _ANOTHER_DOCUMENT.match(rest))


def goes_on(text: bytes) -> bool:
    """Say whether what stands behind a bracket shows that it did not close the events."""
    return _MORE_EVENTS.match(text.lstrip()) is not None


def rest_of_document(text: bytes) -> Seam | None:
    """Find where the array closes behind torn events at the end of a file.

    A valid rest of the document tells. Where the file breaks off, fewer brackets close than
    open, and a list among an event's arguments would look the same.
    """
    if outline(text).end < 0:
        return None
    for found in deque(_MAY_CLOSE.finditer(text), maxlen=_MOST_TRIES):
        if is_json(b'{"' + text[found.end() :]):
            return Seam(found.start(), found.start() + 1)
    return None
