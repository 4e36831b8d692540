"""Build traces small enough to account for on paper: the parts that every one of them uses.

A case is a function with the sum worked out in its docstring, registered by :func:`case`. Times
of the drawings are microseconds; expected TIMES are literals in nanoseconds, never computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any

from tools.layouts import LAYOUTS, Event, Num

__all__ = [
    "CASES",
    "Case",
    "Expected",
    "Times",
    "case",
    "copy",
    "device",
    "framed",
    "host",
    "kernel",
    "launch",
    "step",
    "step_span",
    "times",
    "us",
]

Times = dict[str, int]
Expected = dict[str, Any]

HOST_PID = 4242
HEADER = {"schemaVersion": 1, "deviceProperties": [], "traceName": "trace.json"}


@dataclass(frozen=True, slots=True)
class Case:
    """One trace, what is in it, and the times that a person worked out for it."""

    events: Sequence[Event]
    devices: Sequence[Expected]
    header: Mapping[str, Any] = field(default_factory=lambda: dict(HEADER))
    trailing: Collection[str] = ("traceName",)
    skipped: Mapping[str, int] = field(default_factory=dict)
    only: Collection[str] | None = None

    @property
    def layouts(self) -> list[str]:
        """Which layouts can express this trace? A list has no place for header keys."""
        if self.only is not None:
            return list(self.only)
        facts = {"baseTimeNanoseconds", "distributedInfo"} & set(self.header)
        return [name for name in LAYOUTS if name != "leg" and not (name == "list" and facts)]

    @property
    def expected(self) -> Expected:
        """What ``expected.json`` holds."""
        info = self.header.get("distributedInfo", {})
        return {
            "rank": info.get("rank"),
            "world_size": info.get("world_size"),
            "skipped": dict(self.skipped),
            "devices": list(self.devices),
        }


CASES: dict[str, tuple[Case, str]] = {}


def case(function: Callable[[], Case]) -> Callable[[], Case]:
    """Register a case under its name, with its docstring as the sum worked out on paper."""
    CASES[function.__name__.replace("_", "-")] = (function(), cleandoc(function.__doc__ or ""))
    return function


def us(microseconds: int) -> Num:
    """Spell whole microseconds as libkineto has since 2024: three decimals."""
    return Num(f"{microseconds}.000")


def _event(
    category: str, name: str, start: int, end: int, row: tuple[Any, Any]
) -> dict[str, Any]:
    pid, tid = row
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": us(start),
        "dur": us(end - start),
    }


def kernel(
    name: str,
    start: int,
    end: int,
    correlation: int | None,
    *,
    on: int = 0,
    stream: int = 7,
    **args: object,
) -> dict[str, Any]:
    """Draw a kernel that ran from ``start`` to ``end`` on device ``on``."""
    link = {} if correlation is None else {"correlation": correlation}
    known = {"External id": correlation or 1, "device": on, "context": 1, "stream": stream}
    launched = {"grid": [64, 1, 1], "block": [128, 1, 1]}
    event = _event("kernel", name, start, end, (on, stream))
    return event | {"args": known | link | launched | args}


def copy(
    name: str, start: int, end: int, correlation: int | None, *, on: int = 0, stream: int = 21
) -> dict[str, Any]:
    """Draw a memcpy or memset, by its name."""
    category = "gpu_memset" if name.startswith("Memset") else "gpu_memcpy"
    link = {} if correlation is None else {"correlation": correlation}
    event = _event(category, name, start, end, (on, stream))
    return event | {
        "args": {"device": on, "context": 1, "stream": stream} | link | {"bytes": 4096}
    }


def launch(
    start: int,
    correlation: int,
    *,
    name: str = "cudaLaunchKernel",
    category: str = "cuda_runtime",
    dur: int = 1,
) -> dict[str, Any]:
    """Draw the host call that launched the device events of the same correlation."""
    event = _event(category, name, start, start + dur, (HOST_PID, HOST_PID))
    return event | {
        "args": {"External id": correlation, "cbid": 211, "correlation": correlation}
    }


def host(
    name: str, start: int, end: int, *, category: str = "cpu_op", thread: int = HOST_PID
) -> dict[str, Any]:
    """Draw an operator or annotation on a host thread."""
    event = _event(category, name, start, end, (HOST_PID, thread))
    return event | {"args": {"External id": start, "Record function id": 0, "Ev Idx": start}}


def step_span(number: int, start: int, end: int) -> dict[str, Any]:
    """Draw the host span of one profiler step."""
    return host(f"ProfilerStep#{number}", start, end, category="user_annotation")


def framed(events: Sequence[Event]) -> list[Event]:
    """Put around the events what every real trace has around them: names of rows, end marks."""
    rows = list(dict.fromkeys((event["pid"], event["tid"]) for event in events))
    names: list[Event] = []
    for pid, tid in rows:
        where = {"ph": "M", "ts": us(1), "pid": pid}
        names.append({**where, "name": "process_name", "tid": 0, "args": {"name": "python"}})
        label = f"thread {tid} (python)" if pid == HOST_PID else f"stream {tid}"
        names.append({**where, "name": "thread_name", "tid": tid, "args": {"name": label}})
    span = _event("Trace", "PyTorch Profiler (0)", 1, 2, ("Spans", "PyTorch Profiler"))
    start = {"name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g", "ts": us(1)}
    end = {
        "name": "Record Window End",
        "ph": "i",
        "s": "g",
        "pid": "",
        "tid": "",
        "ts": us(9999),
    }
    return [
        *events,
        *names,
        {**span, "args": {"Op count": 0}},
        {**start, "pid": "Traces", "tid": "Trace PyTorch Profiler"},
        end,
    ]


def times(
    *,
    start: int,
    end: int,
    span: int,
    busy: int,
    compute: int,
    idle: int,
    comm: int = 0,
    copy: int = 0,
    overlap: int = 0,
    exposed_comm: int = 0,
    exposed_copy: int = 0,
) -> Times:
    """Name the TIMES that were worked out: nanoseconds."""
    return {
        "start_ns": start,
        "end_ns": end,
        "span_ns": span,
        "busy_ns": busy,
        "compute_ns": compute,
        "comm_ns": comm,
        "copy_ns": copy,
        "overlap_ns": overlap,
        "exposed_comm_ns": exposed_comm,
        "exposed_copy_ns": exposed_copy,
        "idle_ns": idle,
    }


def step(number: int, account: Times | None, *, open_ended: bool = False) -> Expected:
    """Write one expected step; ``None`` where it launched nothing."""
    name = f"ProfilerStep#{number}"
    return {"step": number, "name": name, "open_ended": open_ended, "times": account}


def device(
    name: int | str,
    window: Times,
    *,
    steps: Sequence[Expected] = (),
    kernels: tuple[int, int] | None = None,
    unlinked: tuple[int, int] = (0, 0),
) -> Expected:
    """Write one expected device; ``kernels`` and ``unlinked``: how many, summed duration."""
    whole = {"step": None, "name": None, "open_ended": False, "times": window}
    counts = kernels and {
        "count": kernels[0],
        "time_ns": kernels[1],
        "unlinked_count": unlinked[0],
        "unlinked_time_ns": unlinked[1],
    }
    return {
        "device": name,
        "window": window,
        "steps": list(steps) or [whole],
        "kernels": counts,
    }
