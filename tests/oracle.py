"""A slow reference analyzer: section 3 of the report contract, by brute force.

It shares no code with traceparse and was written from the definitions alone: decimals instead
of parsed digits, one walk over elementary segments instead of interval algebra, lists of
dicts instead of tables. Where the two disagree, one of them is wrong.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

import zstandard

Event = Mapping[str, Any]
Analysis = dict[str, Any]

EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN)
LEGACY_PID = "CPU functions"
# oracle/README.md, COMM_TABLE and rule R10: a letter before the match rules it out
COMM_NAMES = re.compile(
    r"(?<![a-z])(?:nccl|rccl|multimem_.*all_?reduce|one_shot_all_reduce|two_shot_all_reduce"
    r"|cross_device_reduce|quickreduce|allreduce_fusion|deep_ep::|dpsk::ep|nvshmem|mscclpp"
    r"|msccl|oneccl|hccl)",
    re.IGNORECASE,
)


def load(data: bytes) -> tuple[list[Event], dict[str, Any]]:
    """Read the bytes of a trace file into its events and the keys beside them."""
    document = json.loads(
        unpack(data).decode("utf-8", errors="replace").removeprefix("\ufeff"),
        parse_float=Decimal,
        strict=False,
    )
    if isinstance(document, list):
        return document, {}
    return document.pop("traceEvents"), document


def unpack(data: bytes) -> bytes:
    """Decompress gzip (any number of members) and zstd; hand anything else back."""
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    return data


def analyze(events: Iterable[Event], header: Mapping[str, Any]) -> Analysis:
    """Account for the time of every device of one trace."""
    base_ns = int(header.get("baseTimeNanoseconds", 0))
    usable, skipped = timed(events, base_ns)
    launches = first_launches(usable)
    work: dict[Any, list[Analysis]] = defaultdict(list)
    for event in usable:
        kind = device_kind(event)
        if kind is not None:
            launch = launches.get(number(event["args"].get("correlation")) or Decimal(0))
            record = {**event, "kind": kind, "launch_ns": launch, "linked": launch is not None}
            work[device_of(event)].append(record)
    if not work:
        work["cpu"] = host_work(usable)
    markers = step_markers(usable)
    info = header.get("distributedInfo") or {}
    return {
        "rank": info.get("rank"),
        "world_size": info.get("world_size"),
        "skipped": skipped,
        "devices": [
            device_report(device, records, markers)
            for device, records in sorted(work.items(), key=lambda item: str(item[0]))
            if records
        ],
    }


def timed(events: Iterable[Event], base_ns: int) -> tuple[list[Analysis], dict[str, int]]:
    """Give duration events ``start_ns`` and ``end_ns``; count those without a usable time."""
    usable, skipped = [], Counter[str]()
    for event in events:
        if event.get("ph") != "X":
            continue
        ts, dur = number(event.get("ts")), number(event.get("dur"))
        if ts is None or dur is None or ts <= 0 or dur < 0:
            skipped[reason(ts, dur)] += 1
            continue
        start_ns = base_ns + nanoseconds(ts)
        legacy = event.get("cat") is None and event.get("pid") == LEGACY_PID
        usable.append(
            {
                "cat": "cpu_op" if legacy else str(event.get("cat") or "").lower(),
                "name": str(event.get("name", "")),
                "pid": event.get("pid"),
                "args": event.get("args") or {},
                "start_ns": start_ns,
                "end_ns": start_ns + nanoseconds(dur),
            }
        )
    return usable, dict(sorted(skipped.items()))


def reason(ts: Decimal | None, dur: Decimal | None) -> str:
    """Say what is wrong first with a time that cannot be used."""
    if ts is None:
        return "time_missing"
    if ts <= 0:
        return "time_negative" if ts < 0 else "time_zero"
    return "duration_missing" if dur is None else "duration_negative"


def number(value: Any) -> Decimal | None:
    """Return a JSON number, or a number in quotes, exactly; None for anything else."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return EXACT.create_decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return None


def nanoseconds(microseconds: Decimal) -> int:
    """Round microseconds half-even to whole nanoseconds."""
    return int(EXACT.to_integral_exact(EXACT.multiply(microseconds, Decimal(1000))))


def device_kind(event: Analysis) -> str | None:
    """Say whether an event is compute, comm or copy of a device, or none of them."""
    category, name = event["cat"], event["name"]
    if category in ("gpu_memcpy", "memcpy", "gpu_memset", "memset"):
        return "copy"
    if category == "mtia_ccp_events":
        kinds = {"event_wait": None, "event_record": None, "dma_request": "copy"}
        return kinds.get(name, "compute")
    if category == "kernel":
        is_comm = "Collective name" in event["args"] or COMM_NAMES.search(name)
        return "comm" if is_comm else "compute"
    return None


def device_of(event: Analysis) -> Any:
    """Name the device of a device event: its argument, else its process row."""
    device = number(event["args"].get("device", event["pid"]))
    return event["pid"] if device is None else int(device)


