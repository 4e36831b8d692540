"""The HTML page: what is on it, and what can never get onto it."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.report.made_across import together
from tests.report.parsed import Parsed, bars, digests, policy_of
from traceparse.errors import Note
from traceparse.report import html, page_charts
from traceparse.report.charts import NEEDED
from traceparse.report.words import DEFINITIONS, PARTS
from traceparse.run import Report
from traceparse.units import format_count, format_ms, format_percent


@pytest.fixture
def page(report: Report) -> Parsed:
    return Parsed(html.render(report))


@pytest.fixture
def bare(monkeypatch):
    """An installation without the extra for charts."""
    monkeypatch.setattr(page_charts, "why_no_charts", lambda: NEEDED)


def test_the_page_is_one_well_formed_document(report):
    text = html.render(report)
    assert text.startswith('<!doctype html>\n<html lang="en">\n')
    parsed = Parsed(text)
    assert [tag for tag, _ in parsed.elements].count("h1") == 1
    assert "compute 60.0%, exposed comm 20.0% – traceparse" in parsed.text


def test_it_is_the_same_every_time(used):
    assert html.render(used) == html.render(used)


@pytest.mark.parametrize("name", ["report", "used"])
def test_its_policy_allows_its_own_style_and_scripts_and_nothing_else(name, request):
    text = html.render(request.getfixturevalue(name))
    (style,), scripts = digests("style", text), digests("script", text)
    assert len(scripts) == (2 if name == "used" else 1)  # Vega only where it draws something
    assert policy_of(text) == (
        f"default-src 'none'; script-src {' '.join(scripts)}; style-src {style}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("name", ["report", "hostile"])
def test_it_needs_no_network_and_has_no_inline_handler(name, request):
    text = html.render(request.getfixturevalue(name))
    parsed = Parsed(text)
    tags = {tag for tag, _ in parsed.elements}
    assert not tags & {"img", "iframe", "link", "object", "embed", "form", "base"}
    assert all(href.startswith("#") for href in parsed.attributes("href"))
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "@import" not in text
    names = {name for _, attrs in parsed.elements for name in attrs}
    assert not {name for name in names if name.startswith("on")} | names & {"src", "style"}


def test_hostile_text_is_on_the_page_as_text_only(hostile):
    text = html.render(hostile)
    assert "<script>alert" not in text
    assert not set(text) & {"\x1b", "\x9b", "\u202e", "\udcff", "\r"}
    text.encode("utf-8")
    parsed = Parsed(text)
    shown = (
        "<script>alert('x')</script> [red]loud[/red] \\x1b[31mred\\x1b[0m \\x9b2J "
        '\\u202egnp.exe " onload="x \' \\n{{ 7*7 }} \\udcff'
    )
    assert parsed.text.count(shown) >= 8  # title, verdict, basis, backend, device, notes, file


def test_json_in_the_page_cannot_end_its_element():
    nasty = {"name": "</script><!-- & \u2028 \u202e \udcff", "more": [1.5, None]}
    text = page_charts.as_json(nasty)
    assert not set(text) & {"<", ">", "&", "\u2028", "\u202e", "\udcff"}
    assert json.loads(text) == nasty


def test_every_number_of_ranks_is_the_reports(report, page):
    expected = []
    for device in report.devices:
        times = device.window
        row = [f"rank {device.rank}", format_ms(times.span_ns)]
        for part in PARTS:
            row += [format_ms(part.of(times)), format_percent(part.of(times), times.span_ns)]
        row += [format_ms(times.comm_ns), format_ms(times.overlap_ns), "1,234", "7"]
        expected.append(row)
    assert page.body("windows") == expected


@pytest.mark.parametrize("name", ["report", "used"])
def test_a_number_names_the_field_that_it_is(name, request):
    report = request.getfixturevalue(name)
    plain = report.to_dict()
    fields = Parsed(html.render(report)).fields()
    assert len(fields) > 40
    for path, values in fields.items():
        at = plain
        for key in path.split("."):
            at = at[int(key)] if isinstance(at, list) else at[key]
        assert {json.loads(value) if value else None for value in values} == {at}, path


def test_steps_are_grouped_and_say_what_is_special(page):
    rows = page.body("steps-table")
    assert [row[:2] for row in rows] == [
        ["3", "rank 0"],
        ["3", "rank 1"],
        ["4", "rank 0"],
        ["4", "rank 1"],
        ["5*", "rank 0"],
        ["5*", "rank 1"],
    ]
    assert page.heads("steps-table") == [
        *("step", "rank", "parts", "span ms", "compute ms", "exposed comm ms"),
        *("exposed copy ms", "idle ms"),
    ]
    assert rows[2][3:] == ["1,282.7", "1,000.0", "200.0", "2.3", "80.4"]
    assert rows[3][2:] == ["no device work", "–", "–", "–", "–", "–"]
    assert "* open-ended: no step follows" in page.text


def test_headings_are_marked_and_definitions_open_on_demand(page):
    heads = [attrs for tag, attrs in page.elements if tag == "th"]
    assert all(attrs["scope"] in {"col", "row"} for attrs in heads)
    targets = page.attributes("popovertarget")
    popovers = [attrs["id"] for _, attrs in page.elements if "popover" in attrs]
    assert set(targets) <= set(popovers)
    assert {f"d-{part.key}" for part in PARTS} <= set(targets)
    for definition in DEFINITIONS.values():
        assert page.text.count(definition.replace("`", "")) >= 2  # in the list, and on demand


@pytest.mark.parametrize("name", ["report", "used", "hostile"])
def test_links_lead_to_sections(name, request):
    page = Parsed(html.render(together(request.getfixturevalue(name))))
    ids = page.attributes("id")
    assert len(set(ids)) == len(ids)
    assert {href[1:] for href in page.attributes("href")} <= set(ids)
    assert set(page.attributes("aria-labelledby")) <= set(ids)


def test_bars_are_on_one_scale_and_leave_no_gaps(page):
    drawn = bars(page)
    (longest,) = [
        segments
        for says, segments in drawn
        if says == "1,282.7 ms: compute 1,000.0 ms (78.0%), exposed comm 200.0 ms (15.6%), "
        "exposed copy 2.3 ms (0.2%), idle 80.4 ms (6.3%)"
    ]
    assert [key for key, _, _ in longest] == [part.key for part in PARTS]
    assert longest[-1][1] + longest[-1][2] == pytest.approx(100, abs=0.003)
    (shorter,) = [segments for says, segments in drawn if says.startswith("999.0 ms: ")]
    assert shorter[-1][1] + shorter[-1][2] == pytest.approx(
        100 * 999 / 1_282.726_144, abs=0.003
    )
    for _, segments in drawn:
        for (_, x, width), (_, following, _) in pairwise(segments):
            assert x + width == pytest.approx(following, abs=0.0015)


def test_the_facts_of_the_run(page):
    for fact in ("world size2", "ranks with a trace0-1", "missing ranksnone", "backendnccl"):
        assert fact in page.text.replace("\n", "")
    assert "steps3-5" in page.text


def test_what_is_unknown_is_said_to_be_unknown(hostile):
    text = Parsed(html.render(hostile)).text
    assert "world sizeunknown" in text
    assert "missing ranksunknown" in text
    assert "unknown rank" in text
    assert "No device event at all: the device is “cpu”." in text


def test_the_definition_of_cpu_is_shown_only_where_it_is_needed(page):
    assert "“cpu”" not in page.text


def test_shares_of_the_run_are_the_summarys(report):
    summary = replace(report.summary, compute_ratio=0.25, idle_ratio=None)
    page = Parsed(html.render(replace(report, summary=summary)))
    assert page.fields()["summary.compute_ratio"] == ["0.25"]
    assert set(page.fields()["summary.idle_ratio"]) == {""}
    assert (
        "from 4 device-steps: steps that are not open-ended and present on every rank"
        in page.text
    )


def test_notes_and_file_health(make, report):
    notes = (*report.notes, Note("truncated", "breaks off at byte 7", 0, "a/0.json"))
    files = (
        make.file("a/1.json", skipped={"python_function": 1_000, "never": 0}),
        make.file("a/0.json", truncated=True, rank=None, rank_source=None),
    )
    page = Parsed(html.render(replace(report, notes=notes, files=files)))
    assert page.body("notes-table") == [["truncated", "breaks off at byte 7 a/0.json"]]
    assert page.body("files-table") == [
        ["0.json", "–", "K-new", "12.3 MB", "4,321", "1,234", "–", "–", "none", "truncated"],
        [
            *("1.json", "0 distributedInfo", "K-new", "12.3 MB", "4,321", "1,234", "–", "–"),
            "1,000 python_function",
            "whole",
        ],
    ]
    assert "All are in a/." in page.text


def test_nothing_to_note_is_said(make):
    text = Parsed(html.render(make.fleet(2))).text
    assert "Nothing had to be repaired, skipped or assumed." in text
    assert "No rule found anything" in text


def test_without_step_markers_the_window_is_the_one_step(make):
    times = make.times(compute=20)
    report = make.report([make.device(0, 0, times, [make.step(None, times)])])
    page = Parsed(html.render(report))
    assert "The traces have no step markers" in page.text
    assert page.heads("step-map") == ["rank", "whole window"]
    assert "steps-table" not in page.tables


def test_devices_of_one_rank_are_told_apart(make):
    times = make.times(compute=20)
    page = Parsed(html.render(make.report([make.device(0, n, times) for n in (0, 1)])))
    assert [row[0] for row in page.body("windows")] == ["rank 0 device 0", "rank 0 device 1"]
    assert page.attributes("id").count("rank-0") == 1


def test_an_empty_report_has_an_empty_page(make):
    page = Parsed(html.render(make.report([])))
    assert page.body("windows") == []


@pytest.mark.usefixtures("bare")
def test_without_the_extra_pictures_are_static_and_one_line_says_what_to_install(used):
    text = html.render(used)
    page = Parsed(text)
    assert page.text.count("pip install 'traceparse[report]'") == 1
    assert "data-chart" not in {name for _, attrs in page.elements for name in attrs}
    assert len(text) < 250_000
    assert any(says.startswith("1,282.7 ms") for says, _ in bars(page))


def test_files_there_is_no_room_for_are_counted(make):
    files = tuple(make.file(f"{n}.json", rank=n) for n in range(100))
    page = Parsed(html.render(make.fleet(100, files=files)))
    assert len(page.body("files-table")) == 64
    assert f"report.json has {format_count(36)} more files" in page.text
