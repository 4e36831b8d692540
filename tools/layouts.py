"""Write one list of events as each program in the wild writes it.

The layouts are those of ``kineto-format.md``, section 1.1. Numbers of type :class:`Num` appear
as they are spelled, so no time ever passes through a float.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import zstandard

__all__ = ["CONTAINERS", "LAYOUTS", "Event", "Num", "Style", "encode", "write_layout"]

Event = Mapping[str, Any]


class Num(str):
    """A number, spelled as the file is to spell it: ``Num("1234.500")``."""

    __slots__ = ()


class Style:
    """How a JSON value is spaced: between items, after a key, and by level if indented."""

    def __init__(self, item: str = ", ", key: str = ": ", indent: int | None = None) -> None:
        self.item, self.key, self.indent = item, key, indent


SPACED = Style()
TIGHT = Style(",", ":")

_quoted = lru_cache(maxsize=1 << 14)(json.dumps)  # a trace says few words, and often


def encode(value: object, style: Style = SPACED, level: int = 0) -> str:
    """Return a value as JSON text; :class:`Num` verbatim, everything else as ``json`` would."""
    if isinstance(value, str):
        return str(value) if isinstance(value, Num) else _quoted(value)
    if isinstance(value, int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        pairs = [
            _quoted(key) + style.key + encode(item, style, level + 1)
            for key, item in value.items()
        ]
        return _wrap("{}", pairs, style, level)
    if isinstance(value, Sequence):
        items = [encode(item, style, level + 1) for item in value]
        return _wrap("[]", items, style, level)
    return json.dumps(value)


def _wrap(brackets: str, parts: Sequence[str], style: Style, level: int) -> str:
    opening, closing = brackets[0], brackets[1]
    if not parts or style.indent is None:
        return opening + style.item.join(parts) + closing
    outer = "\n" + " " * style.indent * level
    inner = outer + " " * style.indent
    return opening + inner + ("," + inner).join(parts) + outer + closing


def _members(header: Mapping[str, Any], style: Style = SPACED) -> list[str]:
    return [f"{_quoted(key)}: {encode(value, style)}" for key, value in header.items()]


# -- libkineto before April 2026: several keys a line, two spaces before every brace --------


def _k_old(events: Sequence[Event], before: Event, after: Event) -> str:
    head = "".join(f"  {member},\n" for member in _members(before))
    body = ",".join(map(_k_old_event, events))
    tail = "".join(f",\n  {member}" for member in _members(after))
    return f'\n{{\n{head}  "traceEvents": [{body}\n  ]{tail}\n}}\n'


def _k_2021(events: Sequence[Event], before: Event, after: Event) -> str:
    """As the first releases: the name on its own line, and the list closed with the file."""
    head = "".join(f"  {member},\n" for member in _members(before))
    body = ",".join(_k_old_event(event, after_category=" \n    ") for event in events)
    if not after:
        return f'\n{{\n{head}  "traceEvents": [{body}\n]}}'
    tail = "".join(f",\n  {member}" for member in _members(after))
    return f'\n{{\n{head}  "traceEvents": [{body}\n]{tail}\n}}'


def _k_old_event(event: Event, after_category: str = " ") -> str:
    phase = event.get("ph")
    lines: list[tuple[str, ...]]
    if phase == "M":
        lines = [("name", "ph", "ts", "pid", "tid")]
    elif phase in ("s", "f"):
        lines = [("ph", "id", "pid", "tid", "ts"), ("cat", "name", "bp")]
    elif phase == "i":
        lines = [("name", "ph", "s"), ("pid", "tid", "ts")]
    elif event.get("cat") == "Trace":
        lines = [("ph", "cat", "ts", "dur"), ("pid", "tid"), ("name",)]
    else:
        lines = [("ph", "cat", "name", "pid", "tid"), ("ts", "dur")]
    known = [key for line in lines for key in line]
    rest = [key for key in event if key not in known and key != "args"]
    rows = [_row(event, line) for line in [*lines, tuple(rest)]]
    text = ",\n    ".join(row for row in rows if row)
    if phase == "X" and "cat" in event:
        text = text.replace(', "name"', f',{after_category}"name"', 1)
    return f"\n  {{\n    {text}{_k_args(event)}\n  }}"


def _row(event: Event, keys: Sequence[str]) -> str:
    return ", ".join(f'"{key}": {encode(event[key])}' for key in keys if key in event)


def _k_args(event: Event) -> str:
    if "args" not in event:
        return ""
    return f',\n    "args": {{\n      {_k_arg_list(event["args"])}\n    }}'


def _k_arg_list(args: Event) -> str:
    """Join arguments as libkineto does: no space after the id, which it writes by itself."""
    text = ", ".join(_members(args))
    return text.replace(", ", ",", 1) if next(iter(args), None) == "External id" else text


# -- libkineto from April 2026: one key a line, a comma alone where arguments follow ---------


def _k_new(events: Sequence[Event], before: Event, after: Event) -> str:
    known = ("schemaVersion", "deviceProperties", "displayTimeUnit", "baseTimeNanoseconds")
    first = "".join(_k_new_member(before, key, "    ") for key in known[:2])
    user = "".join(_k_new_member(before, key, "      ") for key in before if key not in known)
    last = "".join(_k_new_member(before, key, "    ") for key in known[2:])
    body = ",".join(map(_k_new_event, events))
    tail = ",".join(_members(after))
    return (
        f' {{\n{first}    \n{user}{last}    "traceEvents": [\n    {body}\n  ]'
        + ("," if tail else "")
        + f"{tail} }}"
    )


def _k_new_member(header: Event, key: str, margin: str) -> str:
    return f'{margin}"{key}": {encode(header[key])},\n' if key in header else ""


def _k_new_event(event: Event) -> str:
    phase = event.get("ph")
    keys = ["ph", "cat", "s", "name", "ts", "pid", "tid", "dur", "id"]
    if phase in ("X", "i"):
        keys = ["ph", "cat", "s", "name", "pid", "tid", "ts", "dur"]
    elif phase in ("s", "f"):
        keys = ["ph", "id", "pid", "tid", "ts", "cat", "name"]
    rest = [key for key in event if key not in keys and key != "args"]
    lines = [f'    "{key}": {encode(event[key])}' for key in [*keys, *rest] if key in event]
    if phase == "i":  # the real writer leaves a line there for a category that is not
        lines[0] += ",\n    "
        lines = [f"{lines[0]}\n{lines[1]}", *lines[2:]]
    text = ",\n".join(lines)
    gap = "" if phase == "M" else "\n    "
    return f"\n  {{\n{text}{gap}{_k_args(event)}\n  }}"


# -- torch's own Python writer: one event a line ---------------------------------------------


def _py(events: Sequence[Event], before: Event, after: Event) -> str:
    head = "".join(f"{member},\n" for member in _members(before))
    body = ",\n".join(map(_py_event, events))
    tail = "".join(f",\n{member}" for member in _members(after))
    return f'{{\n{head}"traceEvents": [\n{body}\n]{tail}\n}}\n'


def _py_event(event: Event) -> str:
    parts = [f'"{key}":{encode(value, TIGHT)}' for key, value in event.items() if key != "args"]
    if "args" in event:
        tight = encode(event["args"], TIGHT)
        parts.append(
            f'"args":{tight if event["ph"] == "M" else "{" + _k_arg_list(event["args"]) + "}"}'
        )
    return "{" + ",".join(parts) + "}"


# -- json.dump and its relatives --------------------------------------------------------------


def _dumped(style: Style) -> Callable[[Sequence[Event], Event, Event], str]:
    def write(events: Sequence[Event], before: Event, after: Event) -> str:
        return encode(_shortened({**before, "traceEvents": events, **after}), style)

    return write


# -- lists: no place for any key of the header ------------------------------------------------


def _plain_list(events: Sequence[Event], _before: Event, _after: Event) -> str:
    return encode(events)


def _legacy(events: Sequence[Event], _before: Event, _after: Event) -> str:
    keys = ("name", "ph", "ts", "dur", "tid", "pid", "id", "cat", "args")
    return encode([{key: event[key] for key in keys if key in event} for event in events])


def _shortened(value: object) -> object:
    """Drop the zeros that a float loses on its way through ``json``: 154.330 becomes 154.33."""
    if isinstance(value, Num):
        whole, dot, part = value.partition(".")
        plain = dot and part.isdigit()
        return Num(f"{whole}.{part.rstrip('0') or '0'}") if plain else value
    if isinstance(value, Mapping):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_shortened(item) for item in value]
    return value


LAYOUTS: dict[str, Callable[[Sequence[Event], Event, Event], str]] = {
    "k-2021": _k_2021,
    "k-old": _k_old,
    "k-new": _k_new,
    "py": _py,
    "mon": _dumped(TIGHT),
    "jd1": _dumped(Style(indent=1)),
    "jd2": _dumped(Style(indent=2)),
    "jd4": _dumped(Style(indent=4)),
    "jd8": _dumped(Style(indent=8)),
    "c1": _dumped(SPACED),
    "c2": _dumped(Style(",", ": ")),
    "list": _plain_list,
    "leg": _legacy,
}


def write_layout(
    events: Sequence[Event],
    header: Mapping[str, Any],
    layout: str,
    *,
    trailing: Collection[str] = ("traceName",),
) -> bytes:
    """Return the bytes of a trace file in one of :data:`LAYOUTS`.

    Header keys named in ``trailing`` come after ``traceEvents``, the others before it, as
    the writer of the layout would place them.
    """
    before = {key: value for key, value in header.items() if key not in trailing}
    after = {key: value for key, value in header.items() if key in trailing}
    return LAYOUTS[layout](events, before, after).encode()


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _gzip_members(data: bytes) -> bytes:
    """Three members, cut where no line or event ends, as a writer that appends leaves them."""
    cuts = [0, len(data) // 3, 2 * len(data) // 3 + 1, len(data)]
    return b"".join(_gzip(data[start:end]) for start, end in pairwise(cuts))


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(data)


CONTAINERS: dict[str, Callable[[bytes], bytes]] = {
    "json": bytes,
    "json.gz": _gzip,
    "members.json.gz": _gzip_members,
    "json.zst": _zstd,
}
