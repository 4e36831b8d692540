"""JSON text of events to typed records; the msgspec engine.

Whole blocks decode at once into :class:`Event`, which names the few fields that any table
keeps. What the typed decoder refuses goes to :mod:`traceparse.ingest.repair`, event by event.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

__all__ = [
    "NO_ARGS",
    "Args",
    "Event",
    "copied_bytes",
    "decode_args",
    "decode_block",
    "decode_event",
    "event_from",
    "is_json",
    "kept_text",
    "num_bytes",
    "text_of",
]

Scalar: TypeAlias = int | float | str | bool | None
_NOTHING, _NULL = msgspec.Raw(b""), msgspec.Raw(b"null")
_MOST_BYTES = 1 << 62  # of a copy: no memory is as large
_LONGEST_RAW = 4096  # bytes of an argument that is kept as it is, as in _scanner.c


class Args(msgspec.Struct, gc=False, frozen=True):
    """The arguments of an event that tables keep."""

    correlation: Scalar = None
    external_id: Scalar = msgspec.field(default=None, name="External id")
    external_id_old: Scalar = msgspec.field(default=None, name="external id")
    device: Scalar = None
    stream: Scalar = None
    collective: str | None = msgspec.field(default=None, name="Collective name")
    sent: Any = msgspec.field(default=None, name="In msg nelems")
    sent_old: Any = msgspec.field(default=None, name="In msg size")
    finished: Scalar = None
    input_dims: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input Dims")
    input_dims_old: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input dims")
    input_types: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input type")
    concrete_inputs: msgspec.Raw = msgspec.field(default=_NOTHING, name="Concrete Inputs")
    sequence_number: Scalar = msgspec.field(default=None, name="Sequence number")
    forward_thread: Scalar = msgspec.field(default=None, name="Fwd thread id")
    copied: Any = msgspec.field(default=None, name="bytes")

    @property
    def is_call(self) -> bool:
        """Whether the event is a call of a collective: it has a name or sizes of one."""
        return not (self.collective is None and self.sent is None and self.sent_old is None)


class _Copied(msgspec.Struct, gc=False, frozen=True):
    """The one argument of a copy that only copies have."""

    bytes: Any = None


class Event(msgspec.Struct, gc=False):
    """One element of ``traceEvents``; times and arguments stay text until they are needed."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: Scalar = None
    tid: Scalar = None
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING
    args: msgspec.Raw = _NOTHING


_block = msgspec.json.Decoder(list[Event])
_event = msgspec.json.Decoder(Event)
_all_args = msgspec.json.Decoder(list[Args | None])
_all_copied = msgspec.json.Decoder(list[_Copied | None])
_one_args = msgspec.json.Decoder(Args | None)
NO_ARGS = Args()
_DAMAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_block(text: bytes) -> list[Event] | None:
    """Decode the inside of an array of events, or say with ``None`` that some of it is odd."""
    try:
        return _block.decode(b"[" + text + b"]")
    except _DAMAGE:
        return None


def decode_event(text: bytes) -> Event | None:
    """Decode one event, or say with ``None`` that it is odd."""
    try:
        return _event.decode(text)
    except _DAMAGE:
        return None


def is_json(text: bytes) -> bool:
    """Say whether a text is one valid JSON value."""
    try:
        msgspec.json.decode(text)
    except _DAMAGE:
        return False
    return True


def event_from(found: Mapping[str, Any]) -> Event:
    """Make an event of a JSON object whose fields may have any type."""
    args = found.get("args")
    return Event(
        ph=text_of(found.get("ph")) or "",
        cat=text_of(found.get("cat")),
        name=text_of(found.get("name")) or "",
        pid=_scalar(found.get("pid")),
        tid=_scalar(found.get("tid")),
        ts=_raw(found.get("ts")),
        dur=_raw(found.get("dur")),
        args=_NOTHING if args is None else msgspec.Raw(json.dumps(args).encode()),
    )


def decode_args(events: Sequence[Event]) -> tuple[list[Args], Counter[str]]:
    """Decode the arguments of events, and count the repairs that some needed.

    Events without any get empty ones; odd ones get their nearest right values.
    """
    texts = [event.args or b"null" for event in events]
    repaired: Counter[str] = Counter()
    try:
        found = _all_args.decode(b"[" + b",".join(texts) + b"]")
    except _DAMAGE:
        return [_args_of(text, repaired) for text in texts], repaired
    return [args or NO_ARGS for args in found], repaired


def _args_of(text: bytes, repaired: Counter[str]) -> Args:
    try:
        return _one_args.decode(text) or NO_ARGS
    except _DAMAGE:
        return _odd_args(bytes(text), repaired)


def _odd_args(text: bytes, repaired: Counter[str]) -> Args:
    words = text.decode("utf-8", "replace")
    repaired["odd_type" if words.encode() == text else "not_utf8"] += 1
    try:
        found = json.loads(words, parse_float=str, strict=False)
    except (ValueError, RecursionError):  # the block's decoder skips deeper than Python reads
        return NO_ARGS
    if not isinstance(found, dict):
        return NO_ARGS
    return Args(
        correlation=_scalar(found.get("correlation")),
        external_id=_scalar(found.get("External id")),
        external_id_old=_scalar(found.get("external id")),
        device=_scalar(found.get("device")),
        stream=_scalar(found.get("stream")),
        collective=text_of(found.get("Collective name")),
        sent=found.get("In msg nelems"),
        sent_old=found.get("In msg size"),
        finished=_scalar(found.get("finished")),
        input_dims=_dumped(found.get("Input Dims")),
        input_dims_old=_dumped(found.get("Input dims")),
        input_types=_dumped(found.get("Input type")),
        concrete_inputs=_dumped(found.get("Concrete Inputs")),
        sequence_number=_scalar(found.get("Sequence number")),
        forward_thread=_scalar(found.get("Fwd thread id")),
        copied=found.get("bytes"),
    )


def copied_bytes(texts: Sequence[bytes]) -> list[int | None]:
    """Return the bytes that copies say to move, given their arguments as JSON."""
    try:
        found = _all_copied.decode(b"[" + b",".join(text or b"null" for text in texts) + b"]")
    except _DAMAGE:
        return [num_bytes(_args_of(text, Counter()).copied) for text in texts]
    return [num_bytes(copied.bytes if copied else None) for copied in found]


def num_bytes(value: object) -> int | None:
    """Return a number of bytes, if it can be one."""
    return value if type(value) is int and 0 <= value < _MOST_BYTES else None


def kept_text(*spellings: msgspec.Raw) -> str | None:
    """Return the JSON text of an argument: of the first of its spellings that is not null.

    ``None`` if there is none, or if it is longer than any that says something.
    """
    for raw in spellings:
        if raw and raw != _NULL:
            return str(raw, "utf-8", "replace") if len(raw) <= _LONGEST_RAW else None
    return None


def _dumped(value: object) -> msgspec.Raw:
    """Write a value as JSON again, unless it is nested deeper than Python writes."""
    try:
        return _NOTHING if value is None else msgspec.Raw(json.dumps(value).encode())
    except RecursionError:
        return _NOTHING


def text_of(value: object) -> str | None:
    """Return text that has UTF-8, as tables and reports are: a lone surrogate has none."""
    return None if value is None else str(value).encode("utf-8", "replace").decode("utf-8")


def _scalar(value: object) -> Scalar:
    if isinstance(value, str):
        return text_of(value)
    return value if isinstance(value, int) else None


def _raw(value: object) -> msgspec.Raw:
    return _NOTHING if value is None else msgspec.Raw(str(text_of(value)).encode())
