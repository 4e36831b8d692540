"""Damage to a job: ranks that are missing, doubled, unnamed (rows 20, 23, 25 to 29, 43)."""

from __future__ import annotations

from tools.damage_base import (
    EVENTS,
    OBJECTS,
    Damaged,
    Trace,
    damaged,
    end_of,
    kind,
    refused,
    write,
)
from tools.damage_clean import CLEAN, HOST_PID, clean, rank_trace

__all__: list[str] = []

SOME = ("k-old", "k-new", "py", "jd2", "c1")
DEVICE = ("gemm", "reduce", "copy", "relu")
CALLS = ("call", "call_reduce", "call_copy", "call_relu")


def _of_steps(*names: str) -> list[str]:
    return [f"{name}{number}" for name in names for number in (1, 2, 3)]


def _files(layout: str, **traces: Trace) -> dict[str, bytes]:
    return {f"{name}.json": write(trace, layout) for name, trace in traces.items()}


@kind(20, "two of four ranks are there", SOME)
def ranks_missing(layout: str) -> Damaged:
    """Leave two: the others wrote to the same names."""
    two = {"rank0": rank_trace(0, 4), "rank2": rank_trace(2, 4, start=1_250)}
    return damaged(
        _files(layout, **two),
        list(two.values()),
        notes=["missing_ranks"],
        says=["1, 3"],
        missing_ranks=(1, 3),
    )


@kind(20, "the last of eight ranks overwrote all others", SOME)
def ranks_overwritten(layout: str) -> Damaged:
    """One file, which does not name a rank, with the last rank in it."""
    last = rank_trace(7, 8)
    missing = range(7)
    return damaged(
        _files(layout, trace=last), last, notes=["missing_ranks"], missing_ranks=missing
    )


@kind(23, "two captures of one process in a folder", SOME)
def captured_twice(layout: str) -> Damaged:
    """``repeat`` above 1: the newest counts."""
    old, new = rank_trace(0, 1), rank_trace(0, 1, start=9_000_000_500)
    new = new.head(trace_id="f" * 32)
    files = {"w0.1700000001.pt.trace.json": old, "w0.1700000010.pt.trace.json": new}
    return damaged(
        {name: write(trace, layout) for name, trace in files.items()},
        new,
        notes=["repeated_capture"],
    )


@kind(23, "two captures of each of two ranks in a folder", SOME)
def ranks_captured_twice(layout: str) -> Damaged:
    """Use the newest of each rank, whatever its name."""
    new = {rank: rank_trace(rank, 2, start=9_000_000_500) for rank in (0, 1)}
    traces = {
        "z_rank0": rank_trace(0, 2),
        "a_rank0": new[0].head(trace_id="f" * 32),
        "a_rank1": rank_trace(1, 2),
        "z_rank1": new[1].head(trace_id="e" * 32),
    }
    return damaged(_files(layout, **traces), list(new.values()), notes=["repeated_capture"])


@kind(23, "a whole file beside the .tmp of a try that was killed", SOME)
def try_killed(layout: str) -> Damaged:
    """Take the whole one, though what is left of the other is newer."""
    later = rank_trace(0, 1, start=9_000_000_500).head(trace_id="f" * 32)
    torn = write(later, layout)[: end_of(later, layout, 34) + 9]
    files = {"rank0.json": write(rank_trace(0, 1), layout), "rank0.json.tmp": torn}
    return damaged(files, rank_trace(0, 1), truncated=True, notes=["repeated_capture"])


@kind(25, "no distributedInfo, but a rank in the file's name", EVENTS)
def rank_in_name(layout: str) -> Damaged:
    """Believe the name, and say so."""
    trace = clean(layout).head(distributedInfo=...)
    notes, gone = {"rank_from_file_name"}, set()
    if layout == "list":
        gone = {"rank_unknown"}
    else:
        notes |= {"world_size_unknown", "backend_unknown"}
    data = {"job-rank_0.json": write(trace, layout)}
    kept = trace.head(distributedInfo={"rank": 0})
    return damaged(data, kept, notes=sorted(notes), gone=sorted(gone))


