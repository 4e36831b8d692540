"""What communication and imbalance cost a mean step, and POP's factors of efficiency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from traceparse.report.charts.chart import Chart
from traceparse.report.charts.layers import bars_of_shares, finished, heading, stacked
from traceparse.run import Report
from traceparse.units import format_ns, format_ratio

__all__ = ["scaling_loss_chart"]

_TERMS: Final = (
    ("exposed_transfer_ratio", "exposed_transfer", "exposed transfer"),
    ("exposed_wait_ratio", "exposed_wait", "waiting for the last rank"),
    ("pipeline_wait_ratio", "pipeline_wait", "pipeline wait"),
    ("exposed_unsplit_ratio", "exposed_unsplit", "not split"),
    ("contention_ratio", "other_kernels", "contention"),
)
_FACTORS: Final = (
    ("load_balance", "compute", "load balance"),
    ("serialization", "compute", "serialization"),
    ("transfer", "compute", "transfer"),
    ("parallel_efficiency", "mfu", "parallel efficiency"),
)
_ROOM = 1.12  # so that the percents stand beside the longest bar
_LEAST = 0.01  # of a step: less is not blown up to fill the picture


def scaling_loss_chart(report: Report) -> Chart | None:
    """Draw the terms above the factors; nothing where waiting is not known from transfer."""
    loss = report.scaling_loss
    if loss is None:
        return None
    terms, factors = _rows(loss, _TERMS), _rows(loss, _FACTORS)
    longest = max([_LEAST, *(row["end"] for row in terms)])
    most = max([1.0, *(row["end"] for row in factors)])
    upper = bars_of_shares(terms, most=longest * _ROOM).properties(
        title=heading("of a mean step, lost")
    )
    lower = bars_of_shares(factors, most=most * _ROOM).properties(
        title=heading("factors of parallel efficiency (POP), and their product")
    )
    title = f"What communication and imbalance cost a mean step of {format_ns(loss['step_ns'])}"
    told = ", ".join(f"{row['name']} {row['share']}" for row in (*terms, *factors))
    drawn = stacked(upper, lower)
    return Chart("scaling_loss", title, f"Bars: {told}", finished(drawn, title))


def _rows(
    loss: Mapping[str, Any], names: tuple[tuple[str, str, str], ...]
) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "name": name,
            "start": 0.0,
            "end": loss[field],
            "right": loss[field],
            "share": format_ratio(loss[field]),
        }
        for field, key, name in names
        if loss[field] is not None
    ]
