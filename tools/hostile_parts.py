"""What hostile files are made of, and the list of them.

A hostile file is a function that writes it, at any scale: 1 is the size that is meant to hurt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

__all__ = [
    "BEFORE",
    "GB",
    "HEAD",
    "INPUTS",
    "KERNEL",
    "KERNEL_END",
    "KERNEL_START",
    "MB",
    "TAIL",
    "Hostile",
    "Pack",
    "Write",
    "hostile",
    "kernel",
    "launch",
    "mark",
    "repeated",
    "write_lines",
]

GB, MB = 10**9, 10**6
_MOST_BLOCK = 8 * MB
_LINES_AT_ONCE = 50_000

Write = Callable[[Path, float], int]
Pack = Callable[[Path, bytes, bytes, int, bytes], int]


@dataclass(frozen=True, slots=True)
class Hostile:
    """One hostile file: ``write(path, scale)`` makes it and returns what it inflates to.

    ``status`` and ``words`` are how traceparse should end at scale 1, and what it should say.
    """

    name: str
    ending: str
    write: Write
    status: int
    words: str


INPUTS: list[Hostile] = []


def hostile(
    name: str, *, status: int = 0, words: str = "", ending: str = ".json"
) -> Callable[[Write], Write]:
    """Register a writer under a name."""

    def register(write: Write) -> Write:
        INPUTS.append(Hostile(name, ending, write, status, words))
        return write

    return register


# -- parts of traces: a step, a launch and the kernel it launches give a report without notes

BEFORE = (
    b'{"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, '
    b'"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1}, "traceEvents": [\n'
)
_MARK = (
    b'{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 1, '
    b'"ts": 80.000, "dur": 900000000.000, "args": {}}'
)
_LAUNCH = (
    b'{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, '
    b'"ts": 90.000, "dur": 2.000, "args": {"correlation": 3}}'
)
KERNEL_START = b'{"ph": "X", "cat": "kernel", "name": "'
KERNEL_END = (
    b'", "pid": 0, "tid": 7, "ts": 100.000, "dur": 5.000, '
    b'"args": {"device": 0, "stream": 7, "correlation": 3}}'
)
KERNEL = KERNEL_START + b"gemm" + KERNEL_END
HEAD = BEFORE + _MARK + b",\n" + _LAUNCH + b",\n"
TAIL = b"\n]}\n"


def kernel(number: int, **changed: object) -> bytes:
    """Spell a kernel of its own time; ``changed`` are other values for its fields or args."""
    args: dict[str, object] = {"device": 0, "stream": 7, "correlation": number + 1}
    event: dict[str, object] = {
        "ph": "X",
        "cat": "kernel",
        "name": "gemm",
        "pid": 0,
        "tid": 7,
        "ts": number * 10 + 100,
        "dur": 5,
    }
    for key, value in changed.items():
        (args if key in args else event)[key] = value
    return json.dumps({**event, "args": args}).encode()


def launch(number: int) -> bytes:
    """Spell the call that launched the kernel of that number."""
    return (
        b'{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, '
        b'"ts": %d, "dur": 1, "args": {"correlation": %d}}' % (number * 10 + 91, number + 1)
    )


def mark(number: int, dur: int = 10) -> bytes:
    """Spell the step in which that call is."""
    return (
        b'{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 1, "tid": 1, '
        b'"ts": %d, "dur": %d, "args": {}}' % (number, number * 10 + 90, dur)
    )


# -- writers


def repeated(pack: Pack, head: bytes, unit: bytes, tail: bytes, size: int) -> Write:
    """Fill a file up to a size by repeating a unit between head and tail."""

    def write(path: Path, scale: float) -> int:
        total = int(size * scale)
        times = -(-total // _MOST_BLOCK) or 1
        return pack(path, head, unit * max(1, total // times // len(unit)), times, tail)

    return write


def write_lines(path: Path, events: Iterable[bytes], *, head: bytes = BEFORE) -> int:
    """Write events, one a line."""
    left = iter(events)
    with path.open("wb") as file:
        file.write(head)
        between = b""
        while some := list(islice(left, _LINES_AT_ONCE)):
            file.write(between + b",\n".join(some))
            between = b",\n"
        file.write(TAIL)
    return path.stat().st_size
