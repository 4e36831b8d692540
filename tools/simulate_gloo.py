"""Jobs without accelerators: the host computes, and a thread of gloo communicates.

The simulator's engine runs gloo's thread as a stream. Afterwards :func:`run_job` tells such
jobs as a profiler does: operators are the work, and gloo's calls are spans of the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from tools.simulate_engine import run
from tools.simulate_events import Conditions, DeviceEvent, HostEvent, Ran
from tools.simulate_job import Job
from tools.simulate_parts import Writer, product_args
from tools.simulate_program import UNSEEN, Group, Launch, Span, Sync, Work
from tools.simulate_training import Shape, buckets, warm_up

__all__ = ["gloo_parallel", "run_job"]

_GLOO = 1
_CPU = 0
_FLOP_PER_NS = 60
_FLOAT = "float"


def gloo_parallel(host: Writer, shape: Shape, world: Group) -> None:
    """Reduce gradients in buckets while backward goes on, all of it on CPUs."""
    warm_up(host)
    full = buckets(shape)
    for number in range(shape.steps):
        name = f"ProfilerStep#{shape.first + number}"
        with host.span(name, "user_annotation", step=shape.first + number):
            saved = [host.next_sequence() for _ in range(shape.layers)]
            for sequence in saved:
                _linear(host, shape, sequence)
            for layer in reversed(range(shape.layers)):
                with host.backward_of("Addmm", saved[layer]):
                    square = (shape.hidden, shape.hidden)
                    _product(host, "aten::mm", shape.activations, square)
                    _product(host, "aten::mm", shape.activations[::-1], shape.activations)
                if layer in full:
                    _reduce(host, world, full[layer])
            host.add(Sync(_GLOO, host.costs.host(5_000), UNSEEN))
            with (
                host.span("Optimizer.step#SGD.step", "user_annotation"),
                host.span("aten::_foreach_add_", args={"Input Dims": [[shape.weights]]}),
            ):
                host.pause(shape.weights)
        host.pause(20_000)


def _linear(host: Writer, shape: Shape, sequence: int) -> None:
    args = {"Sequence number": sequence, "Fwd thread id": 0}
    dims = (shape.hidden,), shape.activations, (shape.hidden, shape.hidden)
    with host.span("aten::linear", args=args):
        _product(host, "aten::addmm", *dims, sequence=sequence)


def _product(
    host: Writer, name: str, *dims: Sequence[int], sequence: int | None = None
) -> None:
    flop, args = product_args(*dims, dtype=_FLOAT)
    if sequence is not None:
        args = {"Sequence number": sequence, "Fwd thread id": 0} | args
    with host.span(name, args=args, flop=flop):
        host.pause(5_000 + flop // _FLOP_PER_NS)


def _reduce(host: Writer, world: Group, nelems: int) -> None:
    call, _seq = host.ledger.collective(host.rank, world, "allreduce", nelems)
    args = {
        "Concrete Inputs": ["", "", "", "", "True", "-1"],
        "Input type": ["TensorList", "", "", "", "Scalar", "Scalar"],
        "Input Dims": [[[nelems]], [], [], [], [], []],
    }
    with host.span("c10d::allreduce_", args=args):
        work = Work("comm", "gloo:all_reduce", _GLOO, call=call)
        host.add(Launch(UNSEEN, host.costs.host(3_000), (work,)))


def run_job(job: Job, conditions: Conditions | None = None) -> list[Ran]:
    """Run a job, under other conditions than its own if some are given."""
    ran = run(job.programs, job.conditions if conditions is None else conditions)
    return [_on_cpu(what) for what in ran] if job.on_cpu else ran


def _on_cpu(what: Ran) -> Ran:
    """Return operators as work that launches itself, and calls as what the host shows."""
    numbers = count(1 + max(event.number for event in what.host if event.span is not None))
    device, calls = [], []
    for event in what.device:
        event.launch = _call(event, next(numbers))
        calls.append(event.launch)
        device.append(event)
    seen = [event for event in what.host if event.name != UNSEEN]
    for op in seen:
        if op.category == "cpu_op" and not op.name.startswith("c10d::"):
            work = Work("compute", op.name, _CPU, op.end_ns - op.start_ns)
            computed = DeviceEvent(
                device[0].rank,
                work,
                op,
                _step_of(op),
                in_graph=False,
                after=[],
                start_ns=op.start_ns,
                end_ns=op.end_ns,
            )
            device.append(computed)
    return Ran(
        sorted([*seen, *calls], key=lambda event: event.start_ns),
        sorted(device, key=lambda event: event.start_ns),
    )


def _call(event: DeviceEvent, number: int) -> HostEvent:
    call = event.work.call
    assert call is not None
    args = {
        "Concrete Inputs": [""],
        "Input type": [_FLOAT],
        "Input Strides": [[1]],
        "Input Dims": [[call.in_nelems]],
    }
    span = Span(event.work.name, "user_annotation", "gloo", args)
    return HostEvent(
        span, span.name, span.category, span.thread, event.start_ns, event.end_ns, number
    )


def _step_of(event: HostEvent | None) -> int | None:
    while event is not None:
        if event.span is not None and event.span.step is not None:
            return event.span.step
        event = event.above
    return None
