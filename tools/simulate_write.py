"""Write a recording as libkineto writes it: the file that a rank of the job would leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tools.layouts import Event, Num, write_layout
from tools.simulate_events import DeviceEvent, HostEvent
from tools.simulate_job import AGES, Age, Job
from tools.simulate_program import Call
from tools.simulate_record import Recording
from tools.simulate_said import comm_args, header, kernel_args, process_id

__all__ = ["trace_bytes"]

_LAUNCHES = {
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cudaMemcpyAsync": 41,
    "cudaGraphLaunch": 311,
    "cudaStreamSynchronize": 131,
    "cudaEventRecord": 135,
    "cudaStreamWaitEvent": 147,
}


def trace_bytes(job: Job, recording: Recording) -> bytes:
    """Return the trace file of one rank."""
    age = AGES[job.age]
    writer = _Writer(job, recording, age)
    events = [*writer.host(), *writer.device(), *writer.annotations(), *writer.frame()]
    return write_layout(events, header(job, recording, age), age.layout)


class _Writer:
    def __init__(self, job: Job, recording: Recording, age: Age) -> None:
        self.job, self.recording, self.age = job, recording, age
        self.pid = process_id(recording.rank)
        self.threads = {"main": self.pid, "autograd": self.pid + 480, "gloo": self.pid + 5}
        self.gpu = recording.rank % 8

    def _stamp(self, own_ns: int) -> Num:
        """Spell a time or duration in microseconds; before 2024, whole ones."""
        whole, part = divmod(own_ns, 1_000)
        if self.age.has_nanoseconds:
            return Num(f"{whole}.{part:03}")
        assert part == 0, "this age cannot tell nanoseconds"
        return Num(whole)

    def _at(self, own_ns: int) -> Num:
        base_ns = self.recording.clock.base_ns if self.age.has_nanoseconds else 0
        return self._stamp(own_ns - base_ns)

    def _span(
        self, category: str, name: str, row: tuple[int, int], own: tuple[int, int]
    ) -> dict[str, Any]:
        start_ns, end_ns = own
        pid, tid = row
        event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
        return event | {"ts": self._at(start_ns), "dur": self._stamp(end_ns - start_ns)}

    # -- the host

    def host(self) -> Iterator[Event]:
        """Yield operators, annotations and calls of the runtime."""
        for index, event in enumerate(self.recording.host):
            row = self.pid, self.threads[event.thread]
            written = self._span(event.category, event.name, row, self.recording.own(event))
            if event.category == "cuda_runtime":
                args = _external(event.op) | {"cbid": _LAUNCHES[event.name]}
                yield written | {"args": args | {"correlation": event.number}}
            else:
                yield written | {"args": self._op_args(event, index)}
            if event.is_launch:
                yield self._arrow("s", event.number, row, event.start_ns)

    def _op_args(self, event: HostEvent, index: int) -> Mapping[str, Any]:
        assert event.span is not None
        args: dict[str, Any] = {"External id": event.number, "Record function id": 0}
        args |= event.span.args
        call = event.span.call
        if call is not None and self.age.has_metadata:
            args |= comm_args(call, event.span.seq, self.recording.rank, self.age)
            args |= _places(call, self.recording.rank)
        return args | {"Ev Idx": index}

    # -- the device

    def device(self) -> Iterator[Event]:
        """Yield kernels and copies, each with the arrow from its launch."""
        for event in self._on_device():
            row = self.gpu, event.work.stream
            own = self.recording.own(event)
            category = "gpu_memcpy" if event.work.kind == "copy" else "kernel"
            args = {} if event.in_graph else _external(event.launch.op)
            args |= kernel_args(event, self.gpu)
            span = event.launch.op.span if event.launch.op is not None else None
            call = event.work.call
            if call is not None and span is not None and self.age.has_metadata:
                args |= comm_args(call, span.seq, self.recording.rank, self.age)
            yield self._span(category, event.work.name, row, own) | {"args": args}
            yield self._arrow("f", event.launch.number, row, event.start_ns)

    def _on_device(self) -> Sequence[DeviceEvent]:
        return [] if self.job.on_cpu else self.recording.device

    def _arrow(self, phase: str, number: int, row: tuple[int, int], true_ns: int) -> Event:
        pid, tid = row
        ts = self._at(self.recording.clock.read(true_ns))
        event = {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": ts}
        end = {"bp": "e"} if phase == "f" else {}
        return event | {"cat": "ac2g", "name": "ac2g"} | end

    def annotations(self) -> Iterator[Event]:
        """Yield annotations as drawn on each stream, a little wider than their kernels."""
        spans: dict[tuple[HostEvent, int], list[DeviceEvent]] = {}
        for event in self._on_device():
            above = event.launch.above
            while above is not None:
                if above.category == "user_annotation":
                    spans.setdefault((above, event.work.stream), []).append(event)
                above = above.above
        wider_ns = (1, 1) if self.age.has_nanoseconds else (1_000, 0)
        for (above, stream), events in spans.items():
            own = [self.recording.own(event) for event in events]
            start_ns = min(start for start, _ in own) - wider_ns[0]
            end_ns = max(end for _, end in own) + wider_ns[1]
            row = self.gpu, stream
            written = self._span("gpu_user_annotation", above.name, row, (start_ns, end_ns))
            yield written | {"args": {"External id": above.number}}

    # -- around them

    def frame(self) -> Iterator[Event]:
        """Yield the names of rows and the marks of the profiler's beginning and end."""
        device = [self.recording.own(event) for event in self.recording.device]
        host = [self.recording.own(event) for event in self.recording.host]
        begin_ns = self.recording.clock.read(self.recording.begin_ns)
        end_ns = max(end for _, end in device + host) + 1_000_000
        ts = self._at(begin_ns)
        streams = sorted({event.work.stream for event in self._on_device()})
        threads = sorted({self.threads[event.thread] for event in self.recording.host})
        rows = [(self.pid, tid, f"thread {tid} (python)") for tid in threads]
        rows += [(self.gpu, stream, f"stream {stream} ") for stream in streams]
        for pid, label in ((self.pid, "CPU"), (self.gpu, f"GPU {self.gpu}")):
            for name, args in (("name", {"name": "python"}), ("labels", {"labels": label})):
                row = {"ph": "M", "ts": ts, "pid": pid, "tid": 0}
                yield {"name": f"process_{name}"} | row | {"args": args}
        for pid, tid, name in rows:
            row = {"ph": "M", "ts": ts, "pid": pid, "tid": tid}
            yield {"name": "thread_name"} | row | {"args": {"name": name}}
        span: Any = {"ph": "X", "cat": "Trace", "ts": ts, "dur": self._stamp(end_ns - begin_ns)}
        where = {"pid": "Spans", "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)"}
        yield span | where | {"args": {"Op count": 0}}
        mark = {"name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g"}
        yield mark | {"pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": ts}
        last = {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": ""}
        yield last | {"ts": self._at(end_ns)}


def _external(op: HostEvent | None) -> dict[str, Any]:
    return {} if op is None else {"External id": op.number}


def _places(call: Call, rank: int) -> dict[str, Any]:
    """Return what only the operator says: who it is in its group, and how that is numbered."""
    ranks = call.group.ranks
    strides = {after - before for before, after in pairwise(ranks)}
    is_even = len(strides) == 1
    place = rank
    if call.is_message:  # of a message it is the other one's
        place = call.members[1] if rank == call.members[0] else call.members[0]
    return {
        "Rank": ranks.index(place),
        "Global rank start": ranks[0] if is_even else -1,
        "Global rank stride": strides.pop() if is_even else -1,
    }
