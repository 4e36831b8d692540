"""Reports with something to draw in every chart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.report.made_across import split, together
from traceparse.report.charts import Chart, charts_of
from traceparse.run import Report


@pytest.fixture
def full(used: Report) -> Report:
    """Two ranks, of which everything is known."""
    assert used.utilization is not None
    return replace(together(used), utilization=split(dict(used.utilization)))


def chart_of(report: Report, key: str) -> Chart:
    """The chart of a report that has a key."""
    (found,) = (chart for chart in charts_of(report) if chart.key == key)
    return found


def rows_of(chart: Chart) -> list[dict[str, Any]]:
    """All data of a chart, of all its layers."""
    spec = chart.chart.to_dict()
    return [row for rows in spec["datasets"].values() for row in rows]
