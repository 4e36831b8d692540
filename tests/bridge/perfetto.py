"""How Perfetto reads a JSON trace, as far as it can lose something: a second opinion on ours.

Written after its importer (src/trace_processor/importers/json/json_trace_tokenizer.cc,
json_trace_parser_impl.cc and importers/common/slice_tracker.cc): numbers are doubles, times
``llround(us * 1000)``; events are sorted by time, equal ones stay in the order of the file; a
slice that begins within another and ends after it is dropped; a flow binds to the slice that is
open on its track, and has to begin before it goes on.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Imported:
    """What became of a trace: slices by track, counters, flows as lists of slices."""

    header: dict[str, Any]
    slices: dict[tuple[int, int], list[dict[str, Any]]] = field(default_factory=dict)
    instants: list[dict[str, Any]] = field(default_factory=list)
    counters: dict[tuple[int, str], list[tuple[int, float]]] = field(default_factory=dict)
    flows: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict)
    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)

    def named(self, thread: str, process: str | None = None) -> list[dict[str, Any]]:
        """Return the slices of all threads of a name, in order."""
        return [
            slice_
            for track, slices in self.slices.items()
            if self.threads[track] == thread and process in (None, self.processes[track[0]])
            for slice_ in slices
        ]


def load(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return found


def imported(path: Path) -> Imported:
    document = load(path)
    events = document.pop("traceEvents")
    found = Imported(document)
    for event in events:
        found.phases[event["ph"]] += 1
        event.update({key: round(event[key] * 1000) for key in ("ts", "dur") if key in event})
        if event["ph"] == "M":
            _name(found, event)
    stacks: dict[tuple[int, int], list[dict[str, Any]]] = {}
    timed = [event for event in events if event["ph"] != "M"]
    for event in sorted(timed, key=lambda one: one["ts"]):
        track = (event["pid"], event.get("tid", 0))
        if event["ph"] == "C":
            _sample(found, event)
        elif event["ph"] == "i":
            found.instants.append(event)
        elif event["ph"] == "X":
            _slice(found, event, track, stacks.setdefault(track, []))
        else:
            _flow(found, event, stacks.get(track, []))
    ended = [len(tied) > 1 and tied[-1]["is_flow_end"] for tied in found.flows.values()]
    found.lost.update({"flow without end": ended.count(False)} if not all(ended) else {})
    return found


def _sample(found: Imported, event: dict[str, Any]) -> None:
    for unit, value in event["args"].items():
        series = found.counters.setdefault((event["pid"], f"{event['name']} {unit}"), [])
        series.append((event["ts"], value))


def _name(found: Imported, event: dict[str, Any]) -> None:
    if event["name"] == "process_name":
        found.processes[event["pid"]] = event["args"]["name"]
    if event["name"] == "thread_name":
        found.threads[event["pid"], event["tid"]] = event["args"]["name"]


def _slice(
    found: Imported, event: dict[str, Any], track: tuple[int, int], stack: list[dict[str, Any]]
) -> None:
    end = event["ts"] + event["dur"]
    while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"]:
        stack.pop()
    if stack and end > stack[-1]["ts"] + stack[-1]["dur"]:
        found.lost["slice that overlaps another"] += 1
        return
    event["depth"] = len(stack)
    stack.append(event)
    found.slices.setdefault(track, []).append(event)


def _flow(found: Imported, event: dict[str, Any], stack: list[dict[str, Any]]) -> None:
    key = (event["cat"], event["id"])
    is_new = key not in found.flows
    if is_new != (event["ph"] == "s"):
        found.lost["flow that begins twice, or not"] += 1
        return
    if not stack or not (stack[-1]["ts"] <= event["ts"] <= stack[-1]["ts"] + stack[-1]["dur"]):
        found.lost["flow outside a slice"] += 1
        return
    if event["ph"] == "f" and event.get("bp") != "e":
        found.lost["flow that binds to what follows"] += 1
        return
    found.flows.setdefault(key, []).append(
        {**stack[-1], "is_flow_end": event["ph"] == "f", "at": event["ts"]}
    )
