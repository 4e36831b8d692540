"""How much did every step work, and every operator? Adds up what was attributed.

Everything is added up in Python's integers, which do not overflow: by step and data type, and
by operator, shapes and data type, so that what is kept does not grow with the trace.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from operator import add, sub
from typing import NamedTuple

import numpy as np

from traceparse.errors import Note
from traceparse.ordered import Ordered
from traceparse.rank.attribute import Attributed
from traceparse.rank.classify import COMPUTE, COPY
from traceparse.rank.counted import DtypeWork, OperatorWork
from traceparse.rank.counts import total_ns
from traceparse.rank.nesting import NOTHING
from traceparse.rank.runs import HALF, Runs, dtype_of, runs_on_devices, runs_on_host
from traceparse.rank.signatures import Kind, Signature, Signatures
from traceparse.rank.steps import Segments
from traceparse.work import MAYBE_TF32

__all__ = ["SPAN", "Tally"]

SPAN = (("start", "i8"), ("end", "i8"), ("device", "i2"), ("kind", "i1"))
_OUTSIDE = -1  # of all segments
_FLOP = tuple(field.name for field in fields(DtypeWork) if field.name != "dtype")
_MOST_SAID = 4  # operators that one note names


@dataclass(slots=True)
class _Sum:
    """Work of several runs."""

    count: int = 0
    time_ns: int = 0
    flop: int = 0
    recompute_flop: int = 0
    lowest_flop: int = 0
    highest_flop: int = 0
    maybe_tf32_flop: int = 0
    least_bytes: int = 0

    def add(
        self, call: Signature, count: int, time_ns: int, *, is_recompute: bool, is_maybe: bool
    ) -> None:
        """Add runs of one call."""
        self.count += count
        self.time_ns += time_ns
        self.flop += count * call.flop
        self.recompute_flop += count * (call.flop if is_recompute else call.recompute_flop)
        self.lowest_flop += count * call.lowest_flop
        self.highest_flop += count * call.highest_flop
        self.maybe_tf32_flop += count * call.flop if is_maybe else 0
        self.least_bytes += count * call.least_bytes


class _Row(NamedTuple):
    """What reports tell runs apart by."""

    op: str
    shapes: str
    dtype: str
    is_recompute: bool
    is_maybe_tf32: bool


class _Alike(NamedTuple):
    """What runs have in common that are added up at once."""

    call: int
    device: int
    segment: int
    hint: int


class _Prefix(NamedTuple):
    """Work of one device in one data type, up to the end of each segment that has any."""

    segments: list[int]
    sums: list[tuple[int, ...]]

    @classmethod
    def of(cls, work: Mapping[int, _Sum]) -> _Prefix:
        """Add up work by segment."""
        segments = sorted(work)
        numbers = ((getattr(work[at], name) for name in _FLOP) for at in segments)
        sums = accumulate(numbers, _plus, initial=(0,) * len(_FLOP))
        return cls(segments, list(sums))

    def between(self, first: int, last: int) -> tuple[int, ...]:
        """Return the work in segments from ``first``, before ``last``."""
        start, end = (self.sums[bisect_left(self.segments, at)] for at in (first, last))
        return tuple(map(sub, end, start))


def _plus(one: Iterable[int], other: Iterable[int]) -> tuple[int, ...]:
    return tuple(map(add, one, other))


class Tally:
    """Adds up parts of an :class:`Attribution`; after :meth:`finish`, says what came out.

    ``spans`` are the times of kernels of counted operators, by start.
    """

    def __init__(
        self, signatures: Signatures, segments: Segments, num_devices: int, *, on_host: bool
    ) -> None:
        self.spans = Ordered(SPAN, by=("start",))
        self.num_kernels = [0] * num_devices  # that any operator is around
        self.kernels_ns = [0] * num_devices
        self.conventions: set[str] = set()
        self._signatures = signatures
        self._segments = segments
        self._on_host = on_host
        self._steps: dict[tuple[int, str], dict[int, _Sum]] = defaultdict(
            lambda: defaultdict(_Sum)
        )
        self._rows: dict[_Row, _Sum] = defaultdict(_Sum)
        self._again: dict[_Alike, list[int]] = defaultdict(lambda: [0, 0])
        self._forward: set[int] = set()  # calls that ran outside of backward
        self._missed: Counter[Kind] = Counter()
        self._num_unrepeated = 0

    def add(self, part: Attributed) -> None:
        """Add what is done of a part."""
        missed = part.rows["call"][part.is_missed & part.is_done]
        for call, num in zip(*np.unique(missed, return_counts=True), strict=True):
            self._missed[self._signatures[call].kind] += int(num)
        if self._on_host:
            done = part.rows[part.counts & part.is_done]
            self.spans.add(done.size, start=done["start"], end=done["end"], kind=COMPUTE)
            self._add_runs(runs_on_host(part))
        else:
            self._add_kernels(part)
            runs = runs_on_devices(part)
            events = runs.events[runs.events["kind"] == COMPUTE]
            self.spans.add(
                events.size,
                start=events["first"],
                end=events["end"],
                device=events["device"],
                kind=COMPUTE,
            )
            self._add_runs(runs)

    def _add_kernels(self, part: Attributed) -> None:
        rows = part.rows
        inside = rows["is_event"] & part.is_done & (part.operators != NOTHING)
        kernels = rows[inside & (rows["kind"] != COPY)]
        for device in np.unique(kernels["device"]).tolist():
            own = kernels[kernels["device"] == device]
            self.num_kernels[device] += own.size
            self.kernels_ns[device] += total_ns(own["end"] - own["first"])

    def _add_runs(self, runs: Runs) -> None:
        """Add runs, those that are alike at once."""
        if not runs.calls.size:
            return
        segments = np.full(runs.calls.size, _OUTSIDE)
        rows, found = self._segments.find(runs.launched_ns)
        segments[rows] = found
        keys = np.column_stack(
            [
                runs.calls,
                runs.devices,
                segments,
                runs.hints,
                runs.is_recompute,
                runs.is_in_frame,
                runs.is_outside_engine,
            ]
        )
        alike, which = np.unique(keys, axis=0, return_inverse=True)
        which = which.reshape(-1)
        nums = np.bincount(which)
        upper, lower = (np.bincount(which, half) for half in runs.halves)
        for key, num, up, low in zip(
            alike.tolist(), nums.tolist(), upper.tolist(), lower.tolist(), strict=True
        ):
            *alike_in, is_recompute, is_in_frame, is_outside_engine = key
            one = _Alike(*alike_in)
            time_ns = (int(up) << HALF) + int(low)
            if is_recompute and not is_in_frame:
                again = self._again[one]
                again[0] += num
                again[1] += time_ns
                continue
            if is_outside_engine:
                self._forward.add(one.call)
            self._add(one, num, time_ns, is_recompute=bool(is_recompute))

    def _add(self, alike: _Alike, num: int, time_ns: int, *, is_recompute: bool) -> None:
        signature = self._signatures[alike.call]
        kind = signature.kind
        dtype, is_maybe = dtype_of(kind.dtype, alike.hint, on_host=self._on_host)
        row = _Row(kind.op, kind.shapes, dtype, is_recompute, is_maybe)
        for one in (self._rows[row], self._steps[alike.device, dtype][alike.segment]):
            one.add(signature, num, time_ns, is_recompute=is_recompute, is_maybe=is_maybe)
        self.conventions.update(
            convention
            for convention in kind.conventions
            if is_maybe or convention != MAYBE_TF32
        )

    def finish(self) -> None:
        """Tell repetitions from what is only like one: those have a forward to repeat."""
        for alike, (num, time_ns) in self._again.items():
            is_recompute = alike.call in self._forward
            self._num_unrepeated += 0 if is_recompute else num
            self._add(alike, num, time_ns, is_recompute=is_recompute)
        self._again.clear()

    @cached_property
    def _prefixes(self) -> dict[tuple[int, str], _Prefix]:
        """Work that is complete: a step may have any segments, and there may be many."""
        return {key: _Prefix.of(work) for key, work in sorted(self._steps.items())}

    def work_of(self, device: int, own: slice | None) -> tuple[DtypeWork, ...]:
        """Return what a device worked in some segments; ``None`` stands for all of them."""
        first, last = (_OUTSIDE, self._segments.num) if own is None else (own.start, own.stop)
        found = (
            DtypeWork(dtype, **dict(zip(_FLOP, prefix.between(first, last), strict=True)))
            for (at, dtype), prefix in self._prefixes.items()
            if at == device
        )
        return tuple(work for work in found if work.flop)

    def operators(self) -> tuple[OperatorWork, ...]:
        """Return what each operator worked, the one that took longest first."""
        found = (
            OperatorWork(
                op=row.op,
                shapes=row.shapes,
                dtype=row.dtype,
                is_recompute=row.is_recompute,
                count=one.count,
                time_ns=one.time_ns,
                flop=one.flop,
                recompute_flop=one.recompute_flop,
                least_bytes=one.least_bytes,
                is_maybe_tf32=row.is_maybe_tf32,
            )
            for row, one in self._rows.items()
        )
        return tuple(sorted(found, key=_order))

    def notes(self, rank: int | None, path: str) -> Iterator[Note]:
        """Say what was not counted though others were, and what is not what it looks like."""
        for reason, missed in _by_reason(self._missed).items():
            ops = ", ".join(f"{num} of {op}" for op, num in missed.most_common(_MOST_SAID))
            more = ", …" if len(missed) > _MOST_SAID else ""
            message = f"{ops}{more} are not counted, so FLOP are a lower bound: {reason}"
            yield Note("work_unknown", message, rank, path)
        if self._num_unrepeated:
            yield Note(
                "recompute_unconfirmed",
                f"{self._num_unrepeated} operators run forward inside of backward, but none "
                f"before does the same: they do not count as recomputed",
                rank,
                path,
            )


def _order(one: OperatorWork) -> tuple[int, str, str, str, bool, bool]:
    return -one.time_ns, one.op, one.shapes, one.dtype, one.is_recompute, one.is_maybe_tf32


def _by_reason(missed: Counter[Kind]) -> dict[str, Counter[str]]:
    """Sum by reason and operator, in an order that does not depend on how parts were cut."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, num in sorted(missed.items(), key=lambda one: (one[0].unknown or "", one[0].op)):
        found[kind.unknown or ""][kind.op] += num
    return found
