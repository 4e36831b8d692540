"""The truth about calls: what each instance was, and what its files can still tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.simulate_account import Part, uncovered
from tools.simulate_events import DeviceEvent, Ran
from tools.simulate_job import AGES, Job
from tools.simulate_program import Call
from tools.simulate_record import Recording

__all__ = ["Seen", "calls_of", "instances", "parts_of", "seen"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the files tell of an instance, by the contract: own durations of its ranks."""

    durations: Mapping[int, int]
    is_split: bool

    @property
    def transfer_ns(self) -> int:
        """The shortest duration: an upper bound, where ranks are missing."""
        return min(self.durations.values())

    @property
    def last_rank(self) -> int:
        """The rank with the shortest duration; of several the lowest."""
        return min(self.durations, key=lambda rank: (self.durations[rank], rank))


def calls_of(recording: Recording) -> list[tuple[Call, DeviceEvent]]:
    """Return the calls whose kernels a file holds, in order of their start."""
    return [
        (event.work.call, event) for event in recording.device if event.work.call is not None
    ]


def seen(recordings: Sequence[Recording]) -> dict[int, Seen]:
    """Return what the files tell of each instance that is in any of them, by its number."""
    durations: dict[int, dict[int, int]] = {}
    calls: dict[int, Call] = {}
    for recording in recordings:
        for call, event in calls_of(recording):
            start_ns, end_ns = recording.own(event)
            calls[call.number] = call
            durations.setdefault(call.number, {})[recording.rank] = end_ns - start_ns
    present = {recording.rank for recording in recordings}
    return {
        number: Seen(
            found, len(found) >= 2 and set(found) == present & set(calls[number].members)
        )
        for number, found in durations.items()
    }


def parts_of(recording: Recording, known: Mapping[int, Seen]) -> list[Part]:
    """Return the work of a file's device in parts: comm as waiting, then transfer."""
    parts: list[Part] = []
    for event in recording.device:
        start_ns, end_ns = recording.own(event)
        call = event.work.call
        if call is None:
            is_copy = event.work.kind == "copy"
            parts.append(("copy" if is_copy else "compute", start_ns, end_ns))
        elif not known[call.number].is_split:
            parts.append(("unsplit", start_ns, end_ns))
        else:
            split_ns = end_ns - known[call.number].transfer_ns
            parts.append(("pipeline" if call.is_message else "wait", start_ns, split_ns))
            parts.append(("transfer", split_ns, end_ns))
    return parts


def instances(
    job: Job, ran: Sequence[Ran], recordings: Sequence[Recording]
) -> list[dict[str, Any]]:
    """Return every instance of the job, recorded or not, in order of its end."""
    members: dict[int, list[DeviceEvent]] = {}
    for what in ran:
        for event in what.device:
            if event.work.call is not None:
                members.setdefault(event.work.call.number, []).append(event)
    known = seen(recordings)
    files = {recording.rank: recording for recording in recordings}
    found = [
        _instance(job, events, known.get(number), files) for number, events in members.items()
    ]
    return sorted(found, key=lambda instance: (instance["true_end_ns"], instance["number"]))


def _instance(
    job: Job,
    events: Sequence[DeviceEvent],
    known: Seen | None,
    files: Mapping[int, Recording],
) -> dict[str, Any]:
    call = events[0].work.call
    assert call is not None
    last = max(events, key=lambda event: (event.start_ns, -event.rank))
    return {
        "number": call.number,
        "group_name": call.group.name,
        "group_ranks": list(call.group.ranks),
        "collective": "send/recv" if call.is_message else call.collective,
        "source": call.members[0] if call.is_message else None,
        "destination": call.members[1] if call.is_message else None,
        "nth": call.nth if call.is_message else None,
        "dtype": call.dtype,
        "message_bytes": call.message_bytes,
        "has_metadata": _has_metadata(job, events[0]),
        "transfer_ns": last.end_ns - last.start_ns,
        "last_rank": last.rank,
        "true_end_ns": last.end_ns,
        "members": [_member(event, last, files) for event in events],
        "seen": known
        and {
            "split": known.is_split,
            "transfer_ns": known.transfer_ns,
            "last_rank": known.last_rank,
            "wait_ns": {
                str(rank): duration - known.transfer_ns
                for rank, duration in sorted(known.durations.items())
            },
        },
    }


def _has_metadata(job: Job, event: DeviceEvent) -> bool:
    return AGES[job.age].has_metadata and not event.in_graph and not job.on_cpu


def _member(
    event: DeviceEvent, last: DeviceEvent, files: Mapping[int, Recording]
) -> dict[str, Any]:
    file = files.get(event.rank)
    is_recorded = file is not None and any(other is event for other in file.device)
    own = file.own(event) if file is not None and is_recorded else (None, None)
    op = event.launch.op
    return {
        "rank": event.rank,
        "recorded": is_recorded,
        "seq": op.span.seq if op is not None and op.span is not None else None,
        "correlation": None if event.launch.span is not None else event.launch.number,
        "stream": event.work.stream,
        "true_start_ns": event.start_ns,
        "true_launch_ns": event.launch.start_ns,
        "start_ns": own[0],
        "end_ns": own[1],
        "launch_ns": file.own(event.launch)[0] if file is not None and is_recorded else None,
        "wait_ns": last.start_ns - event.start_ns,
        "exposed_ns": _exposed(event, file) if file is not None and is_recorded else None,
    }


def _exposed(event: DeviceEvent, file: Recording) -> int:
    computing = [file.own(other) for other in file.device if other.work.kind == "compute"]
    return uncovered(*file.own(event), computing)