def first_launches(usable: Sequence[Analysis]) -> dict[Decimal, int]:
    """Map each correlation to the start of its earliest runtime or driver event."""
    launches: dict[Decimal, int] = {}
    for event in usable:
        correlation = number(event["args"].get("correlation"))
        if ("runtime" in event["cat"] or "driver" in event["cat"]) and correlation:
            start_ns = event["start_ns"]
            launches[correlation] = min(start_ns, launches.get(correlation, start_ns))
    return launches


def host_work(usable: Sequence[Analysis]) -> list[Analysis]:
    """Take host events as the work of device ``cpu``, where there is no accelerator."""
    work = []
    for event in usable:
        name, is_op = event["name"], event["cat"] in ("cpu_op", "operator")
        is_comm = name.startswith(("gloo:", "mpi:"))
        if is_comm and (is_op or event["cat"] == "user_annotation"):
            kind = "comm"
        elif is_op and not name.startswith("c10d::") and name != "record_param_comms":
            kind = "compute"
        else:
            continue
        work.append({**event, "kind": kind, "launch_ns": event["start_ns"], "linked": True})
    return work


def step_markers(usable: Sequence[Analysis]) -> list[Analysis]:
    """Return the host spans of steps in order of their start."""
    found = [
        event
        for event in usable
        if event["name"].startswith("ProfilerStep") and event["cat"] != "gpu_user_annotation"
    ]
    return sorted(found, key=lambda event: event["start_ns"])


def device_report(
    device: Any, records: Sequence[Analysis], markers: Sequence[Analysis]
) -> Analysis:
    """Account for one device: its window, its steps, its kernels."""
    start_ns = min(record["start_ns"] for record in records)
    end_ns = max(record["end_ns"] for record in records)
    window = times(records, start_ns, end_ns)
    kernels = [record for record in records if record["kind"] != "copy"]
    unlinked = [record for record in kernels if not record["linked"]]
    whole = {"step": None, "name": None, "open_ended": False, "times": window}
    return {
        "device": device,
        "window": window,
        "steps": step_reports(records, markers) if markers else [whole],
        "kernels": None
        if device == "cpu"
        else {
            "count": len(kernels),
            "time_ns": sum(record["end_ns"] - record["start_ns"] for record in kernels),
            "unlinked_count": len(unlinked),
            "unlinked_time_ns": sum(
                record["end_ns"] - record["start_ns"] for record in unlinked
            ),
        },
    }


def step_reports(records: Sequence[Analysis], markers: Sequence[Analysis]) -> list[Analysis]:
    """Cut the device's time into the intervals of its steps."""
    owned = [[record for record in records if belongs(record, marker)] for marker in markers]
    starts = [first_work(mine) for mine in owned]
    reports = []
    for index, marker in enumerate(markers):
        later = [start for start in starts[index + 1 :] if start is not None]
        start_ns = starts[index]
        report: Analysis = {
            "step": int(marker["name"].partition("#")[2]),
            "name": marker["name"],
            "open_ended": start_ns is not None and not later,
            "times": None,
        }
        if start_ns is not None:
            ends = [marker["end_ns"], *(record["end_ns"] for record in owned[index])]
            end_ns = later[0] if later else max(ends)
            # steps may begin out of order on the device; nothing then lasts less than nothing
            report["times"] = times(records, start_ns, max(start_ns, end_ns))
        reports.append(report)
    return reports


def belongs(record: Analysis, marker: Analysis) -> bool:
    """Tell whether a device event was launched within a host step."""
    launch_ns = record["launch_ns"]
    return launch_ns is not None and marker["start_ns"] <= launch_ns < marker["end_ns"]


def first_work(mine: Sequence[Analysis]) -> int | None:
    """Return where a step begins on the device: its first compute, else its first event."""
    compute = [record["start_ns"] for record in mine if record["kind"] == "compute"]
    return min(compute or [record["start_ns"] for record in mine], default=None)


def times(records: Sequence[Analysis], start_ns: int, end_ns: int) -> dict[str, int]:
    """Walk the elementary segments of ``[start, end)`` and ask of each who was at work."""
    edges: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for record in records:
        begin, end = max(record["start_ns"], start_ns), min(record["end_ns"], end_ns)
        if begin < end:
            edges[begin][record["kind"]] += 1
            edges[end][record["kind"]] -= 1
    total = dict.fromkeys(
        ("busy", "compute", "comm", "copy", "overlap", "exposed_comm", "exposed_copy", "idle"),
        0,
    )
    points = sorted({start_ns, end_ns, *edges})
    running = {"compute": 0, "comm": 0, "copy": 0}
    for here, there in pairwise(points):
        for kind, change in edges.get(here, {}).items():
            running[kind] += change
        for label in labels({kind for kind, count in running.items() if count}):
            total[label] += there - here
    span = {"start_ns": start_ns, "end_ns": end_ns, "span_ns": end_ns - start_ns}
    return span | {f"{name}_ns": value for name, value in total.items()}


def labels(active: set[str]) -> set[str]:
    """Name the sums to which an instant with these kinds at work adds."""
    if not active:
        return {"idle"}
    found = active | {"busy"}
    if {"comm", "compute"} <= active:
        found.add("overlap")
    elif "comm" in active:
        found.add("exposed_comm")
    elif active == {"copy"}:
        found.add("exposed_copy")
    return found
