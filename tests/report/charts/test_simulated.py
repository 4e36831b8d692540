"""Simulated jobs of many ranks: the picture points at whom the simulation made slow."""

from __future__ import annotations

import pytest

import traceparse
from tests.report.charts.conftest import chart_of, rows_of
from tests.simulated import made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "more_of"),
    [("straggler_compute", "compute_ns"), ("straggler_host", "idle_ns")],
)
def test_the_slow_rank_is_pointed_at(scenario, more_of, tmp_path):
    job = made(scenario, 32, 1)
    job.place(tmp_path)
    windows = {entry["rank"]: entry["window"][more_of] for entry in job.truth["devices"]}
    slow = max(windows, key=lambda rank: windows[rank])
    chart = chart_of(traceparse.analyze(tmp_path), "steps")
    assert f"rank {slow} needs most" in chart.spoken
    rows = rows_of(chart)
    assert [row["text"] for row in rows if "x" in row] == [f"rank {slow}"]
    cells = [row for row in rows if "more" in row]
    assert {cell["rank"] for cell in cells if cell["more"] > 0.1} == {f"rank {slow}"}
    assert f"rank {slow} (outlier)" in {row["rank"] for row in rows if "part" in row}
