"""Ids, names, types and steps that are not what they seem (rows 2, 11, 35 to 45, 50)."""

from __future__ import annotations

from tools.damage_base import (
    EVENTS,
    LINED,
    OBJECTS,
    Damaged,
    Trace,
    damaged,
    kind,
    last_end,
    raw,
    write,
)
from tools.damage_clean import LEGACY, at, clean, host_event, micro, rank_trace

__all__: list[str] = []

STEPS = ("step1", "step2", "step3")
BEYOND_DOUBLE = 2**53


# -- 2: before Kineto --------------------------------------------------------------------------


@kind(2, "the oldest writer's list, with functions of CPU and GPU", ("leg",))
def legacy(layout: str) -> Damaged:
    """Write a list without categories: the process row says what is what."""
    return damaged(write(LEGACY, layout), LEGACY)


@kind(2, "the oldest writer's list, functions of the CPU only", ("leg",))
def legacy_cpu(layout: str) -> Damaged:
    """As torch still writes it: operators of the host."""
    trace = LEGACY.without(*(name for name in LEGACY.events if not name.startswith("op")))
    return damaged(
        write(trace, layout),
        trace,
        notes=["no_device_events"],
        gone=["device_events_unlinked"],
    )


# -- 11: names that the profiler took away ----------------------------------------------------


@kind(11, "names replaced by unknown", EVENTS)
def unknown_names(layout: str) -> Damaged:
    """Whatever had a letter beyond ASCII; metadata still tell a collective."""
    trace = clean(layout)
    for handle in ("op1", "op2", "forward2", "gemm2", "reduce2"):
        trace = trace.edit(handle, name="unknown")
    return damaged(write(trace, layout), trace, notes=["names_unknown"])


@kind(11, "names of all steps replaced by unknown", EVENTS)
def unknown_steps(layout: str) -> Damaged:
    """Without their names there are no steps."""
    trace = clean(layout)
    for handle in STEPS:
        trace = trace.edit(handle, name="unknown")
    return damaged(write(trace, layout), trace, notes=["names_unknown", "no_step_markers"])


# -- 35, 36: numbers of threads, streams, calls -----------------------------------------------


@kind(35, "thread ids below zero and above 2^31", EVENTS)
def odd_threads(layout: str) -> Damaged:
    """Ids are texts to us; -1 and 4294967295 are streams of no kernel."""
    trace = clean(layout).edit("op1", tid=-(2**31)).edit("call1", tid=140_735_021_213_440)
    trace = trace.edit("op2", tid=4_294_967_295).edit("step2", tid=-7)
    sync = host_event("cuda_sync", "Stream Sync", 900_000, 901_000, stream=4_294_967_295)
    other = host_event("cuda_sync", "Context Sync", 902_000, 903_000, stream=-1)
    trace = trace.add(sync=sync | {"pid": 0, "tid": -1}, other=other | {"pid": 0})
    return damaged(write(trace, layout), trace)


@kind(36, "ids beyond what a double holds", EVENTS)
def wide_ids(layout: str) -> Damaged:
    """Tell launches of two steps apart by the last bit; as doubles they would be one."""
    trace = clean(layout)
    for number in (1, 2, 3):
        correlation = BEYOND_DOUBLE + number
        trace = trace.args(f"call{number}", correlation=correlation)
        trace = trace.args(f"gemm{number}", correlation=correlation, stream=2**63 + 4096)
        trace = trace.args(
            f"gemm{number}", graph_node_id=(77 << 32) | number, Comms_Id=2**64 - number
        )
        trace = trace.edit(f"gemm{number}", tid=2**63 + 4096)
    return damaged(write(trace, layout), trace)


# -- 37 to 40, 42: what ties events together ---------------------------------------------------


@kind(37, "External id of kernels equal to their correlation", EVENTS)
def external_is_correlation(layout: str) -> Damaged:
    """Until torch 2.2: joining kernels to operators on it would be wrong."""
    trace = clean(layout)
    for handle, event in trace.events.items():
        if "correlation" in event.get("args", {}):
            trace = trace.args(handle, External_id=event["args"]["correlation"])
    return damaged(write(trace, layout), trace, notes=["external_id_is_correlation"])


@kind(38, "many kernels of one graph launch", EVENTS)
def graph(layout: str) -> Damaged:
    """One correlation for all of them; they belong to the step of the launch."""
    trace = clean(layout).edit("call2", name="cudaGraphLaunch").without("call_relu2")
    correlation = trace.events["call2"]["args"]["correlation"]
    trace = trace.args("relu2", correlation=correlation, External_id=...)
    trace = trace.args("gemm2", External_id=...)
    return damaged(write(trace, layout), trace)


@kind(39, "kernels whose launch is not in the file", EVENTS)
def launch_missing(layout: str) -> Damaged:
    """Their time counts, but belongs to no step."""
    trace = clean(layout).without("call2", "call_reduce3")
    return damaged(write(trace, layout), trace, notes=["device_events_unlinked"])