@kind(25, "no word about the rank anywhere", OBJECTS)
def rank_unknown(layout: str) -> Damaged:
    """No rank is guessed."""
    trace = clean(layout).head(distributedInfo=...)
    notes = ["rank_unknown", "world_size_unknown", "backend_unknown"]
    return damaged(write(trace, layout), trace, notes=notes)


@kind(25, "distributedInfo with nothing but a rank", SOME)
def rank_only(layout: str) -> Damaged:
    """As some tools write it by hand."""
    trace = clean(layout).head(distributedInfo={"rank": 0})
    return damaged(write(trace, layout), trace, notes=["world_size_unknown", "backend_unknown"])


@kind(25, "two processes claim one rank", SOME)
def rank_doubled(layout: str) -> Damaged:
    """Traces of two jobs in one folder, it seems: the newest is used."""
    new = rank_trace(1, 2, start=5_000_000)
    info = new.header["distributedInfo"] | {"rank": 0}
    new = new.head(distributedInfo=info, trace_id="d" * 32)
    files = _files(layout, a=rank_trace(0, 2), b=new)
    return damaged(files, new, notes=["duplicate_rank", "missing_ranks"], missing_ranks=(1,))


@kind(26, "metadata only", EVENTS)
def metadata_only(layout: str) -> Damaged:
    """Rows have names, but nothing happened on them."""
    trace = clean(layout)
    others = [name for name in trace.events if not name.startswith(("row_", "begin", "end"))]
    return refused(write(trace.without(*others), layout), "no duration events")


@kind(27, "device events only", EVENTS)
def device_only(layout: str) -> Damaged:
    """Without launches no kernel belongs to a step; without marks there are none."""
    trace = clean(layout)
    others = [name for name in trace.events if not name.startswith((*DEVICE, "row_", "end"))]
    trace = trace.without(*others)
    notes = ["device_events_unlinked", "no_step_markers"]
    return damaged(write(trace, layout), trace, notes=notes, gone=["work_unknown"])


@kind(27, "host events only, of a job without an accelerator", EVENTS)
def host_only(layout: str) -> Damaged:
    """Account for the host's operators."""
    trace = clean(layout).without(*_of_steps(*DEVICE, *CALLS, "drawn", "flow_from", "flow_to"))
    return damaged(write(trace, layout), trace, notes=["no_device_events"])


@kind(28, "the first step's device events were dropped", EVENTS)
def events_dropped(layout: str) -> Damaged:
    """Their launches are there, and say so: what came of them looks idle."""
    trace = clean(layout).without("gemm1", "reduce1", "copy1", "relu1")
    notes = ["launches_without_device_event", "step_without_work"]
    return damaged(write(trace, layout), trace, notes=notes)


@kind(29, "launches, but no device event at all", EVENTS)
def tracer_busy(layout: str) -> Damaged:
    """Another tool had the device's tracer."""
    trace = clean(layout).without(*_of_steps(*DEVICE, "drawn"))
    notes = ["no_device_events", "device_events_missing"]
    return damaged(write(trace, layout), trace, notes=notes, says=["tracer"])


@kind(43, "two devices in one file", EVENTS)
def two_devices(layout: str) -> Damaged:
    """One process that uses both; each is accounted for alone."""
    trace = clean(layout)
    for name in _of_steps("gemm"):
        trace = trace.edit(name, pid=1).args(name, device=1)
    return damaged(write(trace, layout), trace, notes=["several_devices"])


@kind(43, "two processes merged into one file", EVENTS)
def two_processes(layout: str) -> Damaged:
    """As tools merge ranks: one list of events, two devices, two host processes."""
    other = rank_trace(1, 2, start=1_000, device=1)
    more = {}
    for name, event in other.events.items():
        if name.startswith((*DEVICE, *CALLS, "op", "record")):
            args = dict(event["args"])
            args["correlation"] = args.get("correlation", 0) + 10_000
            more[f"other_{name}"] = {**event, "args": args}
    trace = clean(layout).add(**more)
    notes = ["several_devices", "several_processes"]
    return damaged(write(trace, layout), trace, notes=notes)


assert HOST_PID in {event.get("pid") for event in CLEAN.events.values()}
