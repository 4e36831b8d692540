from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.charts.conftest import chart_of, rows_of
from traceparse.report.charts import charts_of


def test_points_are_the_rows_of_the_report(full):
    points = [row for row in rows_of(chart_of(full, "roofline")) if "op" in row]
    assert len(points) == len(full.roofline)
    point, row = points[0], full.roofline[0]
    # 10^15 FLOP over 10^12 bytes
    assert (point["x"], point["y"], point["ms"]) == (1000.0, pytest.approx(612.3), 500.0)
    assert point["bound"] == row["bound"] == "compute"
    assert point["rate"] == "612.3 TFLOP/s"


def test_the_roof_is_slanted_up_to_its_ridge(full):
    corners = [row for row in rows_of(chart_of(full, "roofline")) if "is_last" in row]
    roof = {round(corner["x"], 3): corner["y"] for corner in corners}
    ridge = 989.4e12 / 3.35e12
    assert roof[round(ridge, 3)] == pytest.approx(989.4)
    low, high = min(roof), max(roof)
    assert roof[low] == pytest.approx(low * 3.35, rel=1e-3)
    assert low < ridge < high
    assert roof[high] == pytest.approx(989.4)


def test_without_bandwidth_the_roof_is_level(full):
    accelerator = {**full.run.accelerator, "hbm_bytes_per_s": None}
    report = replace(full, run=replace(full.run, accelerator=accelerator))
    corners = [row for row in rows_of(chart_of(report, "roofline")) if "is_last" in row]
    assert [corner["y"] for corner in corners] == [pytest.approx(989.4)] * len(corners)
    assert corners


def test_without_a_peak_there_are_points_and_no_roof(full):
    report = replace(full, run=replace(full.run, accelerator=None))
    assert not [row for row in rows_of(chart_of(report, "roofline")) if "is_last" in row]


def test_what_has_no_place_on_a_logarithmic_axis_is_left_out(full, make):
    rows = [make.row(flop_per_s=None), make.row(bytes=0), make.row(flop=0, flop_per_s=0.0)]
    report = replace(full, roofline=rows)
    assert "roofline" not in {chart.key for chart in charts_of(report)}


def test_of_very_many_operators_those_that_take_most_are_drawn(full, make):
    rows = [make.row(f"op{n}", time_ns=n + 1) for n in range(1_234)]
    chart = chart_of(replace(full, roofline=rows), "roofline")
    assert chart.title.endswith("the 300 that take most, of 1,234")
    points = [row["op"] for row in rows_of(chart) if "op" in row]
    assert points[0] == "op1233"
    assert len(points) == 300
