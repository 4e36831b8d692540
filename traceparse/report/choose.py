"""Which rows a page has room for, when a run has more ranks and steps than anyone reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from traceparse.report.words import PARTS, Part
from traceparse.run import DeviceReport, StepReport

__all__ = [
    "Picked",
    "StepRow",
    "choose_devices",
    "largest_span",
    "pick_devices",
    "places_by",
    "quantile_indices",
    "steps_in_order",
]

# what pick_devices picks by
_QUANTILES = ("least", "first quartile of", "median", "third quartile of", "most")
_FENCE = 1.5  # interquartile ranges beyond the quartiles: Tukey's
_LEAST_OUTLIER = 0.01  # of its window; less is not worth a row
_SAMPLED = {"span": "span"} | {p.key: p.name for p in PARTS if p.key != "exposed_copy"}


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
    rest = [index for index in range(len(devices)) if index not in taken]
    return sorted(rest, key=lambda index: _share(devices[index], part), reverse=True)[:count]


class Picked(NamedTuple):
    """A device that is shown, its place among all, and why it is shown for many."""

    place: int
    device: DeviceReport
    why: str


def quantile_indices(count: int) -> list[int]:
    """Return the places of the least, the quartiles and the most among so many in order."""
    return [round(quarter * (count - 1) / 4) for quarter in range(5)]


def pick_devices(
    devices: Sequence[DeviceReport], limit: int, named: Collection[int] = ()
) -> list[Picked]:
    """Pick the devices to show: all, or those that stand for the others and those that do not.

    Where not all fit: the named ranks, then least, quartiles and most of the window, and of its
    compute, exposed comm and idle, then outliers, the farthest first; in their order.
    """
    if len(devices) <= limit:
        return [Picked(index, device, "") for index, device in enumerate(devices)]
    reasons: dict[int, list[str]] = {}
    for place, why in (*_named(devices, named), *_quantiles(devices)):
        reasons.setdefault(place, []).append(why)
    for _, place, why in sorted(_outliers(devices), reverse=True):
        if len(reasons) < limit:
            reasons.setdefault(place, []).append(why)
    kept = sorted(list(reasons)[:limit])
    return [Picked(place, devices[place], ", ".join(reasons[place][:2])) for place in kept]


def _named(
    devices: Sequence[DeviceReport], named: Collection[int]
) -> Iterator[tuple[int, str]]:
    for place, device in enumerate(devices):
        if device.rank in named:
            yield place, "named by a finding"


def _quantiles(devices: Sequence[DeviceReport]) -> Iterator[tuple[int, str]]:
    for key, name in _SAMPLED.items():
        ordered = places_by(devices, key)
        for word, place in zip(_QUANTILES, quantile_indices(len(ordered)), strict=True):
            yield ordered[place], f"{word} {name}"


def _outliers(devices: Sequence[DeviceReport]) -> Iterator[tuple[float, int, str]]:
    """Yield how many interquartile ranges beyond its quartile an outlier is, and whose."""
    for key, name in _SAMPLED.items():
        ordered = places_by(devices, key)
        times = [_window_ns(devices[place], key) for place in ordered]
        _, low, _, high, _ = (times[place] for place in quantile_indices(len(times)))
        for place, ns in zip(ordered, times, strict=True):
            beyond = max(low - ns, ns - high)
            matters = beyond > _LEAST_OUTLIER * devices[place].window.span_ns
            if matters and beyond > _FENCE * (high - low):
                yield beyond / max(high - low, 1), place, f"outlier: {name}"


def places_by(devices: Sequence[DeviceReport], key: str) -> list[int]:
    """Return the places of devices, those with the least of a part of the window first."""
    return sorted(
        range(len(devices)), key=lambda place: (_window_ns(devices[place], key), place)
    )


def _window_ns(device: DeviceReport, key: str) -> int:
    value: int = getattr(device.window, f"{key}_ns")
    return value


def _share(device: DeviceReport, part: Part) -> float:
    window = device.window
    return part.of(window) / window.span_ns if window.span_ns else 0.0
