"""What HTA found, on the page."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.made_hta import NOTHING, found, path, queue
from tests.report.parsed import Parsed, bars
from traceparse.report import html
from traceparse.report.page_hta import hta_of


def page_with(report, **fields):
    return Parsed(html.render(replace(report, hta=found(**fields))))


def section_of(page: Parsed) -> str:
    start = page.text.index("Computed by traceinsight 0.6.1 in whole microseconds")
    return page.text[start : page.text.index("Each rank", start)]


def test_a_critical_path_is_taken_apart_by_what_bounds_most(report):
    page = page_with(report)
    assert page.heads("hta-paths") == [
        *("rank", "step", "bound by", "length ms"),
        *("gpu communication bound ms", "%", "cpu bound ms", "%"),
        *("gpu compute bound ms", "%"),
    ]
    assert page.body("hta-paths") == [
        ["rank 0", "12", "", "2.000", "0", "0%", "1.500", "75.0%", "0.500", "25.0%"],
        ["rank 1", "12", "", "8.000", "7.000", "87.5%", "1.000", "12.5%", "0", "0%"],
    ]
    assert "#rank-1" in page.attributes("href")


def test_paths_are_drawn_on_one_scale(report):
    page = page_with(report)
    drawn = [own for _, own in bars(page) if own and own[0][0].startswith("hta-")]
    assert drawn == [
        [("hta-cpu_bound", 0, 18.75), ("hta-gpu_compute_bound", 18.75, 6.25)],
        [("hta-gpu_communication_bound", 0, 87.5), ("hta-cpu_bound", 87.5, 12.5)],
    ]
    assert "cpu bound 1.500 ms (75.0%)" in page.text


def test_every_color_is_explained_and_has_a_rule(report):
    page = page_with(report)
    section = section_of(page)
    assert "operators and calls on the host" in section
    assert "no share of a step of this report" in section
    style = html.render(report).partition("</style>")[0]
    drawn = {key for _, segments in bars(page) for key, _, _ in segments}
    hta = {key for key in drawn if key.startswith("hta-")}
    assert len(hta) == 3
    assert all(f".{key} {{" in style for key in hta)


def test_the_longest_queue_is_first(report):
    page = page_with(report)
    assert page.heads("hta-queues") == ["rank", "stream", "changes", "mean", "median", "max"]
    assert page.body("hta-queues") == [
        ["rank 1", "7", "5,346", "1,065", "1,229", "1,840"],
        ["rank 0", "7", "450", "2.393", "1", "25"],
        ["rank 0", "20", "9", "0.5", "0.5", "1"],
    ]


def test_of_more_queues_than_anyone_reads_the_longest_are_there(report):
    queues = [queue(0, stream, max=stream + 1) for stream in range(103)]
    page = page_with(report, queue_length=queues)
    rows = page.body("hta-queues")
    assert [rows[0][1], rows[-1][1], len(rows)] == ["102", "3", 100]
    assert "report.json has 3 more queues; the longest are here." in page.text


def test_each_number_names_the_field_that_it_is(report):
    fields = page_with(report).fields()
    assert fields["hta.critical_path.1.duration_ns"] == ["8000000"]
    assert fields["hta.critical_path.0.bound_by_ns.cpu_bound"] == ["1500000"]
    assert "hta.critical_path.0.bound_by_ns.gpu_communication_bound" not in fields
    assert fields["hta.queue_length.2.max"] == ["1840"]


def test_where_hta_was_not_asked_there_is_no_section(report):
    page = Parsed(html.render(report))
    assert "#hta" not in page.attributes("href")
    assert "Queue lengths" not in page.text
    assert hta_of(report) is None


@pytest.mark.parametrize("missing", ["critical_path", "queue_length"])
def test_what_hta_had_no_answer_for_is_unknown(report, missing):
    page = page_with(report, **{missing: None})
    assert section_of(page).count("Unknown: the notes say why.") == 1
    assert ("hta-paths" in page.tables) == (missing == "queue_length")
    assert ("hta-queues" in page.tables) == (missing == "critical_path")


def test_where_hta_answered_nothing_both_are_unknown(report):
    page = Parsed(html.render(replace(report, hta=NOTHING)))
    assert section_of(page).count("Unknown: the notes say why.") == 2
    assert "#hta" in page.attributes("href")


def test_a_rank_that_the_trace_does_not_say_is_not_called_by_htas_number(report):
    unknown = replace(report, run=replace(report.run, ranks=()))
    page = page_with(unknown, critical_path=[path(0, step=None)], queue_length=[queue(0, 7)])
    assert page.body("hta-paths")[0][:2] == ["unknown rank rank 0 to HTA", "–"]
    assert page.body("hta-queues")[0][0] == "unknown rank rank 0 to HTA"


def test_a_path_of_no_length_has_no_shares(report):
    nothing = path(0, duration_ns=0, bound_by_ns={})
    page = page_with(report, critical_path=[nothing])
    assert page.body("hta-paths") == [["rank 0", "12", "", "0"]]


def test_names_are_text_and_no_class_of_ours(report, hostile_text):
    bound = {hostile_text: 2_000_000}
    hta = found(
        distribution=hostile_text, critical_path=[path(0, bound_by_ns=bound)], queue_length=None
    )
    text = html.render(replace(report, hta=hta))
    assert "<script>alert" not in text
    assert not set(text) & {"\x1b", "\x9b", "\u202e", "\udcff", "\r"}
    page = Parsed(text)
    shown = "<script>alert('x')</script> [red]loud[/red] \\x1b[31mred\\x1b[0m"
    assert page.text.count(shown) >= 3  # who computed it, a color, a heading
    assert not [name for name in page.fields() if "script" in name]
    drawn = {key for _, segments in bars(page) for key, _, _ in segments}
    assert "other" in drawn
    assert not [key for key in drawn if "script" in key]
