"""What the parts of a span are called, and what they are: the words of the report contract."""

# ruff: noqa: RUF001 - the contract writes sets with their signs

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from traceparse.rank import PART_NAMES, Times

__all__ = [
    "BASIS",
    "CPU_DEVICE",
    "DEFINITIONS",
    "OPEN_ENDED",
    "PARTS",
    "SOURCES",
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
        Term("idle", "idle", "idle", "░", "dim"),
        Term("exposed_copy", "exposed copy", "copy", "▒", "magenta"),
        Term("exposed_comm", "exposed comm", "comm", "▓", "yellow"),
        Term("other_kernels", "other kernels", "other", "▒", "cyan"),
        Term("matmul_inefficiency", "matmul inefficiency", "matmul", "▓", "red"),
        Term("recompute", "recompute", "recomp.", "▒", "bright_blue"),
        Term("mfu", "MFU", "MFU", "█", "green"),
    )
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


# Report contract, sections 3 and 4, in its own words.
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
    "unlinked": "kernels with no launch record in the file",
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
