"""Ranks on the page, as plain data: their spread, a table, and a section for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceparse.report.across import communication_of, last_in
from traceparse.report.bars import Bar, Scale
from traceparse.report.cells import Cell, Column, Table, Words, count, ms, percent, ratio, tera
from traceparse.report.choose import Picked, places_by, quantile_indices
from traceparse.report.named import Flag, stragglers_of
from traceparse.report.notes import NoteLine, note_lines
from traceparse.report.page_files import FileRow, file_row
from traceparse.report.page_kernels import Host, host_of
from traceparse.report.page_peak import shares_bar
from traceparse.report.page_steps import own_steps, rank_cell
from traceparse.report.peak import terms_of
from traceparse.report.words import PARTS, RARE, term_of
from traceparse.run import DeviceReport, Report
from traceparse.units import ms_decimals

__all__ = ["DeviceSection", "RankSection", "rank_sections", "spread_table", "window_table"]

_QUANTILES = ("least", "first quartile", "median", "third quartile", "most")
_STEPS_IN_ALL = 1_024  # rows of steps in all sections together
_LEAST_STEPS = 8
_SPREAD_FROM = 8  # ranks; fewer are all in sight


@dataclass(frozen=True, slots=True)
class DeviceSection:
    """One device of a rank: figures, its steps, its share of the peak, why it idled."""

    title: str
    figures: Sequence[tuple[str, str, Cell]]
    shares: Bar | None
    shares_text: Sequence[tuple[str, str, str]]
    steps: Table
    host: Host | None


@dataclass(frozen=True, slots=True)
class RankSection:
    """All that is known of one rank."""

    anchor: str
    title: str
    flag: Flag | None
    why: str
    devices: Sequence[DeviceSection]
    files: Sequence[FileRow]
    notes: Sequence[NoteLine]


def window_table(report: Report, picked: Sequence[Picked], scale: Scale) -> Table:
    """Write the whole windows of the picked devices."""
    several = len({one.device.rank for one in picked}) < len(picked)
    columns = [Column("rank", "", "text"), Column("span, ms", "window")]
    for part in PARTS:
        columns += [Column(f"{part.name}, ms", part.key), Column("%")]
    columns += [
        Column("comm, ms", "comm"),
        Column("overlap, ms", "overlap"),
        Column("kernels"),
        Column("unlinked", "unlinked"),
    ]
    rows: list[Sequence[Cell | Words]] = []
    for one in picked:
        times, path = one.device.window, f"devices.{one.place}"
        cells: list[Cell | Words] = [rank_cell(one.device, several=several)]
        cells.append(ms(times.span_ns, scale.decimals, f"{path}.window.span_ns"))
        for part in PARTS:
            ns = part.of(times)
            cells.append(ms(ns, scale.decimals, f"{path}.window.{part.key}_ns"))
            cells.append(percent(ns, times.span_ns))
        kernels = one.device.kernels
        cells += [
            ms(times.comm_ns, scale.decimals, f"{path}.window.comm_ns"),
            ms(times.overlap_ns, scale.decimals, f"{path}.window.overlap_ns"),
            count(kernels.count, f"{path}.kernels.count"),
            count(kernels.unlinked_count, f"{path}.kernels.unlinked_count"),
        ]
        rows.append(cells)
    return Table(
        key="windows",
        label="Ranks",
        columns=columns,
        rows=rows,
        left=len(report.devices) - len(picked),
        what="device",
    )


def spread_table(report: Report, scale: Scale) -> Table | None:
    """Write how far ranks are apart: of each part the least, the quartiles and the most."""
    devices = report.devices
    if len(devices) <= _SPREAD_FROM:
        return None
    rows = []
    for key, name in (("span", "span"), *((part.key, part.name) for part in PARTS)):
        field = f"{key}_ns"
        ordered = places_by(devices, key)
        cells: list[Cell | Words] = [Words(name)]
        for place in quantile_indices(len(ordered)):
            index = ordered[place]
            ns = getattr(devices[index].window, field)
            cells.append(ms(ns, scale.decimals, f"devices.{index}.window.{field}"))
            cells.append(_whose(devices[index]))
        rows.append(cells)
    columns = [Column("of the window, ms", "", "text")]
    for word in _QUANTILES:
        columns += [Column(word), Column("of", "", "text")]
    return Table("spread", "How far ranks are apart", columns, rows, is_sortable=False)


def _whose(device: DeviceReport) -> Words:
    return Words("unknown rank" if device.rank is None else f"rank {device.rank}")


def rank_sections(report: Report, picked: Sequence[Picked]) -> list[RankSection]:
    """Gather what is known of each rank that is shown."""
    by_rank: dict[int | None, list[Picked]] = {}
    for one in picked:
        by_rank.setdefault(one.device.rank, []).append(one)
    flags = stragglers_of(report)
    room = max(_STEPS_IN_ALL // max(len(picked), 1), _LEAST_STEPS)
    return [
        RankSection(
            anchor=f"rank-{'unknown' if rank is None else rank}",
            title="Unknown rank" if rank is None else f"Rank {rank}",
            flag=flags.get(rank),
            why=own[0].why,
            devices=[
                _device_section(report, one, alone=len(own) == 1, room=room) for one in own
            ],
            files=[file_row(n, f) for n, f in enumerate(report.files) if f.rank == rank],
            notes=[]
            if rank is None
            else note_lines([n for n in report.notes if n.rank == rank]),
        )
        for rank, own in by_rank.items()
    ]


def _device_section(report: Report, one: Picked, *, alone: bool, room: int) -> DeviceSection:
    device, path = one.device, f"devices.{one.place}"
    use = device.utilization or {}
    waterfall = use.get("waterfall") or ()
    terms = terms_of(waterfall)
    return DeviceSection(
        title="" if alone else f"Device {device.device}",
        figures=[*_figures(report, device, path)],
        shares=shares_bar(waterfall, terms) if waterfall else None,
        shares_text=[
            (amount.key, amount.name, amount.percent)
            for amount in (shares_bar(waterfall, terms).amounts if waterfall else ())
        ],
        steps=own_steps(one, room),
        host=host_of(device.host, f"{path}.host"),
    )


def _figures(report: Report, device: DeviceReport, path: str) -> list[tuple[str, str, Cell]]:
    use, window = device.utilization or {}, device.window
    decimals = ms_decimals(window.span_ns)
    figures = [("window, ms", "window", ms(window.span_ns, decimals, f"{path}.window.span_ns"))]
    if use.get("achieved_flop_per_s") is not None:
        rate = tera(use["achieved_flop_per_s"], f"{path}.utilization.achieved_flop_per_s")
        figures.append(("TFLOP/s", "achieved", rate))
    if use.get("hfu") is not None:
        figures.append(("HFU", "hfu", ratio(use["hfu"], f"{path}.utilization.hfu")))
    if use.get("mfu") is not None:
        figures.append(("MFU", "mfu", ratio(use["mfu"], f"{path}.utilization.mfu")))
    parts = communication_of(device) or {}
    for name, ns in parts.items():
        if ns or name not in RARE:
            figures.append((f"{term_of(name).name}, ms", name, ms(ns, decimals)))
    if report.collectives:
        last = last_in(report).get(str(device.rank), 0)
        figures.append(("collectives last in", "last_rank", count(last)))
    offset = ((report.clock or {}).get("offsets_ns") or {}).get(str(device.rank))
    if offset is not None:
        cell = ms(offset, ms_decimals(abs(offset)), f"clock.offsets_ns.{device.rank}")
        figures.append(("clock ahead, ms", "the rank's clock − the lowest rank's", cell))  # noqa: RUF001
    return figures
