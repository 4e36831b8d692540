"""What does a device say of itself? An entry of ``deviceProperties``, as far as it is meant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Device", "read_device"]

_FEWEST_THREADS = 1024  # no GPU holds fewer threads in an SM
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Device:
    """What a device says of itself, as far as it can be meant."""

    name: str
    compute_capability: str | None
    warp_size: int | None
    num_sms: int | None
    memory_bytes: int | None

    @property
    def words(self) -> str:
        """Name and properties, for a message."""
        return ", ".join([repr(self.name[:60])] * bool(self.name) + self.properties)

    @property
    def properties(self) -> list[str]:
        """Whatever of its properties is known, in words."""
        told = (
            ("compute capability {}", self.compute_capability),
            ("warp size {}", self.warp_size),
            ("{} SMs", self.num_sms),
            ("{:.1f} GB", self.memory_bytes and self.memory_bytes / 1e9),
        )
        return [words.format(value) for words, value in told if value is not None]

    @property
    def is_part(self) -> bool:
        """Does its own name say that it is a slice of a GPU?"""
        return re.search(r"\bMIG\b", self.name) is not None


def read_device(properties: Mapping[str, object]) -> Device:
    """Read an entry; whatever is missing or odd in it counts as not told."""
    name = properties.get("name")
    name = " ".join(name.split()) if isinstance(name, str) else ""
    major, minor = properties.get("computeMajor"), properties.get("computeMinor")
    is_told = _whole(major) is not None and _whole(minor, least=0) is not None
    return Device(
        name=name if len(name) <= _LONGEST_NAME else "",
        compute_capability=f"{_whole(major)}.{_whole(minor, least=0)}" if is_told else None,
        warp_size=_whole(properties.get("warpSize")),
        num_sms=_num_sms(properties),
        memory_bytes=_whole(properties.get("totalGlobalMem")),
    )


def _num_sms(properties: Mapping[str, object]) -> int | None:
    """Return the number of SMs; torch 2.13's Python exporter writes it in the wrong place."""
    if "numSms" in properties:
        return _whole(properties["numSms"])
    misplaced = _whole(properties.get("maxThreadsPerMultiprocessor"))
    return misplaced if misplaced and misplaced < _FEWEST_THREADS else None


def _whole(value: object, least: int = 1) -> int | None:
    """Read a whole number, also one written as text; anything else is not told."""
    is_number = isinstance(value, int | str) and re.fullmatch(r"[0-9]{1,18}", str(value))
    return int(str(value)) if is_number and int(str(value)) >= least else None
