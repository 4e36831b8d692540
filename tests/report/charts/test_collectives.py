from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.charts.conftest import chart_of, rows_of
from tests.report.made_across import collective, unsplit
from traceparse.report.charts import charts_of


def points_of(chart):
    return [row for row in rows_of(chart) if "collective" in row]


def test_points_have_the_bandwidth_and_the_size_of_the_report(full):
    points = points_of(chart_of(full, "collectives"))
    assert [(point["collective"], point["x"]) for point in points] == [
        ("allreduce", 16_777_216),
        ("all_gather", 192),
    ]
    assert points[0]["y"] == pytest.approx(266.5)


def test_the_link_is_drawn_where_it_is_known(full):
    chart = chart_of(full, "collectives")
    (rule,) = (row for row in rows_of(chart) if "collective" not in row)
    assert rule == {"y": 450.0, "text": "nvlink4 of h100-sxm: 450 GB/s in each direction"}
    unknown = replace(full, run=replace(full.run, accelerator=None))
    rows = rows_of(chart_of(unknown, "collectives"))
    assert len(rows) == len(points_of(chart_of(unknown, "collectives")))


def test_what_was_not_split_has_no_bandwidth_to_draw(full):
    report = replace(full, collectives=[unsplit()])
    assert "collectives" not in {chart.key for chart in charts_of(report)}


def test_where_no_group_is_known_it_is_the_bandwidth_of_the_algorithm(full):
    rows = [collective(busbw_bytes_per_s=None, group_size=None)]
    chart = chart_of(replace(full, collectives=rows), "collectives")
    assert chart.title.startswith("Algorithm bandwidth")
    (point,) = rows_of(chart)  # and no link: it compares with busbw only
    assert point["y"] == pytest.approx(152.3)
    assert point["group"] == "ranks unknown"


def test_more_kinds_than_colors_are_merged(full):
    rows = [collective(f"kind{n}") for n in range(20)]
    points = points_of(chart_of(replace(full, collectives=rows), "collectives"))
    kinds = [point["collective"] for point in points]
    assert len(set(kinds)) == 8
    assert kinds[-1] == "others"
    assert kinds.count("others") == 20 - 7
