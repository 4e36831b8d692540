"""Ranks by steps, ranks one by one, and what stands for a large run, on the page."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.made_across import together
from tests.report.parsed import Parsed, bars
from traceparse.errors import Note
from traceparse.report import html

MS = 1_000_000


def fleet(make, ranks: int = 100, steps: int = 3, **fields):
    """A large run in which rank 50 computes more, and a finding says so."""
    report = make.fleet(ranks, steps=steps, **fields)
    slow = {"compute": 900 * MS, "comm": 20 * MS, "idle": 20 * MS}
    devices = list(report.devices)
    step = [make.step(n, make.times(**slow)) for n in range(steps)]
    window = make.times(**{name: steps * value for name, value in slow.items()})
    devices[50] = make.device(50, 2, window, step)
    finding = make.finding(
        "warning", code="straggler", title="rank 50 is waited for: slow compute"
    )
    return replace(report, devices=tuple(devices), findings=[finding])


def test_the_picture_has_a_row_a_rank_and_a_column_a_step(report):
    page = Parsed(html.render(report))
    assert page.tables["step-map"] == [
        ["rank", "step 3", "step 4", "step 5*"],
        ["rank 0", "1,000.0", "1,282.7", "100.0"],
        ["rank 1", "999.0", "no device work", "100.0"],
    ]


def test_stragglers_are_marked_and_how_often_ranks_are_last_is_drawn(make, report):
    finding = make.finding("warning", code="straggler", title="rank 1 is waited for: late host")
    page = Parsed(html.render(replace(together(report), findings=[finding])))
    assert page.heads("step-map")[-1] == "last in"
    rows = page.body("step-map")
    assert rows[1][0] == "rank 1 late host"
    assert [row[-1] for row in rows] == ["1", "4"]
    assert "straggler" in [attrs.get("class") for tag, attrs in page.elements if tag == "tr"]


def test_of_many_steps_the_first_the_last_and_quantiles_of_their_length_are_drawn(make):
    lengths = [50, 10, 20, 90, 40, 60, 30, 70, 80, 100, 55]
    steps = [make.step(n, make.times(compute=length * MS)) for n, length in enumerate(lengths)]
    window = make.times(compute=sum(lengths) * MS)
    page = Parsed(html.render(make.report([make.device(0, 0, window, steps)])))
    # least 10 (1), quartiles 35 → 40 (4), 55 (10) and 75 → 80 (8) by rounding, most 100 (9)
    ordered = sorted(range(11), key=lambda n: lengths[n])
    expected = sorted({ordered[n] for n in (0, 2, 5, 8, 10)} | {0, 10})
    assert page.heads("step-map")[1:] == [f"step {n}" for n in expected]
    assert f"{len(expected)} of 11 steps are drawn" in page.text
    assert len(page.body("steps-table")) == 11


def test_each_rank_has_a_section_with_its_steps_files_and_notes(make, used):
    notes = (Note("clock_odd", "its clock jumps", rank=1), Note("other", "of all"))
    files = (make.file("r0.json"), make.file("r1.json", rank=1, truncated=True))
    page = Parsed(html.render(replace(used, notes=notes, files=files)))
    section = page.text[page.text.index("Rank 1\n") : page.text.index("Notes\n", 2_000)]
    assert "r1.json: truncated" in section
    assert "clock_odd its clock jumps" in section
    assert "r0.json" not in section
    assert "of all" not in section
    assert page.body("steps-of-1") == [
        ["3", "", "999.0", "450.0", "450.0", "0", "99.0"],
        ["4", "no device work", "–", "–", "–", "–", "–"],
        ["5*", "", "100.0", "90.0", "10.0", "0", "0"],
    ]
    assert page.fields()["devices.1.utilization.mfu"] == ["0.35"]
    assert page.attributes("href").count("#rank-1") >= 3


def test_a_large_run_is_summarized_and_the_page_says_how(make):
    page = Parsed(html.render(fleet(make)))
    ranks = [row[0] for row in page.body("step-map")]
    assert any(name.startswith("rank 50 slow compute named by a finding") for name in ranks)
    assert 8 <= len(ranks) <= 32
    assert f"{len(ranks)} of 100 devices stand for all" in page.text
    assert f"report.json has {100 - len(ranks)} more devices." in page.text
    anchors = [name for name in page.attributes("id") if name.startswith("rank-")]
    assert len(anchors) == len(ranks)
    # the map of all ranks is a chart; the static picture below is not drawn twice
    assert "chart-steps" in page.attributes("id")


def test_a_small_run_needs_no_map_of_all(report):
    assert "chart-steps" not in Parsed(html.render(report)).attributes("id")


def test_the_spread_of_ranks_names_who_is_where(make):
    page = Parsed(html.render(fleet(make)))
    rows = {row[0]: row[1:] for row in page.body("spread")}
    # exposed comm of rank r is 50 + r ms a step, that of rank 50 is 20; three steps
    assert rows["exposed comm"] == [
        *("60.0", "rank 50", "222.0", "rank 24", "297.0", "rank 49"),
        *("372.0", "rank 74", "447.0", "rank 99"),
    ]
    assert rows["compute"][-2:] == ["2,700.0", "rank 50"]
    # and they have sections: of each part but the copies, which say least
    named = {
        rank
        for name in ("span", "compute", "exposed comm", "idle")
        for rank in rows[name][1::2]
    }
    shown = {row[0] for row in page.body("windows")}
    assert named <= shown
    assert "spread" not in Parsed(html.render(make.fleet(8))).tables


@pytest.mark.parametrize("ranks", [64, 65])
def test_up_to_64_devices_all_are_shown(make, ranks):
    page = Parsed(html.render(make.fleet(ranks)))
    shown = len(page.body("windows"))
    assert (shown == 64) == (ranks == 64)
    assert ("stand for all" in page.text) == (ranks != 64)


@pytest.mark.parametrize(("ranks", "steps"), [(512, 20), (64, 100)])
def test_a_page_of_many_ranks_and_steps_is_not_large(make, ranks, steps):
    text = html.render(make.fleet(ranks, steps=steps))
    assert len(text.encode()) < 5_000_000
    assert len(Parsed(text).body("steps-table")) <= 256


def test_where_steps_are_many_a_rank_shows_its_longest(make):
    page = Parsed(html.render(make.fleet(64, steps=100)))
    assert len(page.body("steps-table")) == 256
    assert "report.json has 6,144 more device-steps." in page.text
    assert len(page.body("steps-of-0")) == 16
    assert "report.json has 84 more steps; the longest are here." in page.text


def test_the_bars_of_one_rank_are_said_once(report):
    page = Parsed(html.render(report))
    said = [says for says, _ in bars(page) if says.startswith("1,282.7 ms")]
    assert len(said) == 1
