"""The HTML page as plain data: every text on it, ready to be placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traceparse.ingest import FileHealth
from traceparse.report.bars import (
    Amount,
    Bar,
    Picture,
    Scale,
    bar_of,
    device_picture,
    step_picture,
)
from traceparse.report.choose import choose_devices, largest_span, steps_in_order
from traceparse.report.notes import NoteLine, health_text, not_computed, note_lines
from traceparse.report.page_across import Across, across_of
from traceparse.report.page_peak import Finding, Peak, findings_of, peak_of
from traceparse.report.recorded import overhead_text, recorded_text
from traceparse.report.what_if import Change, changes_of
from traceparse.report.words import BASIS, CPU_DEVICE, PARTS
from traceparse.run import DeviceReport, Report
from traceparse.units import (
    UNKNOWN,
    format_bytes,
    format_count,
    format_ms,
    format_number_of,
    format_ratio,
    ms_decimals,
    rank_ranges,
)

__all__ = ["FileRow", "Page", "page_of"]

_MAX_DEVICES = 64
_MAX_STEPS = 256
_MAX_FILES = 64


@dataclass(frozen=True, slots=True)
class FileRow:
    """One file's health, in words."""

    path: str
    rank: str
    layout: str
    numbers: Sequence[str]
    skipped: str
    health: str


@dataclass(frozen=True, slots=True)
class Page:
    """Everything on the page, from top to bottom."""

    verdict: str
    basis: str
    total: Bar
    tiles: Sequence[Amount]
    facts: Sequence[tuple[str, str]]
    overhead: str | None
    recorded: str | None
    findings: Sequence[Finding]
    peak: Peak | None
    across: Across | None
    changes: Sequence[Change]
    devices: Picture
    steps: Picture
    several_devices: bool
    has_open_ended: bool
    notes: Sequence[NoteLine]
    not_computed: Sequence[str]
    files: Sequence[FileRow]
    files_left: int
    cpu_device: str
    generator: str


def page_of(report: Report) -> Page:
    """Lay out a report: choose the rows there is room for, turn numbers into text and bars."""
    decimals = ms_decimals(largest_span(report.devices))
    devices = choose_devices(report.devices, _MAX_DEVICES)
    steps = _step_picture(report.devices, devices, decimals)
    files = sorted(report.files, key=lambda file: health_text(file) is None)[:_MAX_FILES]
    times = report.summary.times
    return Page(
        verdict=report.summary.verdict,
        basis=_basis(report),
        total=bar_of(times, Scale(times.span_ns, ms_decimals(times.span_ns))),
        tiles=_tiles(report),
        facts=_facts(report),
        overhead=overhead_text(report),
        recorded=recorded_text(report),
        findings=findings_of(report),
        peak=peak_of(report),
        across=across_of(report),
        changes=changes_of(report),
        devices=_device_picture(report.devices, devices, decimals),
        steps=steps,
        several_devices=len({device.rank for device in devices}) < len(devices),
        has_open_ended=any(row.open_ended for row in steps.rows),
        notes=note_lines(report.notes),
        not_computed=not_computed(report.notes),
        files=[_file_row(file) for file in files],
        files_left=len(report.files) - len(files),
        cpu_device=CPU_DEVICE if any(d.device == "cpu" for d in report.devices) else "",
        generator=" ".join(report.generator.values()),
    )


def _device_picture(
    devices: Sequence[DeviceReport], shown: Sequence[DeviceReport], decimals: int
) -> Picture:
    longest = max((device.window.span_ns for device in shown), default=0)
    return device_picture(shown, Scale(longest, decimals), left=len(devices) - len(shown))


def _step_picture(
    devices: Sequence[DeviceReport], shown: Sequence[DeviceReport], decimals: int
) -> Picture:
    if not _step_numbers(devices):
        return Picture((), (), 0)
    steps = steps_in_order(shown)[:_MAX_STEPS]
    longest = max((step.times.span_ns for _, step in steps if step.times), default=0)
    left = sum(len(device.steps) for device in devices) - len(steps)
    return step_picture(steps, Scale(longest, decimals), left=left)


def _step_numbers(devices: Sequence[DeviceReport]) -> list[int]:
    return sorted({s.step for device in devices for s in device.steps if s.step is not None})


def _basis(report: Report) -> str:
    summary = report.summary
    what = BASIS.get(summary.basis, summary.basis)
    return f"{format_number_of(summary.num_device_steps, 'device-step')}: {what}"


def _tiles(report: Report) -> list[Amount]:
    """Lay out the run's shares, as the summary has them."""
    summary = report.summary
    decimals = ms_decimals(summary.times.span_ns)
    ratios = (
        summary.compute_ratio,
        summary.exposed_comm_ratio,
        summary.exposed_copy_ratio,
        summary.idle_ratio,
    )
    return [
        Amount(
            part.key,
            part.name,
            format_ms(part.of(summary.times), decimals),
            format_ratio(ratio),
        )
        for part, ratio in zip(PARTS, ratios, strict=True)
    ]


def _facts(report: Report) -> list[tuple[str, str]]:
    run = report.run
    numbers = _step_numbers(report.devices)
    missing = "unknown" if run.missing_ranks is None else rank_ranges(run.missing_ranks)
    return [
        ("world size", "unknown" if run.world_size is None else format_count(run.world_size)),
        ("ranks with a trace", rank_ranges(run.ranks)),
        ("missing ranks", missing),
        ("backend", run.backend or "unknown"),
        ("devices", format_count(len(report.devices))),
        ("steps", rank_ranges(numbers) if numbers else "no step markers"),
        ("files", format_count(len(report.files))),
    ]


def _file_row(file: FileHealth) -> FileRow:
    rank = UNKNOWN if file.rank is None else str(file.rank)
    source = f" ({file.rank_source})" if file.rank_source else ""
    return FileRow(
        path=file.path,
        rank=f"{rank}{source}",
        layout=file.layout,
        numbers=[
            format_bytes(file.bytes),
            format_count(file.events),
            format_count(file.gpu_events),
            format_count(file.launches_without_gpu_event),
            format_count(file.gpu_events_without_launch),
        ],
        skipped=_reasons(file.skipped),
        health=health_text(file) or "whole",
    )


def _reasons(counts: Mapping[str, int]) -> str:
    said = ", ".join(f"{format_count(count)} {name}" for name, count in counts.items() if count)
    return said or "none"
