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
from traceparse.ingest.facts import read_facts
from traceparse.ingest.numbers import LIMIT, unsigned
from traceparse.ingest.ranks import MOST_RANKS, groups_of, ranks_text
from traceparse.ingest.remote import Remote

__all__ = ["Header", "read_header", "who"]

_PROPERTIES = (  # of a device: what traceparse.work reads of it, and which one it is
    *("id", "name", "computeMajor", "computeMinor", "warpSize", "numSms", "totalGlobalMem"),
    "maxThreadsPerMultiprocessor",
)
_LONGEST_PROPERTY = 200  # letters
_MOST_DEVICES = 64
_INT64 = 1 << 63
_SETTINGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_ON = (True, 1, "1")
# not worker-3_77.1719853884.pt.trace.json: a host and a process, as TensorBoard's names have
_RANK_IN_NAME = re.compile(
    r"(?<![a-z])(?:rank|worker(?![-_. ]?\d{1,7}_\d+\.\d+\.pt\.trace\.json))"
    r"[-_. ]?(\d{1,7})(?!\d)",
    re.IGNORECASE,
)
_ACCELERATE = re.compile(r"^profile_(\d{1,7})\.json(?:\.gz|\.zst)?\Z")  # of Hugging Face


@dataclass(frozen=True, slots=True)
class Header:
    """Facts of one file that the analysis uses; ``None`` where the file does not say.

    ``base_ns`` is what the file's times count from, as Unix nanoseconds. ``devices`` are the
    entries of ``deviceProperties``, as far as anything is made of them; ``facts`` are what
    capture recorded of the job (:func:`traceparse.ingest.facts.read_facts`). ``groups`` maps
    names of process groups to all their ranks, as :func:`traceparse.units.parse_ranges` reads
    them; ``settings`` are those of the profiler that the file says were on.
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
    settings: tuple[str, ...] = ()


def read_header(found: Mapping[str, Any], beside: Mapping[str, Any] | None = None) -> Header:
    """Pick the facts out of the top-level keys of a trace.

    ``beside`` are facts that stand beside the file: each counts before the one inside. What
    torch itself says of world size, backend and groups counts before either.
    """
    job = found.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    backend = job.get("backend")
    devices = found.get("deviceProperties")
    devices = devices if isinstance(devices, list) else []
    devices = [device for device in devices if isinstance(device, dict)]
    facts = {**read_facts(found.get("traceparse")), **(beside or {})}
    groups = facts.pop("groups", {})
    return Header(
        rank=_number(job.get("rank"), below=MOST_RANKS),
        world_size=_number(job.get("world_size"), below=MOST_RANKS + 1)
        or facts.get("world_size"),
        backend=(text_of(backend) if isinstance(backend, str) else None)
        or facts.get("backend"),
        base_ns=_number(found.get("baseTimeNanoseconds"), below=LIMIT),
        device_names=tuple(text_of(device.get("name") or None) or "" for device in devices),
        trace_id=text_of(found.get("trace_id") or None),
        devices=tuple(map(_properties, devices[:_MOST_DEVICES])),
        facts=facts,
        groups={
            **groups,
            **groups_of(job.get("pg_config"), name="pg_name", read=ranks_text),
        },
        settings=tuple(name for name in _SETTINGS if found.get(name) in _ON),
    )


def who(
    header: Header, path: Path | Remote, given: int | None
) -> tuple[int | None, str | None]:
    """Which rank wrote this file, and how do we know? Inside, its name, or being told."""
    if header.rank is not None:
        return header.rank, "distributedInfo"
    named = _RANK_IN_NAME.findall(path.name) or _ACCELERATE.findall(path.name)
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


def _number(value: object, *, below: int) -> int | None:
    number = unsigned([value])[0]
    return number if number is not None and number < below else None
