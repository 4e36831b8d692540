"""What the parts of a span are called, and what they are: the words of the report contract."""

# ruff: noqa: RUF001 - the contract writes sets with their signs

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from traceparse.rank import PART_NAMES, Times

__all__ = [
    "BASIS",
    "COMMUNICATION",
    "CPU_DEVICE",
    "DEFINITIONS",
    "DTYPES",
    "NOT_SPLIT",
    "OPEN_ENDED",
    "PARTS",
    "RARE",
    "SOURCES",
    "WHAT_IF",
    "Part",
    "Term",
    "term_of",
]


@dataclass(frozen=True, slots=True)
class Part:
    """One of the four parts that add up to a span; ``key`` is its field without ``_ns``."""

    key: str
    glyph: str
    style: str

    @property
    def name(self) -> str:
        """What people read for it."""
        return PART_NAMES[f"{self.key}_ns"]

    def of(self, times: Times) -> int:
        """Return this part of a span, in nanoseconds."""
        value: int = getattr(times, f"{self.key}_ns")
        return value


PARTS: Final = (
    Part("compute", "█", "bright_blue"),
    Part("exposed_comm", "▓", "yellow"),
    Part("exposed_copy", "▒", "magenta"),
    Part("idle", "░", "dim"),
)


@dataclass(frozen=True, slots=True)
class Term:
    """One share of the waterfall: its name there, and what people read for it."""

    key: str
    name: str
    short: str
    glyph: str
    style: str


_TERMS: Final = {
    term.key: term
    for term in (
        Term("compute", "compute", "compute", "█", "bright_blue"),
        Term("idle", "idle", "idle", "░", "dim"),
        Term("exposed_copy", "exposed copy", "copy", "▒", "magenta"),
        Term("exposed_comm", "exposed comm", "comm", "▓", "yellow"),
        Term("exposed_wait", "exposed wait", "wait", "▒", "yellow"),
        Term("pipeline_wait", "pipeline wait", "pipe", "░", "yellow"),
        Term("exposed_transfer", "exposed transfer", "transf.", "▓", "bright_yellow"),
        Term("exposed_unsplit", "exposed comm (not split)", "unsplit", "▓", "yellow"),
        Term("other_kernels", "other kernels", "other", "▒", "cyan"),
        Term("matmul_inefficiency", "matmul inefficiency", "matmul", "▓", "red"),
        Term("recompute", "recompute", "recomp.", "▒", "bright_blue"),
        Term("mfu", "MFU", "MFU", "█", "green"),
    )
}
# what is left of a waterfall's exposed_comm where waiting and transfer are known apart
NOT_SPLIT: Final = "exposed_unsplit"
# what exposed communication was, in the order of the waterfall; and what most jobs have not
COMMUNICATION: Final = ("exposed_wait", "pipeline_wait", "exposed_transfer", NOT_SPLIT)
RARE: Final = frozenset({"pipeline_wait", NOT_SPLIT})
# torch's names of types in collectives, as peaks have them
DTYPES: Final = {
    "BFloat16": "bf16",
    "Half": "fp16",
    "Float": "fp32",
    "Double": "fp64",
    "Float8_e4m3fn": "fp8",
    "Float8_e5m2": "fp8",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
}
# changes of field what_if
WHAT_IF: Final = {
    "straggler_median": "{ranks} as fast as the others",
    "network_2x": "network twice as fast",
    "network_free": "network free",
    "launch_gaps_gone": "no device waits for its host",
}
SOURCES: Final = {
    "declared": "MFU from declared model FLOP",
    "counted": "MFU from model FLOP that capture recorded",
    "estimated": "MFU estimated: executed less recomputed",
}


def term_of(name: str) -> Term:
    """Return how a share of the waterfall is drawn; one that is new, plainly."""
    words = name.replace("_", " ")
    return _TERMS.get(name) or Term("other", words, words, "▒", "")


