"""The file of facts that capture leaves beside a trace: ``rank0_facts.json``.

It is written after the trace, so it knows what the trace could not: how long steps take that
are not profiled. Whatever is wrong with it, the trace is as good as without it.
"""

from __future__ import annotations

import re
import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceparse.errors import InputError
from traceparse.ingest.facts import read_facts
from traceparse.ingest.remote import Remote
from traceparse.ingest.repair import loads_leniently

__all__ = ["Sidecar", "is_sidecar", "read_sidecar"]

_MOST_BYTES = 1 << 20
_TRACE = re.compile(r"(.*)_trace\.json(?:\.gz|\.zst)?", re.DOTALL)
_FACTS = re.compile(r"(.*)_facts\.json", re.DOTALL)
_OURS = re.compile(r"rank\d+")
_TRACE_ENDINGS = ("_trace.json", "_trace.json.gz", "_trace.json.zst")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What stands beside a trace: its content, or why that cannot be had."""

    name: str
    content: bytes = b""
    damage: str | None = None

    def facts(self, rank: int | None) -> tuple[Mapping[str, Any], str | None]:
        """Return its facts, if it is of this rank; and why there are none, if that is so."""
        if self.damage:
            return {}, self.damage
        try:
            told = loads_leniently(self.content.decode(), Counter())
        except UnicodeDecodeError:
            return {}, "it is no text in UTF-8"
        if not isinstance(told, dict):
            return {}, "it is no JSON object"
        facts = read_facts(told)
        own = facts.get("rank")
        if rank is not None and own is not None and own != rank:
            return {}, f"it is of rank {own}, and the trace of rank {rank}"
        return facts, None


def read_sidecar(trace: Path | Remote) -> Sidecar | None:
    """Read what stands beside a trace, a mebibyte at most; ``None`` if nothing does."""
    if isinstance(trace, Remote) and trace.is_signed:
        return None  # what stands beside it takes another signature
    found = _TRACE.fullmatch(trace.name)
    return _read(trace.with_name(f"{found[1]}_facts.json")) if found else None


def _read(path: Path | Remote) -> Sidecar | None:
    try:
        if not _is_there(path):
            return None
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except InputError as error:
        return Sidecar(path.name, damage=str(error).removeprefix(f"{path}: "))
    except OSError as error:
        return Sidecar(path.name, damage=f"it cannot be read: {error.strerror or error}")
    if len(content) > _MOST_BYTES:
        return Sidecar(path.name, damage=f"it is larger than {_MOST_BYTES >> 20} MiB")
    return Sidecar(path.name, content)


def _is_there(path: Path | Remote) -> bool:
    if isinstance(path, Remote):
        return path.exists()
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    # a pipe by that name would be waited for, for ever
    if not stat.S_ISREG(mode):
        raise InputError("it is no regular file")
    return True


def is_sidecar(path: Path | Remote) -> bool:
    """Is this what capture left beside a trace, by its name and what stands beside it?"""
    found = _FACTS.fullmatch(path.name)
    if found is None:
        return False
    names = (f"{found[1]}{ending}" for ending in _TRACE_ENDINGS)
    return bool(_OURS.fullmatch(found[1])) or any(
        path.with_name(name).exists() for name in names
    )
