"""Make a large trace of a real one: its events again and again, in any writer's layout.

Times go on from round to round, and ids (correlations, flows) with them, so that nothing in
one round belongs to another. Names, shapes and stacks repeat, as those of a training loop do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.bench_child import opener  # noqa: E402
from tools.bench_facts import BenchError  # noqa: E402
from tools.layouts import LAYOUTS, Num  # noqa: E402

__all__ = ["larger_trace", "main", "make_trace"]


_FENCE = {"name": "bench", "ph": "M", "ts": Num("1.000"), "pid": 0, "tid": 0}
_MARK = "\0"  # around what differs from round to round: in JSON it would be escaped
_IDS = ("correlation", "External id", "external id")
_PAUSE_NS = 1_000_000  # between two rounds


def larger_trace(path: Path, megabytes: int, layout: str) -> Path:
    """Return a trace of so many MB made of this one; it stays in ``bench-out/traces``."""
    name = f"{path.name.partition('.')[0]}-{layout}-{megabytes}MB.json"
    made = ROOT / "bench-out" / "traces" / name
    if layout not in LAYOUTS:
        raise BenchError(f"no such layout: {layout}; there are {', '.join(LAYOUTS)}")
    if not made.exists():
        # in a process of its own: on Linux, no child's peak memory is below its parent's
        words = [str(path), str(made), str(megabytes), layout]
        subprocess.run(
            [sys.executable, "-P", str(Path(__file__).resolve()), *words], check=True
        )
    return made


def make_trace(source: Mapping[str, Any], path: Path, *, size: int, layout: str) -> None:
    """Write a trace of at least ``size`` bytes.

    ``source`` is a trace as ``json.load(..., parse_float=Num)`` gives it.
    """
    head, events, tail = _parts(source, layout)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(head)
        for text in _rounds(events.split(_MARK), source["traceEvents"]):
            file.write(text)
            if file.tell() >= size:
                break
        file.write(tail)
    temporary.replace(path)


def _parts(source: Mapping[str, Any], layout: str) -> tuple[str, str, str]:
    """Return what stands before the events, the events with marks, and what stands behind."""
    marked = [_marked(event) for event in source["traceEvents"]]
    before = {key: value for key, value in source.items() if key != "traceEvents"}
    after = {"traceName": before.pop("traceName", "bench.json")}
    text = LAYOUTS[layout]([_FENCE, *marked, _FENCE], before, after)
    first, last = _fence(text, text.index('"bench"')), _fence(text, text.rindex('"bench"'))
    separator = text[first[1] : text.index("{", first[1])]
    return (
        text[: first[1]],
        text[first[1] : last[0] - len(separator)],
        separator + text[last[0] :],
    )


def _fence(text: str, inside: int) -> tuple[int, int]:
    begin = text.rindex("{", 0, inside)
    return begin, json.JSONDecoder().raw_decode(text, begin)[1]


def _marked(event: Mapping[str, Any]) -> dict[str, Any]:
    """Put marks around the times and ids of an event, each with which it is."""
    found = dict(event)
    if "ts" in found:
        found["ts"] = Num(f"{_MARK}ts {found['ts']}{_MARK}")
    if "id" in found:
        found["id"] = Num(f"{_MARK}id {found['id']}{_MARK}")
    if isinstance(found.get("args"), Mapping):
        found["args"] = {
            key: Num(f"{_MARK}id {value}{_MARK}") if key in _IDS else value
            for key, value in found["args"].items()
        }
    return found


def _rounds(parts: list[str], events: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the text of one round after another, without end."""
    times = [_nanoseconds(event["ts"]) for event in events if "ts" in event]
    lasts = [_nanoseconds(event["dur"]) for event in events if "dur" in event]
    period_ns = max(times) - min(filter(None, times)) + max(lasts, default=0) + _PAUSE_NS
    moving = [_moving(part) for part in parts[1::2]]
    period_id = 1 + max((value for kind, value in moving if kind == "id"), default=0)
    number = 0
    while True:
        parts[1::2] = [
            _spelled(value + number * period_ns)
            if kind == "ts"
            else str(value + number * period_id)
            for kind, value in moving
        ]
        yield "".join(parts)
        number += 1


def _moving(part: str) -> tuple[str, int]:
    kind, text = part.split(" ", 1)
    return kind, _nanoseconds(text) if kind == "ts" else int(text)


def _nanoseconds(text: object) -> int:
    return int(Decimal(str(text)) * 1000)


def _spelled(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"


def main() -> None:
    """Make what the arguments say: of which trace, where, how many MB, in which layout."""
    path, made, megabytes, layout = sys.argv[1:]
    with opener(Path(path))() as file:
        source = json.loads(file.read(), parse_float=Num)
    make_trace(source, Path(made), size=int(megabytes) * 10**6, layout=layout)


if __name__ == "__main__":
    main()