# Report contract, sections 3 to 5, in its own words.
DEFINITIONS: Final = {
    "span": "compute + exposed_comm + exposed_copy + idle == span, to the nanosecond, always",
    "window": "first start to last end of the device's events (nothing of the host)",
    "step": (
        "starts with the first compute kernel that belongs to it (the first device event, if "
        "it has no compute kernel) and ends where the next step's starts"
    ),
    "comm": (
        "collective and point-to-point kernels (metadata first, then the kernel-name table)"
    ),
    "copy": "memcpy and memset (MTIA: dma_request)",
    "compute": "every other kernel",
    "busy": "|comm ∪ compute ∪ copy|",
    "overlap": "|comm ∩ compute|",
    "exposed_comm": "|comm − compute|",
    "exposed_copy": "|copy − compute − comm|",
    "idle": "span − busy",
    "data_loader": "of idle: its host fetched data, as spans of a thread that launches say",
    "sync": (
        "of idle: its host had waited for the device, as long as synchronizing calls took "
        "since the launch before"
    ),
    "launch": (
        "of idle: its host was too slow to launch (Python, operators, a kernel that had to be "
        "loaded first)"
    ),
    "not_known": "of idle: launched already, and nobody knows what it still waited for",
    "unlinked": "kernels with no launch record in the file",
    "instance": "the same collective on all ranks of its process group",
    "transfer": "of an instance: the shortest duration among its ranks",
    "wait": "of an instance on a rank: its duration there − transfer",
    "last_rank": "the one with the shortest duration, ties to the lowest rank",
    "what_if": (
        "a mean step when the job is run again from what was recorded, with one thing changed: "
        "what waits for what stays as it was; by subtraction, the step less the same loss"
    ),
    "exposed_wait": "exposed_comm before the transfer of collectives, for the last rank",
    "pipeline_wait": "the same in send and recv: most of it is the pipeline's bubble",
    "exposed_transfer": "exposed_comm within the last `transfer` nanoseconds of an instance",
    "exposed_unsplit": (
        "exposed_comm of what was not seen on every rank of its group that has a file"
    ),
    "algbw": "bytes of split instances / transfer",
    "busbw": (
        "algbw times the factor of nccl-tests, such as 2(n − 1)/n for allreduce; below 1 MiB "
        "the time that one transfers"
    ),
    "clock_residual": "median absolute deviation of aligned ends over matched instances",
    "load_balance": "mean compute / most compute of a rank",
    "serialization": "most compute of a rank / (step − mean exposed_transfer)",
    "parallel_efficiency": (
        "load balance × serialization × transfer; here, transfer = (step − mean "
        "exposed_transfer) / step"
    ),
    "contention": (
        "Σ (duration − median duration of the same operator, shapes and kernel on the same "
        "rank, over the whole file, where no comm overlaps), over compute kernels overlapped "
        "by comm"
    ),
    "achieved": "executed FLOP ÷ span, of one device",
    "hfu": "Σ_dtype executed FLOP/peak ÷ span; executed includes recomputation",
    "mfu": "likewise with what the model needs for forward and backward",
    "other_kernels": "compute time outside counted kernels",
    "matmul_inefficiency": (
        "counted share − hfu; counted = union of all kernels of operators with a FLOP count"
    ),
    "recompute": "hfu − mfu (negative if a declared model FLOP exceeds what ran)",
    "roof": "min(peak, FLOP/bytes · bandwidth), with the least bytes that any code moves",
    "latency": "at its roof a run would take less time than the shortest kernel of the file",
}
CPU_DEVICE: Final = (
    "No device event at all: the device is “cpu”. comm = host events named gloo:* or mpi:*; "
    "compute = cpu_op events on any thread, except c10d::* and record_param_comms, which only "
    "launch. Same identities."
)
OPEN_ENDED: Final = (
    "open-ended: no step follows, so it ends at the later of the last device event that "
    "belongs to it and its host span's end"
)
BASIS: Final = {
    "complete_steps": "steps that are not open-ended and present on every rank",
    "all_steps": "all steps, as none is complete on every rank",
    "windows": "whole windows, as there are no step markers",
}
