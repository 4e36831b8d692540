"""Which rows a page has room for, when a run has more ranks and steps than anyone reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from traceparse.report.words import PARTS, Part
from traceparse.run import DeviceReport, StepReport

__all__ = ["StepRow", "choose_devices", "largest_span", "steps_in_order"]


class StepRow(NamedTuple):
    """One step and the device that it ran on."""

    device: DeviceReport
    step: StepReport


def choose_devices(devices: Sequence[DeviceReport], limit: int) -> list[DeviceReport]:
    """Choose the devices to show: all, or the first and the worst of them, in their order.

    Where not all fit, half of the limit goes to the first ones, and a quarter each to those
    with the largest shares of exposed comm and of idle.
    """
    if len(devices) <= limit:
        return list(devices)
    chosen = set(range(limit // 2))
    for part in PARTS:
        if part.key in {"exposed_comm", "idle"}:
            chosen.update(_worst(devices, part, chosen, limit // 4))
    return [devices[index] for index in sorted(chosen)]


def steps_in_order(devices: Sequence[DeviceReport]) -> list[StepRow]:
    """List all steps of all devices, so that the ranks of a step stand together."""
    rows = [StepRow(device, step) for device in devices for step in device.steps]
    return sorted(rows, key=lambda row: (row.step.step is None, row.step.step or 0))


def largest_span(devices: Sequence[DeviceReport]) -> int:
    """Return the longest span there is to write, in nanoseconds."""
    windows = [device.window for device in devices]
    steps = [step.times for device in devices for step in device.steps if step.times]
    return max((times.span_ns for times in windows + steps), default=0)


def _worst(
    devices: Sequence[DeviceReport], part: Part, taken: set[int], count: int
) -> list[int]:
    def share(index: int) -> float:
        window = devices[index].window
        return part.of(window) / window.span_ns if window.span_ns else 0.0

    rest = [index for index in range(len(devices)) if index not in taken]
    return sorted(rest, key=share, reverse=True)[:count]
