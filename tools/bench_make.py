"""Make large traces of small ones: their events again and again, in any writer's layout.

Several traces take turns, a round of each. What places an event in time and what ties it to
others (correlations, flows, steps) goes on from turn to turn by whole numbers, so that nothing
in one belongs to another. Names, shapes and stacks repeat, as those of a training loop do; it
is one process that does it all.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.bench_child import opener  # noqa: E402
from tools.bench_facts import BenchError  # noqa: E402
from tools.bench_runs import RunFailedError, run_python  # noqa: E402
from tools.layouts import LAYOUTS, Num  # noqa: E402

__all__ = ["body", "gzipped", "larger_job", "larger_trace", "main", "write_job", "write_trace"]

Source: TypeAlias = Mapping[str, Any]
Event: TypeAlias = Mapping[str, Any]

_FENCE = {"name": "bench", "ph": "M", "ts": Num("1.000"), "pid": 0, "tid": 0}
_MARK = "\0"  # around what differs from turn to turn: in JSON it would be escaped
_TIME, _FLOW, _STEP = "ts", "correlation", "step"
_IDS = {  # keys of args that tie events to one another, each with the numbers it is one of
    "correlation": _FLOW,
    "External id": "External id",
    "external id": "External id",
    "Ev Idx": "Ev Idx",
    "Python id": "Python id",
    "Python parent id": "Python id",
    "Record function id": "Record function id",
    "Sequence number": "Sequence number",
}
_HOST = ("cpu_op", "cuda_runtime", "hip_runtime", "python_function")
_NUMBERED = re.compile(r"ProfilerStep#(\d+)")
_PAUSE_NS = 1_000_000  # between two turns


def larger_trace(paths: Sequence[Path], megabytes: int, layout: str = "k-old") -> Path:
    """Return a trace of so many MB made of these; it stays in ``bench-out/traces``."""
    return _made(paths, f"{megabytes}MB.json", layout, ("trace", str(megabytes)))


def larger_job(paths: Sequence[Path], ranks: int, megabytes: int) -> Path:
    """Return a folder of so many ranks' traces of so many MB each, alike but for the rank."""
    return _made(paths, f"{ranks}x{megabytes}MB", "k-old", ("job", str(megabytes), str(ranks)))


def _made(paths: Sequence[Path], ending: str, layout: str, words: Sequence[str]) -> Path:
    if layout not in LAYOUTS:
        raise BenchError(f"no such layout: {layout}; there are {', '.join(LAYOUTS)}")
    stems = "+".join(path.name.partition(".")[0] for path in paths)
    made = ROOT / "bench-out" / "traces" / f"{stems}-{layout}-{_digest(paths)}-{ending}"
    if not made.exists():
        print(f"making {made.relative_to(ROOT)}", file=sys.stderr)
        # in a process of its own: on Linux, no child's peak memory is below its parent's
        script = [str(Path(__file__).resolve()), words[0], str(made), layout, *words[1:]]
        try:
            run_python([*script, "--", *map(str, paths)])
        except RunFailedError as error:
            raise BenchError(f"{stems}: no traces to make larger ones of: {error}") from error
    return made


def _digest(paths: Sequence[Path]) -> str:
    """Return what changes with the sources and with how traces are made of them."""
    found = hashlib.sha256()
    for path in (*paths, Path(__file__), Path(__file__).with_name("layouts.py")):
        try:
            found.update(path.read_bytes())
        except OSError as error:
            raise BenchError(
                f"{path}: cannot be read: {error.strerror}; give another PATH"
            ) from error
    return found.hexdigest()[:8]


def gzipped(path: Path) -> Path:
    """Return the file packed as torch packs its traces, which stays beside it."""
    packed = path.with_name(f"{path.name}.gz")
    if not packed.exists():
        print(f"packing {path.name}", file=sys.stderr)
        temporary = packed.with_suffix(".tmp")
        with path.open("rb") as plain, gzip.open(temporary, "wb") as file:
            shutil.copyfileobj(plain, file, 1 << 20)
        temporary.replace(packed)
    return packed


