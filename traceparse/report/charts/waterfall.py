"""Where 100 % of the peak went: the waterfall of the contract, in its order."""

from __future__ import annotations

from typing import Any

from traceparse.report.charts.chart import Chart
from traceparse.report.charts.layers import bars_of_shares, finished
from traceparse.report.peak import ratio_of, terms_of
from traceparse.run import Report
from traceparse.units import format_ratio

__all__ = ["waterfall_chart"]

_ROOM = 0.08  # for the percents beside the bars, of the width


def waterfall_chart(report: Report) -> Chart | None:
    """Draw what each share takes from what is left of the peak; nothing where it is unknown."""
    shares = (report.utilization or {}).get("waterfall")
    if not shares:
        return None
    rows: list[dict[str, Any]] = []
    left = 1.0
    for term in terms_of(shares):
        ratio = ratio_of(shares, term) or 0.0
        start, left = left, left - ratio
        rows.append(
            {
                "key": term.key,
                "name": term.name,
                "start": left,
                "end": start,
                "right": max(left, start),
                "share": format_ratio(ratio),
            }
        )
    rows[-1]["start"] = 0.0  # what is left is rounded, and the last share ends at nothing
    told = ", ".join(f"{row['name']} {row['share']}" for row in rows)
    title = "Where 100% of the peak went"
    most = max(row["right"] for row in rows) + _ROOM
    least = min(0.0, *(min(row["start"], row["end"]) for row in rows))
    chart = finished(bars_of_shares(rows, most=most, least=least), title)
    return Chart("waterfall", title, f"Shares of the peak, which add up to 100%: {told}", chart)
