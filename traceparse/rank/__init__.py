"""One rank's tables to one small digest: classified, linked, cut into steps, accounted for."""

from __future__ import annotations

from traceparse.rank.digest import RankDigest, digest
from traceparse.rank.tables import public_tables
from traceparse.rank.times import PART_NAMES, DeviceDigest, KernelCounts, StepTimes, Times

__all__ = [
    "PART_NAMES",
    "DeviceDigest",
    "KernelCounts",
    "RankDigest",
    "StepTimes",
    "Times",
    "digest",
    "public_tables",
]
