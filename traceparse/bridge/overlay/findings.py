"""The findings of the report, at the place where they apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from traceparse.bridge.overlay.job import Device, Job, known
from traceparse.bridge.overlay.lines import instant
from traceparse.bridge.overlay.plan import COLLECTIVES, FINDINGS
from traceparse.bridge.overlay.steps import Window
from traceparse.intervals import Int64s
from traceparse.run.across import Across
from traceparse.run.stragglers import Straggler
from traceparse.run.waits import Waits, waits_of

__all__ = ["draw_findings"]


def draw_findings(job: Job) -> None:
    """Draw all findings where the file begins, and each straggler where it is waited for."""
    told = job.assembled.report.findings or ()
    if told:
        pid = job.names.process("findings", "of traceparse")
        track = job.names.thread(pid, "of the whole run")
        events = [instant(one["title"], track, _words(one)) for one in told]
        job.plan.put(FINDINGS, events, None, Window(0, 0))
    together = job.assembled.together
    found = job.assembled.measured.stragglers
    if together is None or not found:
        return
    times = [
        [step.times for step in part.steps if step.times is not None]
        for part in job.assembled.parts
    ]
    waits = waits_of(together, times)
    for straggler in found:
        for device in job.devices:
            if device.place in straggler.devices:
                _mark(job, together, waits, straggler, device)


def _words(finding: Mapping[str, Any]) -> Mapping[str, Any]:
    names = ("code", "severity", "evidence", "advice", "lost_ratio", "lost_usd")
    return known(**{name: finding.get(name) for name in names})


def _mark(
    job: Job, together: Across, waits: Waits, straggler: Straggler, device: Device
) -> None:
    """Mark when a device came to the instances in which others waited for it."""
    instances = together.instances
    meant = _instances_of(waits, straggler, device)
    waited = np.zeros(meant.size, np.int64)
    np.add.at(waited, instances.part_instance, waits.whole_ns)
    rows = np.flatnonzero(
        (instances.part_device == device.place)
        & meant[instances.part_instance]
        & (waited[instances.part_instance] > 0)
    )
    rows = rows[np.argsort(instances.part_start_ns[rows], kind="stable")]
    own = instances.part_start_ns[rows]
    events = [
        instant(
            straggler.finding["title"],
            device.findings,
            {"code": straggler.finding["code"], "exposed_wait_of_others_ns": ns},
        )
        for ns in waited[instances.part_instance[rows]].tolist()
    ]
    places = job.steps.of(device.marked, own)
    job.put(COLLECTIVES, events, job.aligned(device.place, own), places)


def _instances_of(
    waits: Waits, straggler: Straggler, device: Device
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which instances a straggler is told of: late in them, or all slow by its link."""
    if straggler.link is None:
        return np.asarray(waits.culprit() == device.place, np.bool_)
    found = np.zeros(waits.num, np.bool_)
    numbers: list[Int64s] = [group.instances for group in straggler.link.groups]
    found[np.concatenate(numbers)] = True
    return found
