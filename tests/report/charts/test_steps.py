"""Ranks and steps: bars of few, of many a map and those that stand for others."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.report.charts.conftest import chart_of, rows_of
from traceparse.report.charts.spans import devices_of

MS = 1_000_000


def slow(make, ranks, late, steps=3):
    """All ranks do the same, but ``late`` computes for longer, and the others wait for it."""
    devices = []
    for rank in range(ranks):
        compute, comm = (800, 100) if rank == late else (600, 300)
        times = make.times(compute=compute * MS, comm=comm * MS, idle=100 * MS)
        marked = [make.step(n, times, open_ended=n == steps - 1) for n in range(steps)]
        devices.append(make.device(rank, 0, times, marked))
    return make.report(devices)


def test_bars_add_up_to_their_step(report):
    rows = rows_of(chart_of(report, "steps"))
    for device in report.devices:
        for step in device.steps:
            bars = [
                row
                for row in rows
                if row["rank"] == f"rank {device.rank}" and row["step"] == f"step {step.step}"
            ]
            if step.open_ended or step.times is None:
                assert bars == []
                continue
            ends = sorted((row["start"], row["end"]) for row in bars)
            assert ends[0][0] == 0
            assert ends[-1][1] == pytest.approx(step.times.span_ns / MS)
            assert all(one[1] == two[0] for one, two in pairwise(ends))


def test_parts_are_those_that_are_known(full, report):
    told = {row["part"] for row in rows_of(chart_of(full, "steps"))}
    assert {"exposed transfer", "exposed wait"} <= told
    assert "exposed comm" not in told
    told = {row["part"] for row in rows_of(chart_of(report, "steps"))}
    assert told == {"compute", "exposed comm", "exposed copy", "idle"}


def test_windows_are_drawn_where_there_are_no_steps(make):
    times = make.times(compute=MS)
    report = make.report([make.device(0, 0, times, [make.step(None, times)])])
    chart = chart_of(replace(report, summary=make.summary(times, basis="windows")), "steps")
    assert chart.title == "What each rank spent its window on"
    (row,) = rows_of(chart)
    assert (row["part"], row["step"], row["end"]) == ("compute", "window", 1.0)


def test_the_map_of_many_ranks_shows_who_is_late_and_by_how_much(make):
    chart = chart_of(slow(make, 64, late=37), "steps")
    cells = [row for row in rows_of(chart) if "more" in row]
    assert len(cells) == 64 * 2  # the third step is open-ended
    strong = {cell["from"]: cell["text"] for cell in cells if cell["more"] > 0}
    # 900 ms without its exposed comm, where the others need 700
    assert strong == {36.5: "28.6%"}
    assert "rank 37 needs most, 28.6% more than the median" in chart.spoken


def test_the_bars_of_many_ranks_are_quantiles_and_outliers(make):
    rows = rows_of(chart_of(slow(make, 64, late=37), "steps"))
    labels = list(dict.fromkeys(row["rank"] for row in rows if "part" in row))
    assert len(labels) == 5
    assert labels[-1] == "rank 37 (outlier)"
    assert [label.partition("(")[2] for label in labels[:-1]] == [
        "least)",
        "first quarter)",
        "median)",
        "last quarter)",
    ]
    pointers = [row for row in rows if "x" in row]
    assert [(row["x"], row["text"]) for row in pointers] == [(37, "rank 37")]


def test_ranks_that_are_alike_have_nobody_pointed_at(make):
    rows = rows_of(chart_of(slow(make, 64, late=None), "steps"))
    assert not [row for row in rows if "x" in row]


def test_merged_cells_keep_the_slowest_and_the_title_says_so(make):
    chart = chart_of(slow(make, 512, late=37, steps=97), "steps")
    assert chart.title.endswith("(a cell is the slowest of 16 ranks and 2 steps)")
    cells = [row for row in rows_of(chart) if "more" in row]
    assert len(cells) == 512 // 16 * 48
    assert {cell["rank"] for cell in cells if cell["more"] > 0} == {"rank 37"}


def test_few_ranks_of_many_steps_are_a_map_too(make):
    chart = chart_of(slow(make, 4, late=1, steps=30), "steps")
    rows = rows_of(chart)
    assert len([row for row in rows if "more" in row]) == 4 * 29
    labels = {row["rank"] for row in rows if "part" in row}
    assert labels == {f"rank {rank}" for rank in range(4)}


def test_devices_of_one_rank_are_told_apart(make):
    times = make.times(compute=MS)
    devices = [make.device(0, number, times, [make.step(1, times)]) for number in range(2)]
    labels = [device.label for device in devices_of(make.report(devices))]
    assert labels == ["rank 0 device 0", "rank 0 device 1"]
