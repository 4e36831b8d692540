"""What ranks did together, on the page."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.made_across import MS, collective, loss, split, together, unsplit
from tests.report.parsed import Parsed, bars
from traceparse.report import html


@pytest.fixture
def page(report) -> Parsed:
    return Parsed(html.render(together(report)))


def test_a_link_leads_to_the_section_and_it_says_who_is_waited_for(page):
    assert "#across" in page.attributes("href")
    assert "across" in page.attributes("id")
    assert "2 ranks on one clock: offsets up to 1.3 ms, residual 0.5 us." in page.text
    assert "rank 1, last in 4 of its 5 (80.0%; 7.3 ms of waiting)" in page.text
    fields = page.fields()
    assert fields["scaling_loss.exposed_transfer_ratio"] == ["0.116"]
    assert fields["scaling_loss.load_balance"] == ["0.75"]
    assert "would win back" not in page.text  # contention is not known, so nor is comm_ratio


def test_what_a_free_network_wins_is_said_where_it_is_known(report):
    known = together(report, scaling_loss=loss(contention_ratio=0.01, comm_ratio=0.251))
    text = Parsed(html.render(known)).text
    assert "A free network and balanced ranks would win back 25.1% at most." in text


def test_bars_say_what_exposed_comm_was(page):
    first = next(says for says, _ in bars(page) if says.startswith("1,000.0 ms"))
    assert "exposed transfer 50.0 ms" in first
    assert "exposed wait 150.0 ms" in first
    assert "exposed comm" not in first


def test_tables_have_the_numbers(page):
    assert page.heads("exposed-ranks") == [
        *("rank", "parts", "exposed comm ms", "exposed transfer ms", "exposed wait ms"),
        *("last in", "clock ahead ms", "drift ppm"),
    ]
    assert page.body("exposed-ranks") == [
        ["rank 0", "", "600.0", "150.0", "450.0", "1", "0", "0"],
        ["rank 1", "", "400.0", "100.0", "300.0", "4", "-1.300", "0"],
    ]
    assert page.body("collectives-table") == [
        [
            *("allreduce bf16", "0-1 group 0", "16.8 MB", "4", "40.500", "7.304", "36.584"),
            *("152.3", "266.5", "–", "rank 1 : 4"),
        ],
        [
            *("all_gather fp16", "0-1 group 0", "192 B", "4", "40.500", "7.304", "36.584"),
            *("–", "–", "40.5 ms", "rank 0 : 1"),
        ],
        ["broadcast –", "0-1 group –", "–", "4", "–", "–", "36.584", "–", "–", "–", "–"],
    ]


def test_bandwidth_is_compared_with_the_link_where_a_table_has_one(report, used):
    on_h100 = together(replace(report, run=used.run))
    page = Parsed(html.render(on_h100))
    assert "of link" in page.heads("collectives-table")
    place = page.heads("collectives-table").index("of link")
    # NVLink 4: 450 GB/s in each direction
    assert page.body("collectives-table")[0][place] == "59.2%"


def test_pipelines_have_their_own_color(report):
    page = Parsed(html.render(together(report, pipeline_ns=50 * MS)))
    segments = next(one for says, one in bars(page) if "pipeline wait" in says)
    assert [key for key, _, _ in segments] == [
        *("compute", "exposed_transfer", "exposed_wait", "pipeline_wait"),
        *("exposed_copy", "idle"),
    ]


def test_without_communication_there_is_no_section(report):
    page = Parsed(html.render(report))
    assert "across" not in page.attributes("id")
    assert "#across" not in page.attributes("href")
    assert "collectives-table" not in page.tables


def test_one_rank_has_its_collectives_and_no_bars(make):
    alone = replace(make.fleet(1), collectives=[unsplit()], clock=None)
    page = Parsed(html.render(alone))
    assert "One rank only, and what others waited for is in their traces" in page.text
    # what nothing is known of has no column
    assert page.heads("collectives-table") == [
        "collective",
        "ranks",
        "size",
        "count",
        "exposed ms",
    ]
    assert page.body("collectives-table") == [
        ["allreduce bf16", "0-1 group 0", "16.8 MB", "4", "36.584"]
    ]
    assert "exposed-ranks" not in page.tables


def test_a_rank_without_a_clock_or_a_number_has_dashes(report):
    some = together(report, clock=None, scaling_loss=None)
    unknown = replace(some, devices=(replace(some.devices[0], rank=None), some.devices[1]))
    page = Parsed(html.render(unknown))
    assert page.body("exposed-ranks")[0][-3:] == ["0", "–", "–"]
    assert "no common clock" in page.text


def test_a_large_run_says_what_is_left_out(make):
    rows = [collective(f"kind {n}") for n in range(130)]
    page = Parsed(html.render(together(make.fleet(100), collectives=rows)))
    shown = len(page.body("exposed-ranks"))
    assert f"report.json has {100 - shown} more devices." in page.text
    assert "report.json has 30 more rows." in page.text


def test_shares_of_the_peak_are_split_as_well(used, make):
    uses = (split(make.use(), pipeline=0.01), split(make.use(), rest=0.01))
    devices = tuple(
        replace(device, utilization=use) for device, use in zip(used.devices, uses, strict=True)
    )
    report = replace(used, devices=devices, utilization=split(make.use()))
    page = Parsed(html.render(report))
    assert page.heads("peak-ranks")[6:10] == [
        *("exposed wait", "pipeline wait", "exposed transfer", "exposed comm (not split)")
    ]
    assert page.body("peak-ranks")[0][6:10] == ["7.0%", "1.0%", "2.0%", "0%"]
    classes = {attrs.get("class") for tag, attrs in page.elements if tag == "rect"}
    assert {"exposed_wait", "exposed_transfer", "exposed_unsplit"} <= classes


def test_what_if_compares_with_the_step_as_it_was(report):
    found = {
        "step_ns": 900 * MS,
        "changes": [
            {
                "change": "straggler_median",
                "ranks": [1],
                "step_ns": 720 * MS,
                "between_ns": [720 * MS, 720 * MS],
                "won_ratio": 0.2,
                "subtracted_step_ns": 800 * MS,
            },
            {
                "change": "network_free",
                "ranks": None,
                "step_ns": None,
                "between_ns": [450 * MS, 540 * MS],
                "won_ratio": None,
                "subtracted_step_ns": None,
            },
            {
                "change": "network_2x",
                "ranks": None,
                "step_ns": None,
                "between_ns": None,
                "won_ratio": None,
                "subtracted_step_ns": None,
            },
        ],
    }
    page = Parsed(html.render(replace(report, what_if=found)))
    assert page.body("what-if-table") == [
        ["as recorded", "", "900.0", "", ""],
        ["rank 1 as fast as the others", "", "720.0", "20.0%", "800.0"],
        ["network free", "", "450.0 to 540.0", "40.0% to 50.0%", "–"],
    ]
    assert page.fields()["what_if.changes.0.won_ratio"] == ["0.2"]
    assert "what_if.changes.1.step_ns" not in page.fields()
