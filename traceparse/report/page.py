"""The HTML page as plain data: every text on it, ready to be placed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traceparse.report.bars import Bar, Scale, bar_of
from traceparse.report.cells import Cell, Figure, Table
from traceparse.report.choose import Picked, largest_span, pick_devices
from traceparse.report.named import named_ranks
from traceparse.report.notes import NoteLine, note_lines
from traceparse.report.page_across import Across, across_of, collective_table, what_if_table
from traceparse.report.page_files import file_table, folder_of
from traceparse.report.page_hta import Hta, hta_of
from traceparse.report.page_kernels import Host, copy_table, host_of, kernel_table
from traceparse.report.page_peak import Peak, operator_table, peak_of
from traceparse.report.page_ranks import RankSection, rank_sections, spread_table, window_table
from traceparse.report.page_steps import StepMap, step_map, step_table
from traceparse.report.page_top import (
    Finding,
    figures_of,
    findings_of,
    part_figures,
)
from traceparse.report.recorded import overhead_text, recorded_text
from traceparse.report.words import BASIS, CPU_DEVICE
from traceparse.run import Report
from traceparse.units import (
    format_count,
    format_number_of,
    ms_decimals,
    rank_ranges,
)

__all__ = ["Page", "page_of"]

_MAX_DEVICES = 64  # all are shown up to here
_MAX_PICKED = 32  # so many stand for more


@dataclass(frozen=True, slots=True)
class Page:
    """Everything on the page, from top to bottom."""

    verdict: str
    basis: str
    total: Bar
    parts: Sequence[tuple[str, str, Cell, Cell]]
    findings: Sequence[Finding]
    figures: Sequence[Figure]
    facts: Sequence[tuple[str, str]]
    overhead: str | None
    recorded: str | None
    peak: Peak | None
    steps: StepMap
    step_table: Table
    across: Across | None
    what_if: Table | None
    collectives: Table | None
    operators: Table | None
    kernels: Table | None
    host: Host | None
    copies: Table | None
    hta: Hta | None
    spread: Table | None
    windows: Table
    ranks: Sequence[RankSection]
    notes: Sequence[NoteLine]
    files: Table
    folder: str
    cpu_device: str
    generator: str

    @property
    def anchors(self) -> frozenset[str]:
        """The ranks that have a section of their own."""
        return frozenset(section.anchor for section in self.ranks)

    def sections(self) -> Iterator[tuple[str, str]]:
        """Yield anchor and title of the sections that are there, for the contents."""
        found: tuple[tuple[str, str, object], ...] = (
            ("findings", "Findings", True),
            ("figures", "Key figures", True),
            ("peak", "Waterfall", self.peak),
            ("steps", "Ranks and steps", True),
            ("across", "Scaling loss", self.across),
            ("what-if", "What if", self.what_if),
            ("collectives", "Collectives", self.collectives),
            ("operators", "Operators", self.operators),
            ("kernels", "Kernels", self.kernels),
            ("host", "Host and copies", self.host or self.copies),
            ("hta", "HTA", self.hta),
            ("ranks", "Each rank", True),
            ("notes", "Notes and files", True),
            ("definitions", "Definitions", True),
        )
        yield from ((anchor, title) for anchor, title, is_there in found if is_there)


def page_of(report: Report) -> Page:
    """Lay out a report: choose the rows there is room for, turn numbers into text and bars."""
    bands = report.bands
    picked = _picked(report)
    times = report.summary.times
    scale = Scale(times.span_ns, ms_decimals(largest_span(report.devices)))
    return Page(
        verdict=report.summary.verdict,
        basis=_basis(report),
        total=bar_of(
            times,
            Scale(times.span_ns, ms_decimals(times.span_ns)),
            report.summary.communication_ns,
        ),
        parts=part_figures(report),
        findings=findings_of(report),
        figures=figures_of(report, bands),
        facts=_facts(report),
        overhead=overhead_text(report),
        recorded=recorded_text(report),
        peak=peak_of(report, picked),
        steps=step_map(report, picked),
        step_table=step_table(report, picked),
        across=across_of(report, picked, bands),
        what_if=what_if_table(report),
        collectives=collective_table(report),
        operators=operator_table(report),
        kernels=kernel_table(report.top_kernels),
        host=host_of(report.host),
        copies=copy_table(report.copies),
        hta=hta_of(report),
        spread=spread_table(report, scale),
        windows=window_table(report, picked, scale),
        ranks=rank_sections(report, picked),
        notes=note_lines(report.notes),
        files=file_table(report.files),
        folder=folder_of(report.files),
        cpu_device=CPU_DEVICE if any(d.device == "cpu" for d in report.devices) else "",
        generator=" ".join(report.generator.values()),
    )


def _picked(report: Report) -> list[Picked]:
    if len(report.devices) <= _MAX_DEVICES:
        return pick_devices(report.devices, _MAX_DEVICES)
    return pick_devices(report.devices, _MAX_PICKED, named_ranks(report))


def _basis(report: Report) -> str:
    summary = report.summary
    what = BASIS.get(summary.basis, summary.basis)
    return f"{format_number_of(summary.num_device_steps, 'device-step')}: {what}"


def _facts(report: Report) -> list[tuple[str, str]]:
    run = report.run
    numbers = sorted(
        {s.step for device in report.devices for s in device.steps if s.step is not None}
    )
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
