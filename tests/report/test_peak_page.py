"""Where 100 % of the peak goes, findings, and key figures, on the page."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.made_across import together
from tests.report.parsed import Parsed
from traceparse.errors import Note
from traceparse.report import html


@pytest.fixture
def page(used) -> Parsed:
    return Parsed(html.render(used))


def falls(page: Parsed) -> list[tuple[str, float, float]]:
    """The steps of the waterfall: color, start and width in percent."""
    found = []
    inside = False
    for tag, attrs in page.elements:
        if tag == "svg":
            inside = attrs.get("class") == "fall-bar"
        elif inside and tag == "rect":
            x, width = ((attrs.get(name) or "0").rstrip("%") for name in ("x", "width"))
            found.append((attrs["class"] or "", float(x), float(width)))
    return found


def test_facts_premises_and_cost_are_there(page):
    text = page.text.replace("\n", "")
    for fact in ("acceleratorh100-sxm", "reference dtypebf16", "executed1,234.0 TFLOP"):
        assert fact in text
    assert "Peak of h100-sxm: 989.4 TFLOP/s in bf16; table of accelerators" in text
    assert "Cost: $10.00 a step (4 GPU-hours at $2.50), $0.050 a million tokens." in text
    fields = page.fields()
    assert fields["utilization.mfu"] == ["0.375"]
    assert fields["utilization.hfu"] == ["0.5"]
    assert fields["cost.usd_per_step"] == ["10.0"]


def test_the_waterfall_goes_down_from_the_peak_to_mfu(page):
    steps = falls(page)
    assert [key for key, _, _ in steps] == [
        *("idle", "exposed_copy", "exposed_comm", "other_kernels", "matmul_inefficiency"),
        *("recompute", "mfu"),
    ]
    tops = [x + width for _, x, width in steps]
    assert tops[0] == pytest.approx(100, abs=0.002)
    assert tops[1:] == pytest.approx([x for _, x, _ in steps[:-1]], abs=0.002)
    assert steps[-1][1:] == (0.0, 37.5)


def test_what_a_share_costs_stands_beside_it(page):
    assert page.fields()["cost.lost_usd_per_step.exposed_comm"] == ["2.25"]
    assert "$2.25" in page.text


def test_costs_of_a_step_that_costs_little_are_told_of_many(used, make):
    cost = {
        **used.cost,
        "usd_per_step": 7.5e-6,
        "gpu_hours_per_step": 3e-6,
        "lost_usd_per_step": {"exposed_comm": 9.4e-7},
    }
    findings = [make.finding("info", lost_ratio=0.125, lost_usd=9.4e-7)]
    page = Parsed(html.render(replace(used, cost=cost, findings=findings)))
    text = page.text.replace("\n", "")
    assert "Cost: $7.50 a million steps (3 GPU-hours at $2.50)" in text
    assert "that is, a million steps$0.940" in text
    assert "a step$" not in text
    assert page.fields()["cost.lost_usd_per_step.exposed_comm"] == ["9.4e-07"]  # as in the JSON
    assert page.fields()["findings.0.lost_usd"] == ["9.4e-07"]


def test_ranks_have_a_table(page):
    assert page.heads("peak-ranks")[:4] == ["rank", "shares", "TFLOP/s", "HFU"]
    assert page.body("peak-ranks")[1] == [
        *("rank 1", "", "494.7", "45.0%", "10.0%", "5.0%", "10.0%", "20.0%", "10.0%"),
        *("10.0%", "35.0%"),
    ]


def test_operators_are_listed_with_their_roof(page):
    rows = page.body("operators-table")
    assert rows[0] == [
        *("aten::mm [[8192, 4096], [4096, 14336]]", "bf16", "1,234", "500.0", "612.3"),
        *("61.9%", "compute", "190.0"),
    ]
    assert rows[2][-3:] == ["–", "–", "–"]


def test_findings_come_first_with_what_they_win_back(used, make):
    findings = [
        make.finding(),
        make.finding("warning", code="straggler", title="rank 1 is waited for: slow compute"),
        make.finding("info", title="odd", lost_ratio=0.132, lost_usd=1.5, advice="run `x -y`?"),
    ]
    page = Parsed(html.render(replace(used, findings=findings)))
    classes = [attrs.get("class") for tag, attrs in page.elements if tag in {"li", "section"}]
    assert [name for name in classes if name and name.startswith("finding ")] == [
        *("finding error", "finding warning", "finding info")
    ]
    ids = page.attributes("id")
    assert ids.index("findings") < ids.index("figures") < ids.index("peak")
    assert "120% of the peak." in page.text
    assert "What to do: The device is another." in page.text
    assert "Run x -y?" in page.text
    assert page.fields()["findings.2.lost_ratio"] == ["0.132"]
    assert page.fields()["findings.2.lost_usd"] == ["1.5"]
    assert "findings.0.lost_ratio" not in page.fields()
    assert page.text.count("slow compute") >= 3  # the finding, the picture, the rank's section
    assert page.attributes("href").count("#rank-1") >= 4


def test_bands_judge_with_their_sources(used):
    bands = {
        "mfu": {"value": 0.375, "band": "good", "limits": {}, "source": "published runs"},
        "load_balance": {"value": 0.75, "band": "poor", "limits": {}, "source": "POP"},
    }
    page = Parsed(html.render(replace(together(used), bands=bands)))
    assert "MFU is good published runs" in page.text
    assert "load balance is poor POP" in page.text
    classes = [attrs.get("class") for tag, attrs in page.elements if tag == "button"]
    assert classes.count("band good") == 1
    assert classes.count("band poor") == 1


def test_what_is_unknown_is_said_with_its_reason(used, make):
    notes = (Note("flop_unknown", "no shapes"),)
    bare = replace(
        used, utilization=dict.fromkeys(make.use()), roofline=None, cost=None, notes=notes
    )
    page = Parsed(html.render(bare))
    assert "Unknown: no shapes." in page.text
    assert "Peak of" not in page.text
    assert "operators-table" not in page.tables
    use = {**make.use(), "hfu": None, "mfu": None, "waterfall": None}
    text = Parsed(html.render(replace(bare, utilization=use))).text
    assert "No waterfall: no shapes." in text
    assert "TFLOP/s a device" in text


def test_a_report_without_utilization_has_no_such_section(report):
    page = Parsed(html.render(report))
    assert "peak" not in page.attributes("id")
    assert "#peak" not in page.attributes("href")


def test_shares_beyond_all_stay_within_the_picture(used, make):
    use = make.use(mfu=1.7, recompute=-0.2, matmul=-0.6)
    page = Parsed(html.render(replace(used, utilization=use)))
    for _, x, width in falls(page):
        assert 0 <= x <= x + width <= 100.001


def test_operators_there_is_no_room_for_are_counted(used, make):
    rows = [make.row(f"op{n}") for n in range(140)]
    page = Parsed(html.render(replace(used, roofline=rows)))
    assert len(page.body("operators-table")) == 100
    assert "report.json has 40 more rows." in page.text
