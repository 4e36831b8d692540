"""From the file that torch wrote to the one that is kept: facts in, names of hosts out, gzip.

torch replaces every backslash in metadata by a slash, so that a quote in it breaks the file;
what is put into the file here stays what it was.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from traceparse.whole import whole

__all__ = ["UNSAID", "facts_path", "pack", "trace_name", "write_facts"]

UNSAID = "unsaid"  # of facts: what the job's log would have said, had the job still been there

_BLOCK = 1 << 20
_LEVEL = 5  # a third smaller than what is written twice as fast; nobody waits for it
_EVENTS = b'"traceEvents"'
_LONGEST_HEAD = 1 << 24  # of a header, with the ranks of all process groups
_TAIL_BYTES = 16_384  # the last event and the "traceName" behind it, a path of 4096 at most
_EVENT = b'"ph": "'
_HOST = re.compile(rb'\n[ \t]*"host_name": "[^\n]*",(?=\n)')
_TRACE_NAME = re.compile(rb'"traceName": "[^\n]*"')


def trace_name(rank: int) -> str:
    """Return the file name of a rank's trace."""
    return f"rank{rank}_trace.json.gz"


def facts_path(trace: Path) -> Path:
    """Return where the facts of the job are that belong to a trace of ours."""
    return trace.with_name(trace.name.removesuffix("_trace.json.gz") + "_facts.json")


def write_facts(trace: Path, facts: Mapping[str, Any]) -> None:
    """Write the facts that belong to a trace.

    Raises
    ------
    OSError
        They cannot be written; what was there before stays.
    """
    with whole(facts_path(trace)) as file:
        file.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def pack(
    raw: Path, packed: Path, facts: Mapping[str, Any], *, name: str, with_host: bool
) -> int:
    """Compress a trace, telling it the facts and its name, and count its events.

    ``facts`` go in under the key ``traceparse``. Without ``with_host``, the name of the host
    is left out.

    Raises
    ------
    OSError
        A file cannot be read or written.
    """
    num_events = 0
    plain_name = packed.with_suffix("").name
    with (
        raw.open("rb") as source,
        packed.open("wb") as file,
        gzip.GzipFile(plain_name, "wb", _LEVEL, file, mtime=0) as sink,
    ):
        for block in _edited(source, facts, name=name, with_host=with_host):
            num_events += block.count(_EVENT)
            sink.write(block)
    return num_events


def _edited(
    source: BinaryIO, facts: Mapping[str, Any], *, name: str, with_host: bool
) -> Iterator[bytes]:
    """Yield the file in blocks of whole lines, its head and its tail rewritten."""
    head = source.read(_BLOCK)
    while _EVENTS not in head and len(head) < _LONGEST_HEAD:
        block = source.read(_BLOCK)
        if not block:
            break
        head += block
    kept = _head(head, facts, with_host=with_host)
    while block := source.read(_BLOCK):
        kept += block
        # never cut inside a line, nor inside the tail
        cut = kept.rfind(b"\n", 0, max(0, len(kept) - _TAIL_BYTES)) + 1
        if cut:
            yield kept[:cut]
            kept = kept[cut:]
    start = max(0, len(kept) - _TAIL_BYTES)
    named = b'"traceName": ' + json.dumps(name).encode()
    kept = kept[:start] + _TRACE_NAME.sub(lambda _: named, kept[start:])
    yield kept


def _head(head: bytes, facts: Mapping[str, Any], *, with_host: bool) -> bytes:
    if not with_host:
        end = head.find(_EVENTS)
        end = len(head) if end < 0 else end
        head = _HOST.sub(b"", head[:end]) + head[end:]
    start = head.find(b"{") + 1
    if not facts or not start:
        return head
    # in one line and in ASCII: then it can be read even where what follows is damaged
    told = json.dumps({"traceparse": facts})[1:-1].encode()
    return head[:start] + b"\n    " + told + b"," + head[start:]
