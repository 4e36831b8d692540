"""What a device's time was spent on: its steps, and slices that fill its window exactly.

In less detail, short slices are put together; how long each part of the time was stays known,
to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from traceparse.bridge.overlay.job import MERGED, Device, Job, groups, known
from traceparse.bridge.overlay.lines import OWN, span
from traceparse.bridge.overlay.partition import PARTS, Sets, Slices, partition
from traceparse.bridge.overlay.plan import DETAILS_NS, tracks_layer

__all__ = ["draw_partition", "draw_steps"]


def draw_steps(job: Job, device: Device) -> None:
    """Draw when each step was, with what the report says of it."""
    told = [step for step in device.report.steps if step.times]
    for step in sorted(told, key=lambda one: one.times.start_ns if one.times else 0):
        assert step.times is not None
        own = np.array([step.times.start_ns, step.times.end_ns], np.int64)
        starts = job.aligned(device.place, own)
        args = known(
            step=step.step,
            span_ns=step.times.span_ns,
            open_ended=step.open_ended or None,
            executed_flop=step.executed_flop,
            achieved_flop_per_s=step.achieved_flop_per_s,
            hfu=step.hfu,
            mfu=step.mfu,
        )
        name = step.name or "whole window"
        event = span(name, OWN, device.steps, int(starts[1] - starts[0]), args)
        places = job.steps.of(device.marked, own[:1])
        for detail in range(len(DETAILS_NS)):
            job.put(tracks_layer(detail), [event], starts[:1], places)


def draw_partition(job: Job, device: Device, sets: Sets) -> None:
    """Draw what each instant of the device's window was spent on."""
    together = job.assembled.together
    exposure = together.exposures[device.place] if together else None
    window = device.part.device.window
    cuts = np.array([(one.start_ns, one.end_ns) for one in device.marked], np.int64).ravel()
    slices = partition(sets, exposure, window, cuts)
    places = job.steps.of(device.marked, slices.starts)
    for detail, limit in enumerate(DETAILS_NS):
        if not job.plan.wants_layer(tracks_layer(detail)):
            continue
        firsts = groups(slices.starts, slices.ends, places, limit)
        starts = job.aligned(device.place, slices.starts[firsts])
        lasts = np.append(firsts[1:], slices.starts.size)
        ends = job.aligned(device.place, slices.ends[lasts - 1])
        events = [
            span(*_part_of(slices, first, last), device.partition, ns, args)
            for first, last, ns in zip(
                firsts.tolist(), lasts.tolist(), (ends - starts).tolist(), strict=True
            )
            for args in (_part_args(slices, first, last),)
        ]
        job.put(tracks_layer(detail), events, starts, places[firsts])


def _part_of(slices: Slices, first: int, last: int) -> tuple[str, str]:
    if last - first > 1:
        return f"{last - first} parts", MERGED
    return PARTS[slices.parts[first]], OWN


def _part_args(slices: Slices, first: int, last: int) -> Mapping[str, Any]:
    """Say how long each part was on the device's own clock; these add up to the report's."""
    if last - first == 1:
        part = PARTS[slices.parts[first]]
        return {f"{part} ns": int(slices.ends[first] - slices.starts[first])}
    lasts = slices.ends[first:last] - slices.starts[first:last]
    sums = np.zeros(len(PARTS), np.int64)
    np.add.at(sums, slices.parts[first:last], lasts)
    return {f"{PARTS[part]} ns": int(sums[part]) for part in np.flatnonzero(sums).tolist()}
