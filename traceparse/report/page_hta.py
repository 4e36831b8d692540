"""What HTA found, where it was asked, on the page as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from traceparse.report.bars import Bar, Scale, stacked
from traceparse.report.cells import (
    AnyCell,
    Cell,
    Column,
    Picture,
    Table,
    Words,
    count,
    ms,
    percent,
)
from traceparse.report.hta_text import MOST_DECIMALS, bound_name, computed_by
from traceparse.run import Report
from traceparse.units import UNKNOWN, format_figure, ms_decimals

__all__ = ["Bound", "Hta", "hta_of"]

_MAX_QUEUES = 100
_PATH: Final = (
    "the longest chain of operators, kernels and delays, each of which waits for the one "
    "before, in one step of the host: the second of the trace, or its only one. Its length "
    "adds their durations up, and is no share of a step of this report: those are of the device"
)
_QUEUE: Final = (
    "how many operations were launched on a stream and had not started: one more at a launch, "
    "one less where its kernel or copy starts"
)
_CHANGE: Final = "moments at which the length became another"
_MEAN: Final = "over the changes, however long each lasted"
# what HTA calls the edges of a path, and what it counts there
_BOUNDS: Final = {
    "cpu_bound": "operators and calls on the host",
    "data_loading": "operators on the host that load data, as HTA tells by their names",
    "gpu_compute_bound": "kernels and copies, but those of collectives",
    "gpu_communication_bound": "kernels of collectives, as HTA tells by their names",
    "gpu_kernel_kernel_overhead": "from the end of a kernel to the start of the next",
    "gpu_kernel_launch_overhead": "from a launch to the start of its kernel",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """A color of the picture: what bounds a part of a path, and what HTA means by it."""

    key: str
    name: str
    definition: str


@dataclass(frozen=True, slots=True)
class Hta:
    """All that the section shows; a table is ``None`` where HTA had no answer."""

    how: str
    path: str
    queue: str
    bounds: Sequence[Bound]
    paths: Table | None
    queues: Table | None


def hta_of(report: Report) -> Hta | None:
    """Lay the section out; there is none where HTA was not asked."""
    hta = report.hta
    if hta is None:
        return None
    paths, queues = hta["critical_path"] or (), hta["queue_length"] or ()
    names = _by_size(paths)
    return Hta(
        how=computed_by(hta),
        path=_PATH,
        queue=_QUEUE,
        bounds=[Bound(_key(name), bound_name(name), _BOUNDS.get(name, "")) for name in names],
        paths=_path_table(report, paths, names) if paths else None,
        queues=_queue_table(report, queues) if queues else None,
    )


def _by_size(paths: Sequence[Mapping[str, Any]]) -> list[str]:
    """List what bounds any of the paths, the largest of all paths together first."""
    sums: dict[str, int] = {}
    for path in paths:
        for name, ns in path["bound_by_ns"].items():
            sums[name] = sums.get(name, 0) + ns
    return sorted((name for name, ns in sums.items() if ns), key=sums.__getitem__, reverse=True)


def _key(name: str) -> str:
    return f"hta-{name}" if name in _BOUNDS else "other"


def _path_table(
    report: Report, paths: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> Table:
    longest = max(path["duration_ns"] for path in paths)
    scale = Scale(longest, min(ms_decimals(longest), MOST_DECIMALS))
    columns = [
        Column("rank", "", "text"),
        Column("step", "", "text"),
        Column("bound by", "", "picture"),
        Column("length, ms"),
    ]
    for name in names:
        columns += [Column(f"{bound_name(name)}, ms"), Column("%")]
    rows: list[Sequence[AnyCell]] = [
        [
            _rank_cell(report, path["rank"]),
            Words(UNKNOWN if path["step"] is None else str(path["step"]), value=path["step"]),
            Picture(_bar(path, names, scale)),
            ms(path["duration_ns"], scale.decimals, f"hta.critical_path.{place}.duration_ns"),
            *_part_cells(path, names, scale, f"hta.critical_path.{place}.bound_by_ns"),
        ]
        for place, path in enumerate(paths)
    ]
    return Table("hta-paths", "Critical path of each rank", columns, rows)


def _rank_cell(report: Report, rank: int) -> Words:
    """Name a rank as the rest of the page does: a trace without one is rank 0 to HTA."""
    if rank not in report.run.ranks:
        return Words("unknown rank", f"rank {rank} to HTA")
    return Words(f"rank {rank}", href=f"#rank-{rank}", value=rank)


def _bar(path: Mapping[str, Any], names: Sequence[str], scale: Scale) -> Bar:
    bound = path["bound_by_ns"]
    parts = [(_key(name), bound_name(name), bound.get(name, 0)) for name in names]
    return stacked(parts, path["duration_ns"], scale)


def _part_cells(
    path: Mapping[str, Any], names: Sequence[str], scale: Scale, field: str
) -> Iterator[Cell]:
    bound = path["bound_by_ns"]
    for name in names:
        is_there = name in bound and name.isidentifier()
        ns = bound.get(name, 0)
        yield ms(ns, scale.decimals, f"{field}.{name}" if is_there else "")
        yield percent(ns, path["duration_ns"])


def _queue_table(report: Report, queues: Sequence[Mapping[str, Any]]) -> Table:
    longest_first = sorted(
        enumerate(queues), key=lambda one: (one[1]["max"], one[1]["mean"]), reverse=True
    )
    rows: list[Sequence[AnyCell]] = [
        [
            _rank_cell(report, queue["rank"]),
            Words(str(queue["stream"]), value=queue["stream"]),
            count(queue["num_changes"], f"hta.queue_length.{place}.num_changes"),
            _figure(queue["mean"], f"hta.queue_length.{place}.mean"),
            _figure(queue["median"], f"hta.queue_length.{place}.median"),
            count(queue["max"], f"hta.queue_length.{place}.max"),
        ]
        for place, queue in longest_first[:_MAX_QUEUES]
    ]
    columns = [
        Column("rank", "", "text"),
        Column("stream", "", "text"),
        Column("changes", _CHANGE),
        Column("mean", _MEAN),
        Column("median", _MEAN),
        Column("max"),
    ]
    return Table(
        key="hta-queues",
        label="Queue lengths by rank and stream",
        columns=columns,
        rows=rows,
        left=len(queues) - len(rows),
        what="queue",
        which="the longest are here",
    )


def _figure(value: float, field: str) -> Cell:
    return Cell(format_figure(value), value, field)
