"""The device-steps of a run as rows of a picture: few as they are, many summarized."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from traceparse.rank import Times
from traceparse.report.safe import visible
from traceparse.report.words import COMMUNICATION, PARTS, term_of
from traceparse.run import DeviceReport, Report, StepReport

__all__ = [
    "LEAST_OUTLIER",
    "PART_NAMES",
    "Device",
    "chosen",
    "devices_of",
    "mean_parts",
    "outliers",
    "parts_of",
    "parts_seen",
]

_MOST_OUTLIERS = 6
_SPREADS = 5.0  # beyond the median, in robust standard deviations, is an outlier
LEAST_OUTLIER = 1.03  # as long as what the median needs, at least
_MAD = 1.4826  # of a normal distribution, its standard deviation
_NAME_LIMIT = 24
_QUANTILES: Final = (
    (0.0, "least"),
    (0.25, "first quarter"),
    (0.5, "median"),
    (0.75, "last quarter"),
)

# in the order of a bar: what the device worked, what it spent on others, nothing
_ORDER: Final = (
    *("compute", "exposed_transfer", "exposed_wait", "pipeline_wait", "exposed_unsplit"),
    *("exposed_comm", "exposed_copy", "idle"),
)
PART_NAMES: Final = {key: term_of(key).name if key != "compute" else key for key in _ORDER}


@dataclass(frozen=True, slots=True)
class Device:
    """One device with its complete steps, or all where none is complete.

    ``own`` is how long its steps take without waiting for other ranks, each as a multiple of
    the median device's in that step; ``mean_own`` is their mean. ``why`` says why it is shown.
    """

    label: str
    rank: int | None
    place: int
    steps: tuple[StepReport, ...]
    own: tuple[float, ...]
    mfu: float | None = None
    why: str = ""

    @property
    def mean_own(self) -> float:
        """The mean of ``own``, by which devices are compared."""
        return sum(self.own) / len(self.own)


def devices_of(report: Report) -> list[Device]:
    """Return the devices that have steps with time in them, with those steps."""
    steps_of = [_steps_with_time(report, device) for device in report.devices]
    usual = _usual([step for steps in steps_of for step in steps])
    places = _places(report.devices)
    several = len({device.rank for device in report.devices}) < len(report.devices)
    return [
        Device(
            _label(device, several=several),
            device.rank,
            place,
            steps,
            tuple(_own_ns(step) / (usual[step.step] or 1.0) for step in steps),
            (device.utilization or {}).get("mfu"),
        )
        for device, place, steps in zip(report.devices, places, steps_of, strict=True)
        if steps
    ]


def _steps_with_time(report: Report, device: DeviceReport) -> tuple[StepReport, ...]:
    is_complete = report.summary.basis != "all_steps"
    return tuple(
        step
        for step in device.steps
        if step.times and step.times.span_ns and not (is_complete and step.open_ended)
    )


def chosen(devices: Sequence[Device], most: int) -> list[Device]:
    """Return the devices, or of many the quantiles by their own time, and the outliers."""
    if len(devices) <= most:
        return list(devices)
    in_order = sorted(devices, key=lambda device: device.mean_own)
    last = len(in_order) - 1
    picked = {round(share * last): why for share, why in _QUANTILES}
    picked[last] = "most"
    slow = {device.place for device in outliers(devices)}
    for number, device in enumerate(in_order):
        if device.place in slow:
            picked[number] = "outlier"
    return [
        replace(one, why=picked[number])
        for number, one in enumerate(in_order)
        if number in picked
    ]


def parts_of(step: StepReport) -> Iterator[tuple[str, int]]:
    """Take a step apart: keys and nanoseconds, which add up to its span."""
    times = step.times
    assert times is not None
    split = step.communication_ns
    for part in PARTS:
        if part.key == "exposed_comm" and split is not None:
            yield from ((key, split[key]) for key in COMMUNICATION)
        else:
            yield part.key, part.of(times)


def mean_parts(device: Device, parts: Sequence[str]) -> dict[str, int]:
    """Return what a mean step of a device was spent on, of these parts."""
    sums = dict.fromkeys(parts, 0)
    for step in device.steps:
        for key, ns in parts_of(step):
            if key in sums:
                sums[key] += ns
    return {key: round(ns / len(device.steps)) for key, ns in sums.items()}


def parts_seen(devices: Sequence[Device]) -> list[str]:
    """Return the keys of the parts that there are, in the order of a bar."""
    sums = dict.fromkeys(_ORDER, 0)
    for device in devices:
        for step in device.steps:
            for key, ns in parts_of(step):
                sums[key] += ns
    return [key for key in _ORDER if sums[key]]


def _own_ns(step: StepReport) -> int:
    """Return how long a step takes without waiting for others; else without exposed comm."""
    times = step.times
    assert times is not None
    return times.span_ns - _waiting_ns(step, times)


def _waiting_ns(step: StepReport, times: Times) -> int:
    split = step.communication_ns
    if split is None:
        return times.exposed_comm_ns
    return split["exposed_wait"] + split["pipeline_wait"]


def _usual(steps: Sequence[StepReport]) -> dict[int | None, float]:
    times: dict[int | None, list[int]] = {}
    for step in steps:
        times.setdefault(step.step, []).append(_own_ns(step))
    return {number: median(each) for number, each in times.items()}


def outliers(devices: Sequence[Device]) -> list[Device]:
    """Return the devices that are much slower than the others, the slowest first."""
    own = [device.mean_own for device in devices]
    middle = median(own)
    spread = _MAD * median(abs(one - middle) for one in own)
    limit = max(middle * LEAST_OUTLIER, middle + _SPREADS * spread)
    slow = [device for device in devices if device.mean_own > limit]
    return sorted(slow, key=lambda device: -device.mean_own)[:_MOST_OUTLIERS]


def _places(devices: Sequence[DeviceReport]) -> list[int]:
    """Return where devices stand on an axis: at their ranks, if these tell them apart."""
    ranks = [device.rank for device in devices]
    known = [rank for rank in ranks if rank is not None]
    if len(set(known)) == len(ranks) and max(known, default=0) < 4 * len(ranks):
        return known
    return list(range(len(ranks)))


def _label(device: DeviceReport, *, several: bool) -> str:
    rank = "rank unknown" if device.rank is None else f"rank {device.rank}"
    return f"{rank} device {visible(str(device.device), _NAME_LIMIT)}" if several else rank
