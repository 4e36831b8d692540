"""From what was chosen to a file that Perfetto opens: whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from isal import igzip

from traceparse.bridge.overlay.lines import timed
from traceparse.bridge.overlay.plan import Entry, Plan
from traceparse.errors import InputError
from traceparse.whole import whole

__all__ = ["base_of", "header", "write"]

_LEVEL = 2  # of igzip: half as large as what is written twice as fast


def base_of(entries: list[Entry]) -> tuple[int, int]:
    """Return the instant that times count from, and when the first event begins.

    The base is a whole microsecond, and before the first event: to readers of traces, an event
    at 0 has no time.
    """
    first_ns = min(entry.first_ns for entry in entries if entry.starts is not None)
    return (first_ns - 1) // 1000 * 1000, first_ns


def header(fields: Mapping[str, Any]) -> bytes:
    """Write all but the events, up to where these begin."""
    return msgspec.json.encode(fields)[:-1] + b',"traceEvents":[\n'


def write(path: Path, plan: Plan, fields: Mapping[str, Any]) -> tuple[Counter[str], int]:
    """Write the file; return how many events of each layer it has, and its bytes as JSON.

    Raises
    ------
    InputError
        It cannot be written; what was there before stays.
    """
    num_bytes = 0
    entries = plan.chosen()
    try:
        with (
            whole(path) as temporary,
            temporary.open("wb") as file,
            _sink(file, path) as put,
        ):
            for block in _blocks(plan, entries, fields):
                put(block)
                num_bytes += len(block)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written to ({error.strerror or error}); give -o another file"
        ) from error
    nums: Counter[str] = Counter()
    for entry in entries:
        nums[entry.layer] += entry.num
    return nums, num_bytes


def _blocks(plan: Plan, entries: list[Entry], fields: Mapping[str, Any]) -> Iterator[bytes]:
    base_ns, first_ns = base_of(entries)
    yield header(fields)
    separator = b""
    for entry in entries:
        lines, starts = plan.content(entry)
        yield separator + timed(lines, starts, base_ns=base_ns, first_ns=first_ns)[:-2]
        separator = b",\n"
    yield b"\n]}\n"


@contextmanager
def _sink(file: BinaryIO, path: Path) -> Iterator[Callable[[bytes], object]]:
    """Give what takes the text: the file, or what compresses it."""
    if path.suffix != ".gz":
        yield file.write
        return
    packed: Any = igzip.IGzipFile(  # type: ignore[no-untyped-call]
        path.with_suffix("").name, "wb", _LEVEL, file, mtime=0
    )
    with closing(packed):
        yield packed.write
