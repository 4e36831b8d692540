"""Which table takes an event: phase and category say, and for a few their name or process."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

__all__ = [
    "CALL_MARKS",
    "COPIES",
    "EXTRAS",
    "FRAME",
    "LEGACY",
    "SKIP",
    "STEP_MARK",
    "Route",
    "depends_on_event",
    "route",
    "route_of_event",
]

EXTRAS = frozenset({"python_functions", "counters"})

SKIP, LEGACY = "skip", "legacy"
STEP_MARK: Final = "ProfilerStep"
CALL_MARKS: Final = ("gloo:", "mpi:", "nccl:", "xccl:")  # annotations around collectives
FRAME: Final = "python_function"  # the category of Python calls
# in which torch repeats a forward: torch/utils/checkpoint.py(1500): recompute_fn
_CHECKPOINT_FILE = "torch/utils/checkpoint.py("
_RECOMPUTES = "): recompute_fn"


class Route(NamedTuple):
    """A table, and how the category is spelled there; for ``SKIP``, the reason to count."""

    table: str
    label: str


COPIES: Final = frozenset({"gpu_memcpy", "gpu_memset"})  # labels of copies and memsets
_DEVICE = {
    "kernel": "kernel",
    "gpu_memcpy": "gpu_memcpy",
    "gpu_memset": "gpu_memset",
    "memcpy": "gpu_memcpy",  # the spelling of 2021
    "memset": "gpu_memset",
    "mtia_ccp_events": "mtia_ccp_events",
}
_HOST = {
    "cpu_op": Route("ops", "cpu_op"),
    "operator": Route("ops", "cpu_op"),
    "user_annotation": Route("annotations", "user_annotation"),
    "user": Route("annotations", "user_annotation"),
    "python_function": Route("python_functions", FRAME),
    "gpu_user_annotation": Route(SKIP, "gpu_annotation"),
    "overhead": Route("annotations", "overhead"),
    "trace": Route("annotations", "trace"),
    "cuda_sync": Route(SKIP, "sync"),
    "xpu_sync": Route(SKIP, "sync"),
    "cuda_event": Route(SKIP, "sync"),
}
_LAUNCHES = {
    "runtime": "cuda_runtime",  # the spelling of 2021
    **{
        f"{vendor}_{layer}": f"{vendor}_{layer}"
        for vendor in ("cuda", "xpu", "mtia", "glow", "privateuse1")
        for layer in ("runtime", "driver")
    },
}
_PHASES = {
    "C": Route("counters", "counter"),
    "M": Route(SKIP, "metadata"),
    "s": Route(SKIP, "flow"),
    "t": Route(SKIP, "flow"),
    "f": Route(SKIP, "flow"),
    "i": Route(SKIP, "instant"),
    "I": Route(SKIP, "instant"),
}
_MARK = Route("annotations", "user_annotation")
_RECOMPUTATION = Route("annotations", FRAME)
_MTIA_SYNC = frozenset({"event_wait", "event_record"})
_LEGACY_PID = {
    "CPU functions": Route("ops", "cpu_op"),
    "CUDA functions": Route("device_events", "kernel"),
}


@lru_cache(maxsize=1024)  # a file may have any number of categories
def route(phase: str, category: str | None) -> Route:
    """Say which table takes such events; ``LEGACY`` if it takes the process to tell."""
    if phase != "X":
        return _PHASES.get(phase, Route(SKIP, "other_phase" if phase else "no_phase"))
    if category is None:
        return Route(LEGACY, "")
    lower = category.lower()
    if lower in _DEVICE:
        return Route("device_events", _DEVICE[lower])
    if "runtime" in lower or "driver" in lower:
        return Route("launches", _LAUNCHES.get(lower, "other_runtime"))
    return _HOST.get(lower, Route(SKIP, "other_category"))


def depends_on_event(way: Route) -> bool:
    """Say whether some events of a route go another way."""
    return way.table in ("ops", "python_functions", LEGACY) or way.label == "mtia_ccp_events"


def route_of_event(way: Route, name: str, process: object = None) -> Route:
    """Return where such an event goes.

    Step markers were operators once, and are no work; the old autograd profiler names the
    device in the process. Of Python calls those mark something that repeat a forward.
    """
    if way.table == LEGACY:
        return _LEGACY_PID.get(str(process), Route(SKIP, "no_category"))
    if way.table == "ops":
        return _MARK if name.startswith(STEP_MARK) else way
    if way.label == FRAME:
        recomputes = name.endswith(_RECOMPUTES) and _CHECKPOINT_FILE in name
        return _RECOMPUTATION if recomputes else way
    return Route(SKIP, "sync") if name in _MTIA_SYNC else way
