"""Where 100 % of the peak goes, on the page."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.test_html import Parsed, bars
from traceparse.errors import Note
from traceparse.report import html


@pytest.fixture
def page(used) -> Parsed:
    return Parsed(html.render(used))


def test_shares_facts_and_premises_are_there(page):
    text = page.text.replace("\n", "")
    for fact in ("HFU50.0%", "MFU37.5%", "achieved a device494.7 TFLOP/s", "h100-sxm"):
        assert fact in text
    assert "executed1,234.0 TFLOP" in text
    assert "Peak of h100-sxm: 989.4 TFLOP/s in bf16; table of accelerators" in text
    assert "Cost: $10.00 a step (4 GPU-hours at $2.50), $0.050 a million tokens." in text


def test_ranks_have_bars_that_leave_no_gap_and_a_table(page):
    (_, first), (_, second) = (
        (says, segments)
        for says, segments in bars(page)
        if says.startswith("idle") and "MFU 37.5%" not in says
    )
    for segments in (first, second):
        assert segments[-1][0] == "mfu"
        assert segments[-1][1] + segments[-1][2] == pytest.approx(100, abs=0.002)
    rows = page.tables[0]
    assert rows[0][-7:] == [
        *("idle", "exposed copy", "exposed comm", "other kernels"),
        *("matmul inefficiency", "recompute", "MFU"),
    ]
    assert rows[2] == [
        *("1", "1", "494.7", "45.0%", "10.0%", "5.0%", "10.0%", "20.0%", "10.0%", "10.0%"),
        "35.0%",
    ]


def test_operators_are_listed_with_their_roof(page):
    rows = page.tables[1]
    assert rows[1][1:] == [
        *("bf16", "1,234", "500.0", "612.3", "61.9%", "compute", "190.0"),
    ]
    assert rows[3][-3:] == ["–", "–", "–"]
    assert "[[8192, 4096], [4096, 14336]]" in page.text


def test_findings_come_first(used, make):
    findings = [make.finding(), make.finding("warning", title="odd")]
    page = Parsed(html.render(replace(used, findings=findings)))
    classes = [attrs.get("class") for tag, attrs in page.elements if tag == "p"]
    assert classes.index("finding error") < classes.index("finding warning")
    assert "error: too fast: 120% of the peak, so the device is another." in page.text


def test_what_is_unknown_is_said_with_its_reason(used, make):
    notes = (Note("flop_unknown", "no shapes"),)
    bare = replace(
        used, utilization=dict.fromkeys(make.use()), roofline=None, cost=None, notes=notes
    )
    page = Parsed(html.render(bare))
    assert "Unknown: no shapes." in page.text
    assert "Peak of" not in page.text
    use = {**make.use(), "hfu": None, "mfu": None, "waterfall": None}
    text = Parsed(html.render(replace(bare, utilization=use))).text
    assert "No waterfall: no shapes." in text
    assert "494.7 TFLOP/s" in text


def test_a_report_without_utilization_has_no_such_section(report):
    page = Parsed(html.render(report))
    assert "peak" not in page.attributes("id")
    assert "#peak" not in page.attributes("href")


def test_shares_beyond_all_stay_within_the_picture(used, make):
    use = make.use(mfu=1.7, recompute=-0.2, matmul=-0.6)
    page = Parsed(html.render(replace(used, utilization=use)))
    ends = [x + width for _, segments in bars(page) for _, x, width in segments]
    assert max(ends) <= 100.001


def test_a_large_run_says_what_is_left_out(used, make):
    fleet = make.fleet(100)
    devices = tuple(replace(device, utilization=make.use()) for device in fleet.devices)
    rows = [make.row(f"op{n}") for n in range(40)]
    text = Parsed(html.render(replace(used, devices=devices, roofline=rows))).text
    assert "report.json has 36 more devices." in text
    assert "report.json has 16 more rows." in text
