"""What a trace says about itself: rank, world size, devices, the base of its clock.

Every fact may be missing, in words where a number belongs, or on either side of the events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from traceparse.ingest.decode import text_of
from traceparse.ingest.numbers import LIMIT, unsigned
from traceparse.ingest.ranks import MOST_RANKS, ranks_text

__all__ = ["Header", "read_header", "who"]

_PROPERTIES = (  # of a device: what traceparse.work reads of it, and which one it is
    *("id", "name", "computeMajor", "computeMinor", "warpSize", "numSms", "totalGlobalMem"),
    "maxThreadsPerMultiprocessor",
)
_LONGEST_PROPERTY = 200  # letters
_MOST_DEVICES = 64
_FACTS = ("model_flop_per_step", "params", "tokens_per_step", "num_threads")
_INT64 = 1 << 63
_LARGEST_FACT = 10**30  # nobody has as many FLOP in a step
_MOST_GROUPS = 1 << 12
_LONGEST_GROUP = 256  # letters of a name
_MOST_LETTERS = 1 << 20  # of the ranks of all groups
_RANK_IN_NAME = re.compile(r"(?<![a-z])(?:rank|worker)[-_. ]?(\d{1,7})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Header:
    """Facts of one file that the analysis uses; ``None`` where the file does not say.

    ``base_ns`` is what the file's times count from, as Unix nanoseconds. ``devices`` are the
    entries of ``deviceProperties``, as far as anything is made of them; ``facts`` are whole
    numbers above 0 that :func:`traceparse.profile` was told of the job. ``groups`` maps names
    of process groups to all their ranks, as :func:`traceparse.units.parse_ranges` reads them.
    """

    rank: int | None
    world_size: int | None
    backend: str | None
    base_ns: int | None
    device_names: tuple[str, ...]
    trace_id: str | None = None
    devices: tuple[Mapping[str, Any], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)


def read_header(found: Mapping[str, Any]) -> Header:
    """Pick the facts out of the top-level keys of a trace."""
    job = found.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    backend = job.get("backend")
    devices = found.get("deviceProperties")
    devices = devices if isinstance(devices, list) else []
    devices = [device for device in devices if isinstance(device, dict)]
    return Header(
        rank=_number(job.get("rank"), below=MOST_RANKS),
        world_size=_number(job.get("world_size"), below=MOST_RANKS + 1) or None,
        backend=(text_of(backend) or None) if isinstance(backend, str) else None,
        base_ns=_number(found.get("baseTimeNanoseconds"), below=LIMIT),
        device_names=tuple(text_of(device.get("name") or None) or "" for device in devices),
        trace_id=text_of(found.get("trace_id") or None),
        devices=tuple(map(_properties, devices[:_MOST_DEVICES])),
        facts=_facts(found.get("traceparse")),
        groups=_groups(job.get("pg_config")),
    )


def who(header: Header, path: Path, given: int | None) -> tuple[int | None, str | None]:
    """Which rank wrote this file, and how do we know? Inside, its name, or being told."""
    if header.rank is not None:
        return header.rank, "distributedInfo"
    named = _RANK_IN_NAME.findall(path.name)
    if named:
        return int(named[-1]), "file name"
    if given is not None:
        return given, "given"
    return None, None


def _properties(device: Mapping[str, Any]) -> dict[str, Any]:
    """Pick what is made something of, as far as it is a number or a text and has an end."""
    return {
        key: str(text_of(value)) if isinstance(value, str) else value
        for key in _PROPERTIES
        if _is_kept(value := device.get(key))
    }


def _is_kept(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_PROPERTY
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _INT64


def _groups(told: object) -> dict[str, str]:
    """Read the ranks of process groups; a name that two of them have says nothing."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    num_letters = 0
    for group in told[:_MOST_GROUPS] if isinstance(told, list) else ():
        name = _name(group.get("pg_name")) if isinstance(group, dict) else None
        ranks = ranks_text(group.get("ranks")) if name else None
        if name is None or ranks is None:
            continue
        if name in seen and found.get(name) != ranks:
            found.pop(name, None)
        elif name not in seen and num_letters + len(ranks) <= _MOST_LETTERS:
            found[name] = ranks
            num_letters += len(ranks)
        seen.add(name)
    return found


def _name(value: object) -> str | None:
    """Write the name of a group, which was a number once."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    name = str(text_of(value)) if isinstance(value, str) or abs(value) < _INT64 else ""
    return name if 0 < len(name) <= _LONGEST_GROUP else None


def _facts(told: object) -> dict[str, int]:
    """Pick the known facts out of what :func:`traceparse.profile` wrote, if it is that."""
    if not isinstance(told, dict):
        return {}
    numbers = {key: _whole(told.get(key)) for key in _FACTS}
    return {key: number for key, number in numbers.items() if number is not None}


def _whole(value: object) -> int | None:
    """Read a whole number above 0 and below 10^30; ``1e15`` is one, and is text here."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    # the size first: 1e999999999 must not become an integer of a billion digits
    if not number.is_finite() or not 1 <= number < _LARGEST_FACT:
        return None
    return int(number) if number == int(number) else None


def _number(value: object, *, below: int) -> int | None:
    number = unsigned([value])[0]
    return number if number is not None and number < below else None
