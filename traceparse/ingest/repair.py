"""One event that does not decode, made to decode if its meaning is beyond doubt.

Off the fast path: only what the typed decoder refuses comes here. Each repair has a name, which
is counted in ``files[].repaired``:

============== ====================================================================
not_utf8       bytes that are no UTF-8, replaced by the replacement character
control_character  raw line breaks, tabs and the like in a string, kept
bare_word      ``N/A``, ``inf``, ``nan`` where a value belongs, taken as null
blank_value    nothing where a value belongs, taken as null
trailing_comma  a comma before a closing bracket, dropped
backslash      a backslash that escapes nothing, taken as a slash, as libkineto does now
quote_in_string  a quote inside a string that is not escaped, kept
missing_quote  a key without its opening quote (autograd profiler, pytorch issue 33961)
stray_bracket  brackets too many behind an event (taken off by :mod:`.apart`)
duplicate_key  a key twice in an object: the last one counts
odd_type       valid JSON of another type than the field has: its nearest right value
============== ====================================================================
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from traceparse.ingest.decode import Event, decode_event, event_from

__all__ = ["Repaired", "loads_leniently", "repair"]

Repaired = Counter[str]

_LONGEST = 1 << 18  # bytes of an event that is repaired: what takes longer than it is worth
_DAMAGE = (ValueError, RecursionError, msgspec.DecodeError)

_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})|(?<!\\)(?:\\\\)*\\\Z')
# strings are matched first so that nothing in them is touched
_OUTSIDE_STRINGS = re.compile(
    r'"(?:[^"\\]|\\.)*"'
    r"|(?P<blank>:)(?=\s*[,}])"
    r"|(?P<comma>,)(?=\s*[}\]])"
    r"|(?<=[:,\[\s])(?P<word>[-+]?[A-Za-z][\w./#+-]*)",
    re.DOTALL,
)
_LITERALS = frozenset({"true", "false", "null"})
_MISSING_QUOTE = re.compile(r'([,{]\s*)([A-Za-z_]\w*"\s*:)')
_KEYS = "ph|cat|name|pid|tid|ts|dur|args|id|s|bp"
# a name ends where another key of events follows, whatever quotes are in it
_NAME_BEGINS = re.compile(r'"name"\s*:\s*"')
_NAME_ENDS = re.compile(rf'"\s*(?:,\s*"(?:{_KEYS})"\s*:|\}}\s*\Z)')
# and a backslash before that end escapes nothing
_LAST_BACKSLASH = re.compile(rf'\\(?="\s*,\s*"(?:{_KEYS})"\s*:)')
# any other string ends where any key or the end of its object follows
_STRING = re.compile(
    r'("[^"\\\n]{1,64}"\s*:\s*")((?:[^"\\]|\\.|"(?!\s*(?:,\s*"[^"\n]{1,64}"\s*:|[}\]])))*)(?=")',
    re.DOTALL,
)
_BARE_QUOTE = re.compile(r'\\.|"', re.DOTALL)


def repair(text: bytes) -> tuple[Event | None, Repaired]:
    """Decode one event, repairing what can be; say what was. ``None`` if it is none."""
    event = decode_event(text)
    if event is not None or len(text) > _LONGEST:
        return event, Counter()
    tried: set[str] = set()
    for candidate, done in _candidates(text):
        if candidate in tried:
            continue
        tried.add(candidate)
        found = loads_leniently(candidate, done)
        # a repair that yields no phase has made something of what is left of an event
        if isinstance(found, dict) and ("ph" in found or not done):
            return event_from(found), +done if done else Counter({"odd_type": 1})
    return None, Counter()


def _candidates(text: bytes) -> Iterator[tuple[str, Repaired]]:
    """Yield readings of a text, the least changed first, with what was done to get there."""
    plain, done = _as_text(text)
    yield plain, done
    slashed = _step(plain, done, "backslash", _BAD_ESCAPE.sub("/", plain))
    yield slashed
    yield _outside_strings(*slashed)
    unescaped = _step(
        plain, done, "backslash", _BAD_ESCAPE.sub("/", _LAST_BACKSLASH.sub("/", plain))
    )
    if unescaped[0] != slashed[0]:
        yield unescaped
        yield _outside_strings(*unescaped)
    quoted = _quotes(*slashed)
    if quoted[0] != slashed[0]:
        yield quoted
        yield _outside_strings(*quoted)


def _as_text(text: bytes) -> tuple[str, Repaired]:
    try:
        return text.decode("utf-8"), Counter()
    except UnicodeDecodeError:
        return text.decode("utf-8", "replace"), Counter({"not_utf8": 1})


def _step(old: str, done: Repaired, reason: str, new: str) -> tuple[str, Repaired]:
    return (old, done) if new == old else (new, done + Counter({reason: 1}))


def _outside_strings(text: str, done: Repaired) -> tuple[str, Repaired]:
    text, done = _step(text, done, "missing_quote", _MISSING_QUOTE.sub(r'\1"\2', text))
    seen: Repaired = Counter()

    def mend(found: re.Match[str]) -> str:
        if found["blank"]:
            seen["blank_value"] = 1
            return ": null"
        if found["comma"]:
            seen["trailing_comma"] = 1
            return ""
        if found["word"] and found["word"] not in _LITERALS:
            seen["bare_word"] = 1
            return "null"
        return found[0]

    return _OUTSIDE_STRINGS.sub(mend, text), done + seen


def _quotes(text: str, done: Repaired) -> tuple[str, Repaired]:
    """Escape quotes in the name, and in strings among the arguments; nowhere else.

    A category with a quote in it is no category: there the damage is of another kind.
    """
    named = text
    begins = _NAME_BEGINS.search(text)
    ends = _NAME_ENDS.search(text, begins.end()) if begins else None
    if begins and ends:
        name = _escaped(text[begins.end() : ends.start()])
        named = text[: begins.end()] + name + text[ends.start() :]
    head, key, args = named.partition('"args"')
    args = _STRING.sub(lambda found: found[1] + _escaped(found[2]), args)
    return _step(text, done, "quote_in_string", head + key + args)


def _escaped(inside: str) -> str:
    return _BARE_QUOTE.sub(lambda bare: '\\"' if bare[0] == '"' else bare[0], inside)


def loads_leniently(text: str, done: Repaired) -> Any:  # noqa: ANN401 - any JSON value
    """Read JSON, fractions as text so that no digit is lost; ``None`` if it is not JSON.

    Adds to ``done`` what Python's reader lets pass: NaN and infinities (taken as null), raw
    control characters, keys that occur twice.
    """
    seen: Repaired = Counter()

    def constant(_: str) -> None:
        seen["bare_word"] = 1

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            seen["duplicate_key"] = 1
        return found

    for strict in (True, False):
        seen.clear()
        try:
            found = json.loads(
                text,
                parse_float=str,
                parse_constant=constant,
                object_pairs_hook=pairs,
                strict=strict,
            )
        except _DAMAGE:
            continue
        if not strict:
            seen["control_character"] = 1
        done.update(seen)
        return found
    return None
