"""Simulated jobs for tests: made once each, and compared with what a report has of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from tests.contract.seen import TIMES
from tools.simulate import Simulated, simulate

OF_DEVICE_STEP = ("step", "name", "open_ended", "executed_flop", "recompute_flop")


@cache
def made(scenario: str, ranks: int, seed: int) -> Simulated:
    """Simulate a job, once for all tests of a process."""
    return simulate(scenario, ranks=ranks, seed=seed)


def device_differences(truth: Mapping[str, Any], report: Mapping[str, Any]) -> list[str]:
    """Name every figure of ``devices`` that is not the true one, nanosecond for nanosecond."""
    expected = {(entry["rank"], entry["device"]): entry for entry in truth["devices"]}
    found = {(entry["rank"], entry["device"]): entry for entry in report["devices"]}
    if expected.keys() != found.keys():
        return [f"devices: {sorted(found)} instead of {sorted(expected)}"]
    said = []
    for (rank, _), entry in expected.items():
        other = found[rank, entry["device"]]
        said += differences(f"rank {rank} window", entry["window"], other["window"], TIMES)
        if entry["kernels"] is not None:  # of a CPU: kernels that are none
            where = f"rank {rank} kernels"
            said += differences(where, entry["kernels"], other["kernels"], entry["kernels"])
        said += _step_differences(f"rank {rank}", entry["steps"], other["steps"])
    return said


def _step_differences(
    where: str, expected: list[Mapping[str, Any]], found: list[Mapping[str, Any]]
) -> list[str]:
    if len(expected) != len(found):
        return [f"{where}: {len(found)} steps instead of {len(expected)}"]
    return [
        line
        for true, other in zip(expected, found, strict=True)
        for line in differences(
            f"{where} step {true['step']}", true, other, (*TIMES, *OF_DEVICE_STEP)
        )
    ]


def differences(
    where: str,
    expected: Mapping[str, Any],
    found: Mapping[str, Any],
    names: Iterable[str],
    *,
    within: float = 0,
) -> list[str]:
    """Name the fields that differ, or do by more than ``within``; what is absent is null."""
    return [
        f"{where}: {name} is {found.get(name)} instead of {expected.get(name)}"
        for name in names
        if not _agree(expected.get(name), found.get(name), within)
    ]


def _agree(true: object, other: object, within: float) -> bool:
    if isinstance(true, int | float) and isinstance(other, int | float):
        return abs(true - other) <= within
    return true == other
