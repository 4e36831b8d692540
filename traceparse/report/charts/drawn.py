"""All charts of a report, in the order of the page."""

from __future__ import annotations

from traceparse.report.charts.chart import Chart
from traceparse.report.charts.collectives import collectives_chart
from traceparse.report.charts.roofline import roofline_chart
from traceparse.report.charts.scaling_loss import scaling_loss_chart
from traceparse.report.charts.steps import steps_chart
from traceparse.report.charts.waterfall import waterfall_chart
from traceparse.run import Report

__all__ = ["charts_of"]

_CHARTS = (
    waterfall_chart,
    steps_chart,
    scaling_loss_chart,
    roofline_chart,
    collectives_chart,
)


def charts_of(report: Report) -> tuple[Chart, ...]:
    """Return the charts, as :func:`traceparse.report.charts.charts_of`."""
    return tuple(chart for draw in _CHARTS if (chart := draw(report)) is not None)
