"""The arguments of collectives: few events have them, so they stand in a table of their own."""

from __future__ import annotations

import json

import msgspec

from traceparse.ingest.decode import text_of

__all__ = ["call_args"]

# As libkineto and record_param_comms write them, in any version
_KEYS = frozenset(
    {
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
    }
)
_LONGEST = 4096  # letters of a value: writers shorten lists to 30 entries
_TOO_LARGE = 1 << 64  # for any number that means something here
_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def call_args(text: bytes) -> dict[str, str]:
    """Return the arguments of a collective among those of an event, given as JSON.

    Texts as they are, whole numbers as text; what has another type is left out.
    """
    try:
        found = {
            key: msgspec.json.decode(value)
            for key, value in _decoder.decode(text).items()
            if key in _KEYS
        }
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _odd(text)
    return {
        key: str(text_of(value))[:_LONGEST] for key, value in found.items() if _is_kept(value)
    }


def _is_kept(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) < _TOO_LARGE
    return isinstance(value, str)


def _odd(text: bytes) -> dict[str, object]:
    try:
        found = json.loads(text.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return {}
    return {key: found[key] for key in _KEYS & found.keys()} if isinstance(found, dict) else {}
