"""A slow reference for work: which operator owns what, by search, one event at a time.

It shares no code with traceparse and was written from the contract and from section 2.5 and 3
of the facts. Of formulas it knows one, that of ``aten::mm``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ENGINE = "autograd::engine::evaluate_function: "


@dataclass(eq=False)
class Op:
    """An operator, and what is known of it once all events were seen."""

    event: Mapping[str, Any]
    parent: Op | None = None
    children: list[Op] = field(default_factory=list)
    events: list[Mapping[str, Any]] = field(default_factory=list)  # launched directly below it

    @property
    def args(self) -> Mapping[str, Any]:
        return dict(self.event["args"])

    @property
    def start(self) -> int:
        return int(self.event["ts"])

    @property
    def end(self) -> int:
        return self.start + int(self.event["dur"])

    @property
    def name(self) -> str:
        return str(self.event["name"])

    @property
    def above(self) -> list[Op]:
        """Everything around it, the innermost first."""
        return [] if self.parent is None else [self.parent, *self.parent.above]

    @property
    def is_countable(self) -> bool:
        return self.name == "aten::mm" and "Input Dims" in self.args

    @property
    def is_vague(self) -> bool:
        return self.name == "aten::mm" and not self.is_countable

    @property
    def is_forward(self) -> bool:
        return "Sequence number" in self.args and self.args.get("Fwd thread id") == 0

    @property
    def engine(self) -> Op | None:
        return next((op for op in self.above if op.name.startswith(ENGINE)), None)

    @property
    def is_recompute(self) -> bool:
        engine = self.engine
        if engine is None:
            return False
        if "CheckpointFunctionBackward" in engine.name:
            return True
        inside = [self, *self.above]
        return any(op.is_forward for op in inside[: inside.index(engine)])

    @property
    def flop(self) -> int:
        (rows, inner), (_, columns) = self.args["Input Dims"]
        return int(2 * rows * inner * columns)


def tree(events: Sequence[Mapping[str, Any]]) -> list[Op]:
    """Put the operators of every thread into one another."""
    spans = [event for event in events if event["cat"] == "cpu_op"]
    spans.sort(key=lambda event: (event["ts"], -event["dur"]))  # stable: in order of the file
    ops = [Op(event) for event in spans]
    for at, op in enumerate(ops):
        for other in ops[:at]:
            alike = (other.event["pid"], other.event["tid"]) == (
                op.event["pid"],
                op.event["tid"],
            )
            if alike and other.end >= op.end and other.end > op.start:
                op.parent = other  # the last one that does
        if op.parent:
            op.parent.children.append(op)
    return ops


def launch_of(kernel: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> Any:
    """Return the earliest call of a kernel's correlation; of none, of its external id."""
    for key in ("correlation", "External id"):
        wanted = kernel["args"].get(key)
        calls = [
            event
            for event in events
            if event["cat"] == "cuda_runtime"
            and event["args"].get(key) == wanted
            and (key == "correlation" or not event["args"].get("correlation"))
        ]
        if wanted:
            is_graph = any("GraphLaunch" in call["name"] for call in calls)
            earliest = min(calls, key=lambda call: call["ts"], default=None)
            return None if is_graph else earliest
    return None


def attribute(events: Sequence[Mapping[str, Any]]) -> list[Op]:
    """Return the operators, each with the device events that it launched itself."""
    ops = tree(events)
    for kernel in (event for event in events if event["cat"] in ("kernel", "gpu_memcpy")):
        call = launch_of(kernel, events)
        if call is not None:
            around = [
                op
                for op in ops
                if (op.event["pid"], op.event["tid"]) == (call["pid"], call["tid"])
                and op.start <= call["ts"] < op.end
            ]
            if around:
                around[-1].events.append(kernel)
    return ops


def below(op: Op) -> list[Op]:
    """Return everything inside an operator."""
    return [inner for child in op.children for inner in (child, *below(child))]


def owned(op: Op) -> list[Mapping[str, Any]]:
    """Return the device events of a countable operator: none of another one inside it."""
    found = list(op.events)
    for child in op.children:
        if not child.is_countable:
            found += owned(child)
    return found


def counted(ops: Sequence[Op]) -> list[Op]:
    """Return the operators whose work counts, of a trace with devices."""
    working = {
        op
        for op in ops
        if op.is_countable and any(event["cat"] == "kernel" for event in owned(op))
    }
    return [op for op in ops if op in working and not working.intersection(below(op))]


def summary(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Say what was worked in all, and what belongs to no operator."""
    ops = attribute(events)
    found = counted(ops)
    forward = {str(op.args["Input Dims"]) for op in found if op.engine is None}
    again = [op for op in found if op.is_recompute and str(op.args["Input Dims"]) in forward]
    kernels = [event for event in events if event["cat"] == "kernel"]
    attributed = [event for op in ops for event in op.events if event["cat"] == "kernel"]
    rows: Counter[tuple[str, bool]] = Counter()
    times: Counter[tuple[str, bool]] = Counter()
    for op in found:
        key = (str(op.args["Input Dims"]), op in again)
        rows[key] += 1
        times[key] += sum(event["dur"] for event in owned(op) if event["cat"] == "kernel")
    return {
        "flop": sum(op.flop for op in found),
        "recompute_flop": sum(op.flop for op in again),
        "rows": {key: (num, times[key]) for key, num in rows.items()},
        "unattributed": len(kernels) - len(attributed),
        "counted_ns": covered(
            event for op in found for event in owned(op) if event["cat"] == "kernel"
        ),
    }


def covered(events: Any) -> int:
    """Count the instants that some event covers."""
    return len(
        {at for event in events for at in range(event["ts"], event["ts"] + event["dur"])}
    )
