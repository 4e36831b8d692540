from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.report.charts.conftest import chart_of, rows_of
from traceparse.report.charts import charts_of
from traceparse.units import format_ratio


def bars_of(report):
    return rows_of(chart_of(report, "waterfall"))


def test_bars_hang_together_from_all_to_nothing(full):
    bars = bars_of(full)
    assert bars[0]["end"] == 1.0
    assert bars[-1]["start"] == 0.0
    for upper, lower in pairwise(bars):
        assert upper["start"] == lower["end"]


def test_each_bar_is_as_wide_as_its_share_of_the_contract(full):
    shares = {share["name"]: share["ratio"] for share in full.utilization["waterfall"]}
    bars = {bar["key"]: bar for bar in bars_of(full)}
    assert list(bars) == [name for name, ratio in shares.items() if ratio or name in bars]
    for key, bar in bars.items():
        assert bar["end"] - bar["start"] == pytest.approx(shares[key])
        assert bar["share"] == format_ratio(shares[key])


def test_what_is_below_zero_goes_the_other_way(full, make):
    bars = {
        bar["key"]: bar for bar in bars_of(replace(full, utilization=make.use(matmul=-0.1)))
    }
    bar = bars["matmul_inefficiency"]
    assert bar["start"] > bar["end"]
    assert bar["share"] == "-10.0%"


def test_an_unknown_peak_is_not_drawn(full, make):
    unknown = replace(full, utilization=make.use(waterfall=None))
    assert "waterfall" not in {chart.key for chart in charts_of(unknown)}
