"""The truth of a simulated job, from what it did, by the definitions of the report contract.

What is said of files (TIMES, work, exposure) is on the rank's own clock and of recorded events
alone; what is said of the job (``true_...``, ``what_if``) is in true time, of all events.

Of an instance, ``transfer_ns``, ``last_rank`` and ``wait_ns`` are what happened; ``seen`` is
what the files tell of it, by the contract, and what exposure is split by. The two are the same
where every member has a file that shows it and clocks do not drift.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from tools.simulate_account import EXPOSED, Part, account
from tools.simulate_events import DeviceEvent, HostEvent, Ran
from tools.simulate_gloo import run_job
from tools.simulate_instances import Seen, instances, parts_of, seen
from tools.simulate_job import CHANGES, Job, changed
from tools.simulate_record import Recording

__all__ = ["truth_of"]

_COMM = (
    "exposed_transfer_ratio",
    "exposed_wait_ratio",
    "exposed_unsplit_ratio",
    "contention_ratio",
)


def truth_of(job: Job, ran: Sequence[Ran], recordings: Sequence[Recording]) -> dict[str, Any]:
    """Return all that is true of a job and its files, as JSON could hold it."""
    known = seen(recordings)
    devices = [_device(job, recording, known) for recording in recordings]
    complete = _complete(devices)
    return {
        "world_size": job.world_size,
        "ranks": [recording.rank for recording in recordings],
        "missing_ranks": sorted(job.missing),
        "age": job.age,
        "groups": [
            {"name": g.name, "description": g.description, "ranks": list(g.ranks)}
            for g in job.groups
        ],
        "devices": devices,
        "instances": instances(job, ran, recordings),
        "clock": _clock(recordings),
        "complete_steps": complete,
        "scaling_loss": _scaling_loss(devices, complete),
        "straggler": job.straggler
        and {"rank": job.straggler.rank, "cause": job.straggler.cause},
        "what_if": {"as_run": step_ns(ran, complete)} | _what_if(job, complete),
    }


# -- one device


def _device(job: Job, recording: Recording, known: Mapping[int, Seen]) -> dict[str, Any]:
    parts = parts_of(recording, known)
    own = [recording.own(event) for event in recording.device]
    window = account(parts, min(start for start, _ in own), max(end for _, end in own))
    slower = {} if job.on_cpu else _contention(recording)
    return {
        "rank": recording.rank,
        "device": "cpu" if job.on_cpu else recording.rank % 8,
        "window": window,
        "steps": _steps(recording, parts, slower),
        "kernels": None if job.on_cpu else _kernels(recording),
        "contention": _contention_sums(recording, slower),
    }


def _steps(
    recording: Recording,
    parts: Sequence[Part],
    slower: Mapping[DeviceEvent, float | None],
) -> list[dict[str, Any]]:
    """Return the steps of a file: the time of its interval, the work that it launched."""
    markers = recording.markers
    owned = [_launched_in(recording, marker) for _, marker in markers]
    starts = [_first_work(recording, events) for events in owned]
    steps = []
    for place, (span, marker) in enumerate(markers):
        start_ns = starts[place]
        later = [start for start in starts[place + 1 :] if start is not None]
        step: dict[str, Any] = {"step": span.step, "name": span.name}
        step["open_ended"] = start_ns is not None and not later
        if start_ns is not None:
            ends = [recording.own(event)[1] for event in owned[place]]
            last_ns = max(*ends, recording.own(marker)[1])
            step |= account(parts, start_ns, later[0] if later else last_ns)
        step["contention_ns"] = sum(slower.get(event) or 0 for event in owned[place])
        steps.append(step | _work(recording, owned[place]))
    return steps


def _launched_in(recording: Recording, marker: HostEvent) -> list[DeviceEvent]:
    start_ns, end_ns = recording.own(marker)
    recorded = set(recording.host)
    return [
        event
        for event in recording.device
        if event.launch in recorded and start_ns <= recording.own(event.launch)[0] < end_ns
    ]


def _first_work(recording: Recording, events: Iterable[DeviceEvent]) -> int | None:
    compute = [event for event in events if event.work.kind == "compute"]
    return min((recording.own(event)[0] for event in compute or events), default=None)


def _work(recording: Recording, events: Iterable[DeviceEvent]) -> dict[str, int]:
    """Return the work of operators that were recorded with a kernel of theirs."""
    recorded = set(recording.host)
    ops = {event.launch.op for event in events if not event.in_graph}
    spans = [op.span for op in ops if op is not None and op in recorded and op.span is not None]
    return {
        "executed_flop": sum(span.flop for span in spans),
        "recompute_flop": sum(span.flop for span in spans if span.is_recompute),
    }


def _kernels(recording: Recording) -> dict[str, int]:
    recorded = set(recording.host)
    kernels = [event for event in recording.device if event.work.kind != "copy"]
    unlinked = [event for event in kernels if event.launch not in recorded]
    alone = [event for event in kernels if event.in_graph or event.launch.op not in recorded]
    counts = {}
    for name, events in (("", kernels), ("unlinked_", unlinked), ("unattributed_", alone)):
        spans = [recording.own(event) for event in events]
        counts[f"{name}count"] = len(events)
        counts[f"{name}time_ns"] = sum(end - start for start, end in spans)
    return counts


def _contention(recording: Recording) -> dict[DeviceEvent, float | None]:
    """Return, of compute kernels under comm, how much longer each took than those alone.

    That is their median; alike are those of the same operator, shapes and kernel. ``None``
    where none of them was ever alone.
    """
    recorded = set(recording.host)
    comms = [recording.own(e) for e in recording.device if e.work.kind == "comm"]
    alone: dict[Any, list[int]] = {}
    slowed: dict[DeviceEvent, int] = {}
    for event in recording.device:
        if event.work.kind == "compute":
            start_ns, end_ns = recording.own(event)
            if any(start < end_ns and start_ns < end for start, end in comms):
                slowed[event] = end_ns - start_ns
            else:
                alone.setdefault(_likeness(event, recorded), []).append(end_ns - start_ns)
    medians = {key: median(durations) for key, durations in alone.items()}
    return {
        event: duration_ns - medians[kind] if kind in medians else None
        for event, duration_ns in slowed.items()
        for kind in [_likeness(event, recorded)]
    }


def _contention_sums(
    recording: Recording, slower: Mapping[DeviceEvent, float | None]
) -> dict[str, float]:
    durations = {
        event: end - start for event in slower for start, end in [recording.own(event)]
    }
    return {
        "contention_ns": sum(excess or 0 for excess in slower.values()),
        "overlapped_ns": sum(durations.values()),
        "unknown_ns": sum(durations[e] for e, excess in slower.items() if excess is None),
    }


def _likeness(event: DeviceEvent, recorded: Container[object]) -> tuple[str, str, str]:
    """Return what tells kernels alike, as far as the file shows it."""
    op = event.launch.op
    if event.in_graph or op is None or op.span is None or op not in recorded:
        return event.work.name, "", ""
    return event.work.name, op.name, str(op.span.args.get("Input Dims"))


# -- all ranks


def _clock(recordings: Sequence[Recording]) -> dict[str, Any]:
    """Return offsets and drift against the lowest rank, at its first device event."""
    first = min(recordings, key=lambda recording: recording.rank)
    at_ns = min(event.start_ns for event in first.device)
    speed = 1 + first.clock.drift_ppb / 1e9
    return {
        "reference_rank": first.rank,
        "exact": all(r.clock.drift_ppb == first.clock.drift_ppb for r in recordings),
        "offsets_ns": {
            str(r.rank): r.clock.read(at_ns) - first.clock.read(at_ns) for r in recordings
        },
        "drift_ppm": {
            str(r.rank): ((1 + r.clock.drift_ppb / 1e9) / speed - 1) * 1e6 for r in recordings
        },
    }


def _complete(devices: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the steps that have an end and are in every file."""
    sets = [
        {
            step["step"]
            for step in device["steps"]
            if "span_ns" in step and not step["open_ended"]
        }
        for device in devices
    ]
    return sorted(set.intersection(*sets))


