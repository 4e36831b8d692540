"""JSON text of events to typed records; the msgspec engine.

Whole blocks decode at once into :class:`Event`, which names the few fields that any table
keeps. A block that does not decode is taken event by event, and an event that does not is
read leniently: wrong types become their nearest right ones, and what is no event at all is
counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

__all__ = ["Args", "Event", "decode_args", "decode_block", "decode_piece"]

Scalar: TypeAlias = int | float | str | bool | None
_NOTHING = msgspec.Raw(b"")


class Args(msgspec.Struct, gc=False, frozen=True):
    """The arguments of an event that tables keep."""

    correlation: Scalar = None
    external_id: Scalar = msgspec.field(default=None, name="External id")
    external_id_old: Scalar = msgspec.field(default=None, name="external id")
    device: Scalar = None
    stream: Scalar = None
    collective: str | None = msgspec.field(default=None, name="Collective name")


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
_piece = msgspec.json.Decoder(Event)
_arguments = msgspec.json.Decoder(list[Args | None])
_NO_ARGS = Args()
_DAMAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_block(text: bytes) -> list[Event] | None:
    """Decode the inside of an array of events, or say with ``None`` that some of it is odd."""
    try:
        return _block.decode(b"[" + text + b"]")
    except _DAMAGE:
        return None


def decode_piece(text: bytes) -> Event | None:
    """Decode one event, leniently; ``None`` if it is none."""
    try:
        return _piece.decode(text)
    except _DAMAGE:
        pass
    try:
        found = json.loads(text.decode("utf-8", "replace"), parse_float=str, strict=False)
    except (ValueError, RecursionError):
        return None
    return _from_dict(found) if isinstance(found, dict) else None


def decode_args(events: Sequence[Event]) -> list[Args]:
    """Decode the arguments of events; those without any get empty ones."""
    texts = [event.args or b"null" for event in events]
    try:
        found = _arguments.decode(b"[" + b",".join(texts) + b"]")
    except _DAMAGE:
        return [_lenient_args(bytes(text)) for text in texts]
    return [args or _NO_ARGS for args in found]


def _from_dict(found: dict[str, Any]) -> Event:
    return Event(
        ph=_text(found.get("ph")) or "",
        cat=_text(found.get("cat")),
        name=_text(found.get("name")) or "",
        pid=_scalar(found.get("pid")),
        tid=_scalar(found.get("tid")),
        ts=_raw(found.get("ts")),
        dur=_raw(found.get("dur")),
        args=_NOTHING if found.get("args") is None else _json(found["args"]),
    )


def _lenient_args(text: bytes) -> Args:
    found = json.loads(text.decode("utf-8", "replace"), parse_float=str, strict=False)
    if not isinstance(found, dict):
        return _NO_ARGS
    return Args(
        correlation=_scalar(found.get("correlation")),
        external_id=_scalar(found.get("External id")),
        external_id_old=_scalar(found.get("external id")),
        device=_scalar(found.get("device")),
        stream=_scalar(found.get("stream")),
        collective=_text(found.get("Collective name")),
    )


def _text(value: object) -> str | None:
    # a lone surrogate has no UTF-8, and every table and report is UTF-8
    return None if value is None else str(value).encode("utf-8", "replace").decode("utf-8")


def _json(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def _scalar(value: object) -> Scalar:
    return value if isinstance(value, int | str) else None


def _raw(value: object) -> msgspec.Raw:
    return _NOTHING if value is None else msgspec.Raw(str(value).encode())
