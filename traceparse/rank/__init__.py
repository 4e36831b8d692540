"""One rank's tables to one small digest: classified, linked, cut into steps, accounted for."""

from __future__ import annotations

from traceparse.rank.counted import CopyWork, DtypeWork, KernelWork, OperatorWork, StepWork
from traceparse.rank.digest import RankDigest, digest
from traceparse.rank.stored import StoredError, from_table, to_table
from traceparse.rank.tables import public_tables
from traceparse.rank.times import (
    NEVER,
    PART_NAMES,
    DeviceDigest,
    IdleTimes,
    KernelCounts,
    StepTimes,
    Times,
)

__all__ = [
    "NEVER",
    "PART_NAMES",
    "CopyWork",
    "DeviceDigest",
    "DtypeWork",
    "IdleTimes",
    "KernelCounts",
    "KernelWork",
    "OperatorWork",
    "RankDigest",
    "StepTimes",
    "StepWork",
    "StoredError",
    "Times",
    "digest",
    "from_table",
    "public_tables",
    "to_table",
]