def write_trace(sources: Sequence[Source], path: Path, *, size: int, layout: str) -> None:
    """Write a trace of about ``size`` bytes.

    Each of ``sources`` is a trace as ``json.load(..., parse_float=Num)`` gives it; the header
    is that of the first. At least ``size`` bytes, and to the end of a turn, if that is more
    than a turn of every source; of each the middle of its time, if it is less.
    """
    _write(path, _header(sources), body(sources, size=size, layout=layout), layout)


def write_job(
    sources: Sequence[Source], folder: Path, *, ranks: int, size: int, layout: str
) -> None:
    """Write a folder of traces with the same events, each with a rank of its own."""
    texts = list(body(sources, size=size, layout=layout))
    header = _header(sources)
    # what it says of groups is of another job
    known = {
        key: value
        for key, value in header.get("distributedInfo", {}).items()
        if not key.startswith("pg_")
    }
    temporary = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    for rank in range(ranks):
        info = {"backend": "nccl", **known, "rank": rank, "world_size": ranks}
        path = temporary / f"rank{rank}_trace.json"
        _write(path, {**header, "distributedInfo": info}, texts, layout)
    temporary.replace(folder)


def _header(sources: Sequence[Source]) -> dict[str, Any]:
    return {key: value for key, value in sources[0].items() if key != "traceEvents"}


def _write(path: Path, header: Source, texts: Iterable[str], layout: str) -> None:
    before = dict(header)
    after = {"traceName": before.pop("traceName", "bench.json")}
    head, _, tail = _cut(LAYOUTS[layout]([_FENCE, _FENCE], before, after))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(head)
        file.writelines(texts)
        file.write(tail)
    temporary.replace(path)


def _cut(text: str) -> tuple[str, str, str]:
    """Cut a trace behind its first event and, with the separator, before its last."""
    first, last = _fence(text, text.index('"bench"')), _fence(text, text.rindex('"bench"'))
    separator = text[first[1] : text.index("{", first[1])]
    cut = last[0] - len(separator)
    return text[: first[1]], text[first[1] : cut], text[cut:]


def _fence(text: str, inside: int) -> tuple[int, int]:
    begin = text.rindex("{", 0, inside)
    return begin, json.JSONDecoder().raw_decode(text, begin)[1]


def body(sources: Sequence[Source], *, size: int, layout: str) -> Iterator[str]:
    """Yield the text of the events, a turn of one source at a time."""
    jobs = _as_one_process([source["traceEvents"] for source in sources])
    pieces = [_Piece(events, layout) for events in jobs]
    whole = sum(piece.size for piece in pieces)
    if size < whole:
        pieces = [_Piece(_middle(events, size / whole), layout) for events in jobs]
        size = 0  # one turn of each is about enough
    reached: dict[str, int] = {}
    written = number = 0
    while written < size or number < len(pieces):
        text = pieces[number % len(pieces)].turn(reached)
        yield text
        written += len(text)
        number += 1


def _as_one_process(jobs: Sequence[Sequence[Event]]) -> list[Sequence[Event]]:
    """Return the events of several jobs all run by the first one's process."""
    hosts = [_host(events) for events in jobs]
    known = next((host for host in hosts if host is not None), None)
    return [
        events if host in (None, known) else [_moved(event, host, known) for event in events]
        for events, host in zip(jobs, hosts, strict=True)
    ]


def _host(events: Sequence[Event]) -> object:
    """Return the process that did most of what a host does; ``None`` if none did."""
    ran = Counter(event.get("pid") for event in events if event.get("cat") in _HOST)
    return next((pid for pid, _ in ran.most_common(1)), None)


def _moved(event: Event, before: object, after: object) -> Event:
    """Put an event of one process into another; a main thread has its process's number."""
    changed = {key: after for key in ("pid", "tid") if event.get(key) == before}
    return {**event, **changed}


