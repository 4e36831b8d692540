"""Reports made by hand, to be compared: steps of ranks, kernels, collectives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.run.conftest import H100, Maker
from traceparse.run import Report
from traceparse.run.compare import Comparison, compare_of

SPLIT = ("exposed_transfer", "exposed_wait", "pipeline_wait", "exposed_unsplit")


def report_of(
    *ranks: list[dict[str, Any]],
    told: dict[str, Any] = H100,
    flop: int | None = 1_000,
    world_size: int | None = None,
    marked: bool = True,
    **fields: Any,
) -> Report:
    """A report of ranks, each a list of steps: terms of each, in ns.

    ``split`` of a step is what its exposed communication was, one number where nobody knows.
    """
    make = Maker()
    digests = []
    for rank, steps in enumerate(ranks):
        own = [_step(make, number if marked else None, step, flop)
               for number, step in enumerate(steps)]  # fmt: skip
        size = world_size or len(ranks)
        digests.append(make.digest(rank, make.device(*own), world_size=size, told=(told,)))
    made = make.report(*digests)
    devices = tuple(
        replace(
            device,
            steps=tuple(
                replace(
                    step,
                    communication_ns=_communication(told_of),
                    contention_ns=told_of.get("contention", 0),
                )
                for step, told_of in zip(device.steps, steps, strict=True)
            ),
        )
        for device, steps in zip(made.devices, ranks, strict=True)
    )
    changed: Report = replace(made, **({"devices": devices} | fields))
    return changed


def _step(make: Maker, number: int | None, step: dict[str, Any], flop: int | None) -> Any:
    split = step.get("split", 0)
    comm = split if isinstance(split, int) else sum(split)
    times = make.times(
        compute=step.get("compute", 0),
        comm=comm,
        copy=step.get("copy", 0),
        idle=step.get("idle", 0),
    )
    times = replace(times, overlap_ns=step.get("overlap", 0))
    return make.step(number, times, make.work("bf16", flop or 0), told=flop is not None)


def _communication(step: dict[str, Any]) -> dict[str, int] | None:
    split = step.get("split", 0)
    if isinstance(split, int):
        return None
    return dict(zip(SPLIT, split, strict=True))


def steps_of(*spans: int, **terms: Any) -> list[dict[str, Any]]:
    """Steps of these lengths: compute is what the other terms leave."""
    rest = sum(terms.get("split", ())) + terms.get("copy", 0) + terms.get("idle", 0)
    return [{**terms, "compute": span - rest} for span in spans]


def compared(base: Report | list[Report], new: Report | list[Report]) -> Comparison:
    sides = [one if isinstance(one, list) else [one] for one in (base, new)]
    names = [[f"{name}{place}" for place in range(len(own))]
             for name, own in zip(("base", "new"), sides, strict=True)]  # fmt: skip
    return compare_of((names[0], names[1]), (sides[0], sides[1]))


def kernel(op: str | None, shapes: str | None, time_ns: int, **fields: Any) -> dict[str, Any]:
    """A row of ``top_kernels``."""
    known = {"name": f"kernel of {op}", "kind": "compute", "is_counted": True, "count": 1}
    rest = {"ratio": None, "least_bytes": None}
    return {"op": op, "shapes": shapes, "time_ns": time_ns, **known, **rest, **fields}


def collective(name: str, message_bytes: int | None, **fields: Any) -> dict[str, Any]:
    """A row of ``collectives``."""
    known = {
        "process_group": "0",
        "ranks": [0, 1],
        "dtype": "Float",
        "group_size": 2,
        "count": 4,
        "matched_ranks": 2,
        "transfer_ns": 400,
        "wait_ns": 80,
        "exposed_ns": 160,
        "algbw_bytes_per_s": None,
        "busbw_bytes_per_s": None,
        "last_rank_counts": {},
    }
    return {"collective": name, "message_bytes": message_bytes, **known, **fields}
