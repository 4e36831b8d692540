"""What ranks did together on the page: the loss of scaling, what if, and collectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from traceparse.report.across import (
    clock_line,
    communication_of,
    is_small,
    is_split,
    last_in,
    latency_of,
    link_line,
    link_of,
    rows_of,
    waited_for,
    why_not_split,
)
from traceparse.report.bars import SPLIT, Bar, Scale, Segment, stacked
from traceparse.report.cells import (
    AnyCell,
    Cell,
    Column,
    Figure,
    Picture,
    Table,
    Words,
    count,
    ms,
    ratio,
    without_unknown,
)
from traceparse.report.choose import Picked
from traceparse.report.page_steps import rank_cell
from traceparse.report.what_if import changes_of
from traceparse.report.words import RARE, term_of
from traceparse.run import Report
from traceparse.units import UNKNOWN, ms_decimals

__all__ = ["Across", "Loss", "across_of", "collective_table", "what_if_table"]

_MAX_COLLECTIVES = 100
_MOST_DECIMALS = 4
_LOSS: Final = (
    ("exposed_transfer", "exposed transfer"),
    ("exposed_wait", "exposed wait"),
    ("pipeline_wait", "pipeline wait"),
    ("exposed_unsplit", "exposed comm (not split)"),
    ("contention", "contention"),
)
_FACTORS: Final = (
    ("load_balance", "load balance"),
    ("serialization", "serialization"),
    ("transfer", "transfer"),
    ("parallel_efficiency", "parallel efficiency"),
)


@dataclass(frozen=True, slots=True)
class Loss:
    """One share of a mean step that scaling costs."""

    key: str
    name: str
    share: Cell
    width: str


@dataclass(frozen=True, slots=True)
class Across:
    """All that the section shows; ``unknown`` says why waiting is not told from transfer."""

    unknown: str
    lines: Sequence[str]
    losses: Sequence[Loss]
    won: Cell | None
    factors: Sequence[Figure]
    ranks: Table | None


def across_of(
    report: Report, picked: Sequence[Picked], bands: Mapping[str, Any] | None
) -> Across | None:
    """Lay the section out; there is none where nothing communicated."""
    if not report.collectives:
        return None
    known = [one for one in picked if communication_of(one.device)]
    loss = report.scaling_loss
    won = loss["comm_ratio"] if loss else None
    return Across(
        unknown="" if is_split(report) else why_not_split(report),
        lines=[*_lines(report)] if is_split(report) else (),
        losses=[*_losses(loss)] if loss else (),
        won=None if won is None else ratio(won, "scaling_loss.comm_ratio"),
        factors=[*_factors(loss, bands or {})] if loss else (),
        ranks=_rank_table(report, known) if known else None,
    )


def _lines(report: Report) -> Iterator[str]:
    yield clock_line(report)
    if who := waited_for(report):
        yield f"Waited for: {who}"


def _losses(loss: Mapping[str, Any]) -> Iterator[Loss]:
    for key, name in _LOSS:
        share = loss[f"{key}_ratio"]
        if share or key not in RARE:
            yield Loss(
                key,
                name,
                ratio(share, f"scaling_loss.{key}_ratio"),
                f"{min(max(100 * (share or 0.0), 0.0), 100.0):.3f}%",
            )


def _factors(loss: Mapping[str, Any], bands: Mapping[str, Any]) -> Iterator[Figure]:
    for key, name in _FACTORS:
        if loss[key] is not None:
            band = bands.get(key) or {"band": "", "source": ""}
            yield Figure(
                name,
                "" if key == "transfer" else key,
                ratio(loss[key], f"scaling_loss.{key}"),
                key=key,
                band=band["band"],
                source=band["source"],
            )


def _rank_table(report: Report, picked: Sequence[Picked]) -> Table:
    sums = [communication_of(one.device) or {} for one in picked]
    terms = [name for name in SPLIT if name not in RARE or any(s[name] for s in sums)]
    longest = max((sum(parts.values()) for parts in sums), default=0)
    scale = Scale(longest, ms_decimals(longest))
    several = len({one.device.rank for one in picked}) < len(picked)
    lasts = last_in(report)
    return Table(
        key="exposed-ranks",
        label="What exposed comm was, by rank",
        columns=[
            Column("rank", "", "text"),
            Column("parts", "", "picture"),
            Column("exposed comm, ms", "exposed_comm"),
            *(Column(f"{term_of(name).name}, ms", name) for name in terms),
            Column("last in", "last_rank"),
            Column("clock ahead, ms", "the rank's clock − the lowest rank's"),  # noqa: RUF001
            Column("drift, ppm"),
        ],
        rows=[
            [
                rank_cell(one.device, several=several),
                Picture(_exposed_bar(parts, terms, scale)),
                ms(sum(parts.values()), scale.decimals),
                *(ms(parts[name], scale.decimals) for name in terms),
                count(lasts.get(str(one.device.rank), 0)),
                *_clock_cells(report, one.device.rank),
            ]
            for one, parts in zip(picked, sums, strict=True)
        ],
        left=len([d for d in report.devices if communication_of(d)]) - len(picked),
        what="device",
    )


def _exposed_bar(parts: Mapping[str, int], terms: Sequence[str], scale: Scale) -> Bar:
    named = [(name, term_of(name).name, parts[name]) for name in terms]
    return stacked(named, sum(parts.values()), scale)


def _clock_cells(report: Report, rank: int | None) -> Iterator[Cell]:
    clock: Mapping[str, Any] = report.clock or {}
    offsets: Mapping[str, int] = clock.get("offsets_ns") or {}
    furthest = max(map(abs, offsets.values()), default=0)
    offset = offsets.get(str(rank))
    path = "" if offset is None else f"clock.offsets_ns.{rank}"
    yield ms(offset, ms_decimals(furthest), path)
    drift = (clock.get("drift_ppm") or {}).get(str(rank))
    text = UNKNOWN if drift is None else f"{drift:,.1f}" if drift else "0"
    yield Cell(text, drift, "" if drift is None else f"clock.drift_ppm.{rank}")


def what_if_table(report: Report) -> Table | None:
    """Write how long a step would take after each change, the step as it was first."""
    changes = changes_of(report)
    if not changes:
        return None
    now, *known = changes
    found: Mapping[str, Any] = report.what_if or {}
    places = [n for n, row in enumerate(found["changes"]) if row["between_ns"]]
    rows: list[Sequence[AnyCell]] = [
        [
            Words(now.name),
            Picture(_step_bar(now.width, "idle", now.step)),
            Cell(now.step, found["step_ns"], "what_if.step_ns"),
            Cell(""),
            Cell(""),
        ]
    ]
    for place, change in zip(places, known, strict=True):
        row, path = found["changes"][place], f"what_if.changes.{place}"
        exact = row["step_ns"] is not None
        rows.append(
            [
                Words(change.name),
                Picture(_step_bar(change.width, "compute", change.step)),
                Cell(change.step, row["between_ns"][1], f"{path}.step_ns" if exact else ""),
                Cell(change.won, row["won_ratio"], f"{path}.won_ratio" if exact else ""),
                Cell(
                    change.subtracted,
                    row["subtracted_step_ns"],
                    f"{path}.subtracted_step_ns",
                ),
            ]
        )
    return Table(
        key="what-if-table",
        label="What if",
        columns=[
            Column("change", "", "text"),
            Column("step", "", "picture"),
            Column("step, ms"),
            Column("wins"),
            Column("by subtraction, ms", "the step less what the report has of the same loss"),
        ],
        rows=rows,
    )


def _step_bar(width: str, key: str, text: str) -> Bar:
    return Bar("", (), (Segment(key, "0%", width, f"{text} ms"),), f"{text} ms")


def collective_table(report: Report) -> Table | None:
    """Write the collectives that cost most; a share of the link's bandwidth where known."""
    found = report.collectives or ()
    if not found:
        return None
    link = link_of(report) if link_line(report) else None
    shown = rows_of(found, _MAX_COLLECTIVES)
    columns = [
        Column("collective", "", "text"),
        Column("ranks", "", "text"),
        Column("size"),
        Column("count", "instance"),
        Column("transfer, ms", "transfer"),
        Column("wait, ms", "wait"),
        Column("exposed, ms", "each kernel's own exposure, added up over all ranks"),
        Column("algbw, GB/s", "algbw"),
        Column("busbw, GB/s", "busbw"),
        *([Column("of link", link_line(report) or "")] if link else []),
        Column("one takes", "how long one instance transfers, if its message is below 1 MiB"),
        Column("last", "last_rank", "text"),
    ]
    rows: list[Sequence[Cell | Words]] = []
    for place, (text, row) in enumerate(zip(shown, found, strict=False)):
        path, small = f"collectives.{place}", is_small(row)
        busbw = None if small else row["busbw_bytes_per_s"]
        share = [_share_of(busbw, link[1])] if link else []
        rows.append(
            [
                Words(text.collective, text.dtype),
                Words(text.members, f"group {text.group}"),
                Cell(text.size, row["message_bytes"], f"{path}.message_bytes"),
                count(row["count"], f"{path}.count"),
                Cell(text.transfer, row["transfer_ns"], f"{path}.transfer_ns"),
                Cell(text.wait, row["wait_ns"], f"{path}.wait_ns"),
                Cell(text.exposed, row["exposed_ns"], f"{path}.exposed_ns"),
                _rate(text.algbw, row, "algbw_bytes_per_s", path),
                _rate(UNKNOWN if small else text.busbw, row, "busbw_bytes_per_s", path),
                *share,
                Cell(latency_of(row) if small else UNKNOWN, _one_ns(row) if small else None),
                Words(text.last),
            ]
        )
    kept_columns, kept_rows = without_unknown(columns, rows)
    left = len(found) - len(shown)
    return Table("collectives-table", "Collectives", kept_columns, kept_rows, left)


def _rate(text: str, row: Mapping[str, Any], name: str, path: str) -> Cell:
    known = text != UNKNOWN
    return Cell(text, row[name] if known else None, f"{path}.{name}" if known else "")


def _share_of(busbw: float | None, link: float) -> Cell:
    return ratio(None if busbw is None else busbw / link)


def _one_ns(row: Mapping[str, Any]) -> float | None:
    num = sum(row["last_rank_counts"].values())
    return row["transfer_ns"] / num if row["transfer_ns"] is not None and num else None