def _middle(events: Sequence[Event], share: float) -> list[Event]:
    """Return the events in the middle of the time, and all that say who is who."""
    timed = sorted(
        (index for index, event in enumerate(events) if _is_timed(event)),
        key=lambda index: _nanoseconds(events[index]["ts"]),
    )
    dropped = len(timed) - max(1, round(share * len(timed)))
    out = {*timed[: dropped // 2], *timed[len(timed) - (dropped - dropped // 2) :]}
    return [event for index, event in enumerate(events) if index not in out]


class _Piece:
    """The events of one source, as text with gaps for what moves."""

    def __init__(self, events: Sequence[Event], layout: str) -> None:
        text = LAYOUTS[layout]([_FENCE, *map(_marked, events), _FENCE], {}, {})
        self._parts = _cut(text)[1].split(_MARK)
        moving = [part.rsplit(" ", 1) for part in self._parts[1::2]]
        self._moving = [
            (kind, _nanoseconds(number) if kind == _TIME else int(number))
            for kind, number in moving
        ]
        ends = [_end(event) for event in events if _is_timed(event)]
        self._spans = _spans([*self._moving, *((_TIME, end) for end in ends)])
        self.size = sum(map(len, self._parts))

    def turn(self, reached: dict[str, int]) -> str:
        """Return the text of this piece moved to behind what was reached, and go on there."""
        offsets = {}
        for kind, (lowest, highest) in self._spans.items():
            offsets[kind] = reached.get(kind, lowest) - lowest
            reached[kind] = highest + offsets[kind] + (_PAUSE_NS if kind == _TIME else 1)
        self._parts[1::2] = [
            _spelled(number + offsets[kind]) if kind == _TIME else str(number + offsets[kind])
            for kind, number in self._moving
        ]
        return "".join(self._parts)


def _spans(moving: Iterable[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    """Return the lowest and highest number of each kind."""
    spans: dict[str, tuple[int, int]] = {}
    for kind, number in moving:
        lowest, highest = spans.get(kind, (number, number))
        spans[kind] = min(lowest, number), max(highest, number)
    return spans


def _marked(event: Event) -> dict[str, Any]:
    """Put marks around what moves in an event, each with the numbers it is one of."""
    found = dict(event)
    if _is_timed(event):
        found["ts"] = _gap(_TIME, event["ts"])
    if _is_id(event.get("id")):
        found["id"] = _gap(_FLOW, event["id"])
    step = _NUMBERED.fullmatch(str(event.get("name")))
    if step:
        found["name"] = Num(f'"ProfilerStep#{_gap(_STEP, step[1])}"')
    if isinstance(found.get("args"), Mapping):
        found["args"] = {
            key: _gap(_IDS[key], value) if key in _IDS and _is_id(value) else value
            for key, value in found["args"].items()
        }
    return found


def _gap(kind: str, number: object) -> Num:
    return Num(f"{_MARK}{kind} {number}{_MARK}")


def _is_timed(event: Event) -> bool:
    """Say whether an event has a place in time: what names processes and threads has none."""
    return "ts" in event and event.get("ph") != "M"


def _is_id(value: object) -> bool:
    """Say whether a number tells one thing from others: 0 and less stand for none."""
    return isinstance(value, int) and value > 0


def _end(event: Event) -> int:
    return _nanoseconds(event["ts"]) + _nanoseconds(event.get("dur", 0))


def _nanoseconds(text: object) -> int:
    return int(Decimal(str(text)) * 1000)


def _spelled(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"


def main() -> None:
    """Make what the arguments say: what, where, in which layout, how large, of which traces."""
    cut = sys.argv.index("--")
    what, made, layout, megabytes, *ranks = sys.argv[1:cut]
    sources = []
    for name in sys.argv[cut + 1 :]:
        with opener(Path(name))() as file:
            sources.append(json.loads(file.read(), parse_float=Num))
    size = int(megabytes) * 10**6
    if what == "job":
        write_job(sources, Path(made), ranks=int(ranks[0]), size=size, layout=layout)
    else:
        write_trace(sources, Path(made), size=size, layout=layout)


if __name__ == "__main__":
    main()