def _scaling_loss(
    devices: Sequence[Mapping[str, Any]], complete: Sequence[int]
) -> dict[str, Any] | None:
    """Return the mean device-step and what of it was exposed, and the POP factors."""
    if not complete:
        return None
    by_rank = [
        [step for step in device["steps"] if step["step"] in complete] for device in devices
    ]
    steps = [step for steps in by_rank for step in steps]
    mean_ns = fmean(step["span_ns"] for step in steps)
    ratios = {
        f"{name.removesuffix('_ns')}_ratio": fmean(step[name] for step in steps) / mean_ns
        for name in EXPOSED.values()
    }
    ratios["contention_ratio"] = fmean(step["contention_ns"] for step in steps) / mean_ns
    ratios["comm_ratio"] = sum(ratios[name] for name in _COMM)
    useful = [fmean(step["compute_ns"] for step in steps) for steps in by_rank]
    ideal_ns = mean_ns * (1 - ratios["exposed_transfer_ratio"])
    factors = {
        "load_balance": fmean(useful) / max(useful),
        "serialization": max(useful) / ideal_ns,
        "transfer": ideal_ns / mean_ns,
        "parallel_efficiency": fmean(useful) / mean_ns,
    }
    return {"step_ns": mean_ns} | ratios | factors


def step_ns(ran: Sequence[Ran], complete: Sequence[int]) -> float | None:
    """Return the mean of some steps over all ranks, in true time."""
    spans = []
    for what in ran:
        first: dict[int, int] = {}
        for event in what.device:
            if event.work.kind == "compute" and event.step is not None:
                first.setdefault(event.step, event.start_ns)
        spans += [first[step + 1] - first[step] for step in complete]
    return fmean(spans) if spans else None


def _what_if(job: Job, complete: Sequence[int]) -> dict[str, float | None]:
    """Return the mean step of the same job run again with one thing changed."""
    found: dict[str, float | None] = {}
    for change in CHANGES:
        conditions = changed(job, change)
        found[change] = (
            None if conditions is None else step_ns(run_job(job, conditions), complete)
        )
    return found
