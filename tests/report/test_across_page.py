"""What ranks did together, on the page."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.made_across import MS, collective, split, together, unsplit
from tests.report.test_html import Parsed, bars
from traceparse.report import html
from traceparse.report.words import DEFINITIONS


@pytest.fixture
def page(report) -> Parsed:
    return Parsed(html.render(together(report)))


def test_a_link_leads_to_the_section_and_it_says_what_the_terminal_says(page):
    assert "#across" in page.attributes("href")
    assert "across" in page.attributes("id")
    assert "2 ranks on one clock: offsets up to 1.3 ms, residual 0.5 us." in page.text
    assert "transfer 11.6%, waiting for the last rank 12.5%." in page.text
    assert "Waited for: rank 1, last in 4 of its 5 (80.0%; 7.3 ms of waiting)" in page.text


def test_ranks_have_bars_of_what_exposed_comm_was(page):
    drawn = [(says, segments) for says, segments in bars(page) if "exposed wait" in says]
    (longer, first), (shorter, second) = drawn
    assert longer == "600.0 ms: exposed wait 450.0 ms (18.9%), exposed transfer 150.0 ms (6.3%)"
    assert first == [("exposed_wait", 0.0, 75.0), ("exposed_transfer", 75.0, 25.0)]
    assert shorter.startswith("400.0 ms: ")
    assert second[-1][1] + second[-1][2] == pytest.approx(100 * 400 / 600, abs=0.002)


def test_tables_have_the_numbers(page):
    ranks, kinds = page.tables[:2]
    assert ranks[0][2:5] == ["exposed comm", "exposed wait", "exposed transfer"]
    assert ranks[2:] == [
        ["0", "0", "600.0", "450.0", "18.9%", "150.0", "6.3%", "1", "0", "0"],
        ["1", "1", "400.0", "300.0", "27.3%", "100.0", "9.1%", "4", "-1.300", "0"],
    ]
    assert kinds[1:] == [
        [
            *("allreduce", "0", "0-1", "bf16", "16.8 MB", "4", "40.500", "7.304", "36.584"),
            *("152.3", "266.5", "rank 1: 4"),
        ],
        [
            *("all_gather", "0", "0-1", "fp16", "192 B", "4", "40.500", "7.304", "36.584"),
            *("–", "40.5 ms", "rank 0: 1"),
        ],
        ["broadcast", "–", "0-1", "–", "–", "4", "–", "–", "36.584", "–", "–", "–"],
    ]


def test_terms_are_defined(page):
    titles = page.attributes("title")
    for key in ("exposed_wait", "exposed_transfer"):
        assert f"{key.replace('_', ' ')}: {DEFINITIONS[key]}" in titles
    assert f"busbw: {DEFINITIONS['busbw']}" in titles


def test_pipelines_have_their_own_color(report):
    page = Parsed(html.render(together(report, pipeline_ns=50 * MS)))
    ((_, segments), _) = [one for one in bars(page) if "pipeline wait" in one[0]]
    assert [key for key, _, _ in segments] == [
        *("exposed_wait", "pipeline_wait", "exposed_transfer")
    ]


def test_without_communication_there_is_no_section(report):
    page = Parsed(html.render(report))
    assert "across" not in page.attributes("id")
    assert "#across" not in page.attributes("href")


def test_one_rank_has_its_collectives_and_no_bars(make):
    alone = replace(make.fleet(1), collectives=[unsplit()], clock=None)
    page = Parsed(html.render(alone))
    assert "One rank only, and what others waited for is in their traces" in page.text
    assert page.tables[0][1][:3] == ["allreduce", "0", "0-1"]
    assert "What exposed comm was" not in page.text


def test_a_rank_without_a_clock_or_a_number_has_dashes(report):
    some = together(report, clock=None, scaling_loss=None)
    unknown = replace(some, devices=(replace(some.devices[0], rank=None), some.devices[1]))
    page = Parsed(html.render(unknown))
    assert page.tables[0][2][-3:] == ["0", "–", "–"]
    assert "no common clock" in page.text


def test_a_large_run_says_what_is_left_out(make):
    rows = [collective(f"kind {n}") for n in range(30)]
    text = Parsed(html.render(together(make.fleet(100), collectives=rows))).text
    assert "report.json has 36 more devices." in text
    assert "report.json has 6 more rows." in text


def test_shares_of_the_peak_are_split_as_well(used, make):
    uses = (split(make.use(), pipeline=0.01), split(make.use(), rest=0.01))
    devices = tuple(
        replace(device, utilization=use) for device, use in zip(used.devices, uses, strict=True)
    )
    report = replace(used, devices=devices, utilization=split(make.use()))
    page = Parsed(html.render(report))
    assert page.tables[0][0][6:10] == [
        *("exposed wait", "pipeline wait", "exposed transfer", "exposed comm (not split)")
    ]
    assert page.tables[0][1][6:10] == ["7.0%", "1.0%", "2.0%", "0%"]
    classes = {key for _, segments in bars(page) for key, _, _ in segments}
    assert {"exposed_wait", "exposed_transfer", "exposed_unsplit"} <= classes
