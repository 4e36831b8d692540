"""What a file is when it is not a trace, in words that help.

Every answer is the error to raise: one line that names the file, says what it is and what to
give instead.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from traceparse.errors import EmptyTraceError, InputError, NotATraceError
from traceparse.ingest.remote import Remote

__all__ = ["binary", "document", "empty", "listing"]

_GIVE = "give the trace file that torch.profiler exported"
_MAGIC = (
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"BZh", "compressed with bzip2: use gzip, zstd or nothing"),
    (b"\xfd7zXZ", "compressed with xz: use gzip, zstd or nothing"),
    (b"PAR1", "a Parquet file"),
    (b"SQLite format 3", "an SQLite database (an Nsight Systems export?)"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
)
_EVENT = re.compile(rb'"ph"\s*:\s*"X"')
_PICKLE = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))


def empty(path: Path | Remote, damage: str | None, size: int) -> InputError:
    """Say that nothing could be read from a file."""
    if damage:
        return EmptyTraceError(
            f"{path}: {damage} before any event, so nothing can be used; capture again, "
            f"or copy the file again"
        )
    if size:
        return EmptyTraceError(f"{path}: the file holds nothing but blanks; {_GIVE}")
    return EmptyTraceError(
        f"{path}: the file is empty (0 bytes; was the disk full during export?); "
        f"capture again, or copy the file again"
    )


def binary(path: Path | Remote, head: bytes) -> NotATraceError | None:
    """Say what a file is that does not begin like JSON; ``None`` if it does."""
    start = head.lstrip()
    if start[:1] in (b"{", b"["):
        return None
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return NotATraceError(f"{path}: this is {kind}, not a profiler trace; {_GIVE}")
    if head.startswith(_PICKLE):
        return NotATraceError(
            f"{path}: this is a Python pickle (a CUDA memory snapshot?), not a profiler trace, "
            f"and is not opened; {_GIVE}"
        )
    if start[:1] == b"<":
        return NotATraceError(
            f"{path}: this is an HTML or XML page, not a profiler trace; {_GIVE}"
        )
    return NotATraceError(f"{path}: this is not JSON (it begins with {start[:8]!r}); {_GIVE}")


def listing(path: Path | Remote, first: bytes) -> NotATraceError | None:
    """Say what a file is whose top level is a list, given what follows its bracket."""
    if first[:1] in (b"{", b"]", b"") or _EVENT.search(first):  # it may be damaged
        return None
    return NotATraceError(
        f"{path}: this is a list of numbers or lists (a memory timeline?), "
        f"not a profiler trace; {_GIVE}"
    )


def document(path: Path | Remote, found: object) -> InputError:
    """Say what a JSON document without events is."""
    if isinstance(found, dict):
        return _object(path, found)
    return NotATraceError(f"{path}: this is a JSON list, but not of trace events; {_GIVE}")


def _object(path: Path | Remote, found: dict[str, Any]) -> InputError:
    if "traceEvents" in found:
        return EmptyTraceError(
            f"{path}: the trace holds metadata only, no duration events; nothing was recorded: "
            f"check that the profiler was active while the job ran"
        )
    if "chakra" in str(found.get("schema", "")) or {"schema", "nodes"} <= found.keys():
        kind = "a PyTorch execution trace (ExecutionTraceObserver)"
    elif {"segments", "device_traces"} & found.keys():
        kind = "a CUDA memory snapshot"
    elif {"schema_version", "generator"} <= found.keys():
        kind = "a traceparse report"
    elif {"facts_version", "traceparse_version"} & found.keys():
        kind = "what traceparse recorded of a job beside its trace"
    else:
        names = ", ".join(repr(str(key)[:40]) for key in list(found)[:4])
        kind = f"JSON without traceEvents (it has {names or 'no keys at all'})"
    return NotATraceError(f"{path}: this is {kind}, not a profiler trace; {_GIVE}")
