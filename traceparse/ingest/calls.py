"""The arguments of collectives: few events have them, so they stand in a table of their own."""

from __future__ import annotations

import json

import msgspec

from traceparse.ingest.decode import text_of

__all__ = ["call_args"]

# As libkineto and record_param_comms write them, in any version
_KEYS = (
    "Collective name",
    "Comms Id",
    "Dst Rank",
    "Global rank start",
    "Global rank stride",
    "Group size",
    "In msg nelems",
    "In msg size",
    "In split size",
    "Is asynchronized op",
    "Out msg nelems",
    "Out msg size",
    "Out split size",
    "Process Group Description",
    "Process Group ID",
    "Process Group Name",
    "Process Group Ranks",
    "Rank",
    "Seq",
    "Src Rank",
    "dtype",
)
_LONGEST = 4096  # letters of a value: writers shorten lists to 30 entries
_TOO_LARGE = 1 << 64  # for any number that means something here
_Usual: type[msgspec.Struct] = msgspec.defstruct(
    "_Usual",
    [
        (f"argument_{place}", int | str | None, msgspec.field(default=None, name=key))
        for place, key in enumerate(_KEYS)
    ],
    gc=False,
)
_usual = msgspec.json.Decoder(_Usual)
_DAMAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def call_args(text: bytes) -> dict[str, str]:
    """Return the arguments of a collective among those of an event, given as JSON.

    Texts as they are, whole numbers as text; what has another type is left out.
    """
    try:
        values = msgspec.structs.astuple(_usual.decode(text))
    except _DAMAGE:
        values = tuple(map(_odd(text).get, _KEYS))
    return {
        key: str(text_of(value))[:_LONGEST]
        for key, value in zip(_KEYS, values, strict=True)
        if value is not None and _is_kept(value)
    }


def _is_kept(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) < _TOO_LARGE
    return isinstance(value, str)


def _odd(text: bytes) -> dict[str, object]:
    """Read arguments of which one has another type, or is no JSON."""
    try:
        found = json.loads(text.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