@kind(40, "correlation 0 on collectives", EVENTS)
def correlation_zero(layout: str) -> Damaged:
    """Zero is no id: it must not tie them to one another, or to a call that has it too."""
    trace = clean(layout).args("call_reduce1", correlation=0)
    for number in (1, 2, 3):
        trace = trace.args(f"reduce{number}", correlation=0)
    notes = ["device_events_unlinked", "launches_without_device_event"]
    return damaged(write(trace, layout), trace, notes=notes)


@kind(
    42, "devices numbered unlike deviceProperties, rows of devices that are not there", OBJECTS
)
def node_numbers(layout: str) -> Damaged:
    """ROCm: device 9 is the only one, process 9 is the host too, sixteen GPUs have names."""
    trace = rank_trace(0, 1, device=9)
    for handle, event in trace.events.items():
        if event["pid"] not in (9, "Spans", "Traces", ""):
            trace = trace.edit(handle, pid=9)
    rows = {
        f"gpu{number}": {
            "name": "process_labels",
            "ph": "M",
            "ts": at(0),
            "pid": number,
            "tid": 0,
            "args": {"labels": f"GPU {number}"},
        }
        for number in range(16)
    }
    trace = trace.add(**rows)
    return damaged(write(trace, layout), trace)


# -- 44: types --------------------------------------------------------------------------------


@kind(44, "numbers as texts", EVENTS)
def numbers_as_texts(layout: str) -> Damaged:
    """Ids, times and durations in quotes mean what they say."""
    trace = clean(layout)
    for handle in ("gemm2", "call2", "op2", "step2"):
        event = trace.events[handle]
        texts = {key: str(event[key]) for key in ("pid", "tid", "ts", "dur")}
        trace = trace.edit(handle, **texts)
    correlation = str(trace.events["gemm2"]["args"]["correlation"])
    trace = trace.args("gemm2", correlation=correlation, stream="7", device="0")
    return damaged(write(trace, layout), trace)


@kind(44, "types that no writer means", EVENTS)
def odd_types(layout: str) -> Damaged:
    """Give a number as a name, a list as a process, nothing as a name."""
    trace = clean(layout)
    bad = trace.edit("op2", name=5).edit("forward2", pid=[1]).edit("relu3", name=None)
    good = trace.edit("op2", name="5").edit("relu3", name="")
    return damaged(write(bad, layout), good, repaired={"odd_type": 3})


@kind(44, "things among the events that are none", EVENTS)
def no_events(layout: str) -> Damaged:
    """Insert a number, a text, nothing and a list: four losses."""
    trace = clean(layout)
    data = write(trace, layout)
    end = last_end(data)
    odd = b', 5, "text", null, [1, {}]'
    return damaged(data[:end] + odd + data[end:], trace, lost={"undecodable": 4})


@kind(44, "half of an event among whole ones", LINED)
def half_an_event(layout: str) -> Damaged:
    """Cut within its name, and the next one follows: it alone is lost."""
    trace = clean(layout)
    marked = write(trace.edit("gemm2", name=raw('"HERE')), layout)
    cut = marked.index(b"HERE")
    end = _close_of(trace, "gemm2", marked, cut)
    return damaged(
        marked[:cut] + marked[end:],
        trace.without("gemm2"),
        lost={"undecodable": 1},
        notes=["launches_without_device_event"],
    )


def _close_of(trace: Trace, handle: str, data: bytes, start: int) -> int:
    """Return where the text between two events begins, which closes the first."""
    names = list(trace.events)
    following = trace.events[names[names.index(handle) + 1]]["name"]
    between = data.rindex(b"{", start, data.index(following.encode(), start))
    return len(data[: data.rindex(b"}", start, between)].rstrip())


# -- 45, 50: steps and record functions -------------------------------------------------------


@kind(45, "no marks of steps", EVENTS)
def no_steps(layout: str) -> Damaged:
    """Leave one step: the whole window."""
    trace = clean(layout).without(*STEPS)
    return damaged(write(trace, layout), trace, notes=["no_step_markers"])


@kind(45, "a step is missing between two others", EVENTS)
def step_missing(layout: str) -> Damaged:
    """Its work belongs to no step."""
    trace = clean(layout).without("step2")
    return damaged(write(trace, layout), trace, notes=["steps_missing"])


@kind(45, "one number for two steps", EVENTS)
def steps_repeated(layout: str) -> Damaged:
    """Two parts of a program that both count from the same number."""
    trace = clean(layout).edit("step2", name="ProfilerStep#7")
    trace = trace.edit("step3", name="ProfilerStep#8")
    return damaged(write(trace, layout), trace, notes=["steps_repeated"])


@kind(45, "steps that overlap", EVENTS)
def steps_overlap(layout: str) -> Damaged:
    """Work in two steps belongs to both."""
    trace = clean(layout).edit("step1", dur=micro(1_100_000))
    return damaged(write(trace, layout), trace, notes=["steps_overlap"])


@kind(50, "record function ids that are all zero", EVENTS)
def record_ids_zero(layout: str) -> Damaged:
    """They are no key: operators of the same id are still two."""
    trace = clean(layout)
    for number in (1, 2, 3):
        trace = trace.args(f"op{number}", Record_function_id=0)
        trace = trace.args(f"record{number}", Record_function_id=0)
    return damaged(write(trace, layout), trace)
