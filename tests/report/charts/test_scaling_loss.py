from __future__ import annotations

from dataclasses import replace

from tests.report.charts.conftest import chart_of, rows_of
from tests.report.made_across import loss
from traceparse.report.charts import charts_of


def test_bars_are_the_terms_and_the_factors(full):
    bars = {row["name"]: row["end"] for row in rows_of(chart_of(full, "scaling_loss"))}
    assert bars == {
        "exposed transfer": 0.116,
        "waiting for the last rank": 0.125,
        "pipeline wait": 0.0,
        "not split": 0.0,
        "load balance": 0.75,
        "serialization": 0.9,
        "transfer": 0.884,
        "parallel efficiency": 0.597,
    }


def test_what_is_unknown_has_no_bar(full):
    known = replace(full, scaling_loss=loss(contention_ratio=0.01, serialization=None))
    names = {row["name"] for row in rows_of(chart_of(known, "scaling_loss"))}
    assert "contention" in names
    assert "serialization" not in names
    nothing = replace(full, scaling_loss=None)
    assert "scaling_loss" not in {chart.key for chart in charts_of(nothing)}
