"""What a trace says about itself: rank, world size, devices, the base of its clock.

Every fact may be missing, in words where a number belongs, or on either side of the events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traceparse.ingest.decode import text_of
from traceparse.ingest.numbers import LIMIT, unsigned

__all__ = ["Header", "read_header", "who"]

_MOST_RANKS = 1 << 20  # more than anybody has; a claim above it is not believed
_RANK_IN_NAME = re.compile(r"(?<![a-z])(?:rank|worker)[-_. ]?(\d{1,7})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Header:
    """Facts of one file that the analysis uses; ``None`` where the file does not say.

    ``base_ns`` is what the file's times count from, as Unix nanoseconds.
    """

    rank: int | None
    world_size: int | None
    backend: str | None
    base_ns: int | None
    device_names: tuple[str, ...]
    trace_id: str | None = None
    devices: tuple[Mapping[str, Any], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


def read_header(found: Mapping[str, Any]) -> Header:
    """Pick the facts out of the top-level keys of a trace."""
    job = found.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    backend = job.get("backend")
    devices = found.get("deviceProperties")
    return Header(
        rank=_number(job.get("rank"), below=_MOST_RANKS),
        world_size=_number(job.get("world_size"), below=_MOST_RANKS + 1) or None,
        backend=(text_of(backend) or None) if isinstance(backend, str) else None,
        base_ns=_number(found.get("baseTimeNanoseconds"), below=LIMIT),
        device_names=tuple(
            text_of(device.get("name") or None) or ""
            for device in (devices if isinstance(devices, list) else [])
            if isinstance(device, dict)
        ),
        trace_id=text_of(found.get("trace_id") or None),
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


def _number(value: object, *, below: int) -> int | None:
    number = unsigned([value])[0]
    return number if number is not None and number < below else None
