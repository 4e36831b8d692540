"""A view of a run, from its report and from what the digests say of steps and devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction

from traceparse.rank import KernelCounts, RankDigest
from traceparse.run.basis import Basis
from traceparse.run.findings.view import View
from traceparse.run.peaks import CPU
from traceparse.run.report import DeviceReport, Report
from traceparse.work import accelerators, read_device

__all__ = ["view_of"]


def view_of(
    report: Report,
    basis: Basis,
    digests: Sequence[RankDigest],
    *,
    counted_ns: int | None,
    most_reached: float | None,
) -> View:
    """Return what rules see of a run; its findings so far are those on stragglers and speed."""
    chosen = list(zip(report.devices, basis.places, strict=True))
    steps = {
        device.steps[place].step if basis.name != "windows" else place
        for device, places in chosen
        for place in places
    }
    used = [device for digest in digests for device in digest.devices]
    in_files = max(
        (sum(step.times is not None for step in device.steps) for device in used), default=0
    )
    num_syncs = sum(device.syncs.num_rows for device in used)
    utilization = report.utilization or {}
    return View(
        times=report.summary.times,
        basis=basis.name,
        num_steps=len(steps),
        num_device_steps=report.summary.num_device_steps,
        num_steps_in_files=in_files,
        num_syncs_per_step=num_syncs / (len(used) * in_files) if in_files else None,
        communication_ns=report.summary.communication_ns,
        counted_ns=counted_ns,
        executed_flop=utilization.get("executed_flop"),
        waterfall=utilization.get("waterfall"),
        what_if=report.what_if,
        collectives=report.collectives or (),
        roofline=report.roofline,
        top_kernels=report.top_kernels,
        host=report.host,
        copies=report.copies,
        kernels=_kernels(report.devices),
        compute_ns_by_rank=_compute_ns(chosen),
        flop_by_rank=_flop(report.devices),
        stragglers=[one for one in report.findings or () if one["code"] == "straggler"],
        accelerator=report.run.accelerator,
        num_sms=_num_sms(report, digests),
        most_reached=most_reached,
        is_host=all(device.device == CPU for device in report.devices),
        settings=frozenset(name for digest in digests for name in digest.header.settings),
    )


def _kernels(devices: Iterable[DeviceReport]) -> dict[str, int]:
    return {
        field.name: sum(getattr(device.kernels, field.name) for device in devices)
        for field in fields(KernelCounts)
    }


def _compute_ns(
    chosen: Iterable[tuple[DeviceReport, Sequence[int]]],
) -> Mapping[int, Fraction]:
    sums: dict[int, list[int]] = {}
    for device, places in chosen:
        if device.rank is None:
            continue
        every = [times for place in places if (times := device.steps[place].times)]
        entry = sums.setdefault(device.rank, [0, 0])
        entry[0] += sum(times.compute_ns for times in every)
        entry[1] += len(every)
    return {rank: Fraction(ns, num) for rank, (ns, num) in sums.items() if num}


def _flop(devices: Iterable[DeviceReport]) -> dict[int, int]:
    found: dict[int, int] = {}
    for device in devices:
        flop = (device.utilization or {}).get("executed_flop")
        if device.rank is not None and flop is not None:
            found[device.rank] = found.get(device.rank, 0) + flop
    return found


def _num_sms(report: Report, digests: Iterable[RankDigest]) -> int | None:
    """Return what all devices say of themselves; else what the table says of them."""
    told = {
        read_device(properties).num_sms
        for digest in digests
        for properties in digest.header.devices
    }
    if len(told) == 1 and (own := told.pop()) is not None:
        return own
    named = report.run.accelerator["id"] if report.run.accelerator else None
    return next((entry.sm_count for entry in accelerators() if entry.id == named), None)
