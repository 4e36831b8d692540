"""The HTML page: what is on it, and what can never get onto it."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from traceparse.errors import Note
from traceparse.report import html
from traceparse.report.bars import Scale
from traceparse.report.words import DEFINITIONS, PARTS
from traceparse.run import Report
from traceparse.units import format_count, format_ms, format_percent

VOID = {"meta"}  # of those the page has; what closes itself is another event


class Parsed(HTMLParser):
    """Elements, texts and table cells of a page; complains of elements that do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text += data
        if self.open and self.open[-1] in {"td", "th", "code"} and "table" in self.open:
            self.tables[-1][-1][-1] += data.strip()

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.elements if name in attrs]

    def body(self, table: int) -> list[list[str]]:
        heads = 2 if table < 2 else 1
        return self.tables[table][heads:]


@pytest.fixture
def page(report: Report) -> Parsed:
    return Parsed(html.render(report))


def test_the_page_is_one_well_formed_document(report):
    text = html.render(report)
    assert text.startswith('<!doctype html>\n<html lang="en">\n')
    parsed = Parsed(text)
    assert [tag for tag, _ in parsed.elements].count("h1") == 1
    assert "compute 60.0%, exposed comm 20.0% – traceparse" in parsed.text


def test_it_is_the_same_every_time(report):
    assert html.render(report) == html.render(report)


def test_its_policy_allows_its_own_style_and_nothing_else(report):
    text = html.render(report)
    (policy,) = [
        attrs["content"]
        for tag, attrs in Parsed(text).elements
        if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    style = re.search(r"<style>(.*)</style>", text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("name", ["report", "hostile"])
def test_it_needs_no_network_and_runs_nothing(name, request):
    text = html.render(request.getfixturevalue(name))
    parsed = Parsed(text)
    tags = {tag for tag, _ in parsed.elements}
    assert not tags & {"script", "img", "iframe", "link", "object", "embed", "form", "base"}
    assert all(href.startswith("#") for href in parsed.attributes("href"))
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "@import" not in text
    names = {name for _, attrs in parsed.elements for name in attrs}
    assert not {name for name in names if name.startswith("on")} | names & {"src", "style"}


def test_hostile_text_is_on_the_page_as_text_only(hostile):
    text = html.render(hostile)
    assert "<script" not in text
    assert not set(text) & {"\x1b", "\x9b", "\u202e", "\udcff", "\r"}
    text.encode("utf-8")
    parsed = Parsed(text)
    shown = (
        "<script>alert('x')</script> [red]loud[/red] \\x1b[31mred\\x1b[0m \\x9b2J "
        '\\u202egnp.exe " onload="x \' \\n{{ 7*7 }} \\udcff'
    )
    assert parsed.text.count(shown) >= 8  # title, verdict, basis, backend, device, notes, file
    assert shown in parsed.attributes("title")


def test_every_number_of_ranks_is_the_reports(report, page):
    expected = []
    for device in report.devices:
        times = device.window
        row = [str(device.rank), str(device.device), format_ms(times.span_ns)]
        for part in PARTS:
            row += [format_ms(part.of(times)), format_percent(part.of(times), times.span_ns)]
        row += [format_ms(times.comm_ns), format_ms(times.overlap_ns), "1,234", "7"]
        expected.append(row)
    assert page.body(0) == expected


def test_steps_are_grouped_and_say_what_is_special(page):
    rows = page.body(1)
    assert [row[:3] for row in rows] == [
        ["3", "0", "0"],
        ["3", "1", "1"],
        ["4", "0", "0"],
        ["4", "1", "1"],
        ["5*", "0", "0"],
        ["5*", "1", "1"],
    ]
    assert rows[2][3:] == [
        *("1,282.7", "1,000.0", "78.0%", "200.0", "15.6%", "2.3", "0.2%", "80.4", "6.3%")
    ]
    assert rows[3][3:] == ["no device work"]
    assert "* open-ended: no step follows" in page.text


def test_headings_are_marked_and_defined(page):
    heads = [attrs for tag, attrs in page.elements if tag == "th"]
    assert all(attrs["scope"] in {"col", "colgroup", "row"} for attrs in heads)
    titles = page.attributes("title")
    for part in PARTS:
        assert f"{part.name}: {DEFINITIONS[part.key]}" in titles
    for definition in DEFINITIONS.values():
        assert definition in page.text


def test_links_lead_to_sections(page):
    ids = page.attributes("id")
    assert len(set(ids)) == len(ids)
    assert {href[1:] for href in page.attributes("href")} <= set(ids)
    assert set(page.attributes("aria-labelledby")) <= set(ids)


def bars(page: Parsed) -> list[tuple[str, list[tuple[str, float, float]]]]:
    """The pictures of a page: what each says, and its segments."""
    found: list[tuple[str, list[tuple[str, float, float]]]] = []
    for tag, attrs in page.elements:
        if tag == "svg":
            found.append((attrs.get("aria-label") or "", []))
        elif tag == "rect" and "x" in attrs:
            x, width = (float((attrs[name] or "").rstrip("%")) for name in ("x", "width"))
            found[-1][1].append((attrs["class"] or "", x, width))
    return found


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
    half = [segments for says, segments in drawn if says.startswith("999.0 ms: ")]
    ends = [segments[-1][1] + segments[-1][2] for segments in half]
    assert ends == pytest.approx(
        [100 * 999 / 2_152.346_078, 100 * 999 / 1_282.726_144], abs=0.003
    )
    for _, segments in drawn:
        for (_, x, width), (_, following, _) in pairwise(segments):
            assert x + width == pytest.approx(following, abs=0.0015)
    assert ("no device work", []) in drawn


@pytest.mark.parametrize(
    ("full_ns", "texts"),
    [
        (0, ["0"]),
        (5, ["0", "0.000001", "0.000002", "0.000003", "0.000004", "0.000005"]),
        (20, ["0", "0.000005", "0.00001", "0.000015", "0.00002"]),
        (1_282_726_144, ["0", "500", "1,000"]),
        (6_000_000_000, ["0", "1,000", "2,000", "3,000", "4,000", "5,000", "6,000"]),
    ],
)
def test_ticks_are_at_round_times(full_ns, texts):
    assert [tick.text for tick in Scale(full_ns, 1).ticks()] == texts


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
    text = Parsed(html.render(replace(report, summary=summary))).text
    assert "25.0%" in text
    assert "–\n2,152.3 ms" not in text
    assert (
        "from 4 device-steps: steps that are not open-ended and present on every rank" in text
    )


def test_notes_and_file_health(make, report):
    notes = (*report.notes, Note("truncated", "breaks off at byte 7", 0, "a/0.json"))
    files = (
        make.file("a/1.json", skipped={"python_function": 1_000, "never": 0}),
        make.file("a/0.json", truncated=True, rank=None, rank_source=None),
    )
    page = Parsed(html.render(replace(report, notes=notes, files=files)))
    assert page.body(2) == [["truncated", "a/0.json", "breaks off at byte 7"]]
    assert page.body(3) == [
        ["a/0.json", "–", "K-new", "12.3 MB", "4,321", "1,234", "–", "–", "none", "truncated"],
        [
            *(
                "a/1.json",
                "0 (distributedInfo)",
                "K-new",
                "12.3 MB",
                "4,321",
                "1,234",
                "–",
                "–",
            ),
            "1,000 python_function",
            "whole",
        ],
    ]
    assert "Not computed by this version: utilization, collectives, clock" in page.text


def test_nothing_to_note_is_said(make):
    text = Parsed(html.render(make.fleet(2))).text
    assert "Nothing had to be repaired, skipped or assumed." in text
    assert "Not computed" not in text


def test_without_step_markers_there_is_no_picture_of_steps(make):
    times = make.times(compute=20)
    report = make.report([make.device(0, 0, times, [make.step(None, times)])])
    page = Parsed(html.render(report))
    assert "The traces have no step markers" in page.text
    assert "no step markers" in page.text
    assert len(page.tables) == 2  # ranks, files


def test_devices_of_one_rank_are_told_apart(make):
    times = make.times(compute=20)
    page = Parsed(html.render(make.report([make.device(0, n, times) for n in (0, 1)])))
    assert "rank 0 · device 1" in page.text


def test_an_empty_report_has_an_empty_page(make):
    page = Parsed(html.render(make.report([])))
    assert page.body(0) == []


def test_a_large_run_shows_the_first_and_the_worst_and_says_what_is_left_out(make):
    files = tuple(make.file(f"{n}.json", rank=n) for n in range(100))
    page = Parsed(html.render(make.fleet(100, steps=20, files=files)))
    ranks = [int(row[0]) for row in page.body(0)]
    assert len(ranks) == 64
    assert ranks[:32] == list(range(32))
    assert ranks[-16:] == list(range(84, 100))
    assert "report.json has 36 more devices" in page.text
    steps = page.body(1)
    assert len(steps) == 256
    assert [row[0] for row in steps[::64]] == ["0", "1", "2", "3"]
    assert f"report.json has {format_count(2_000 - 256)} more rows" in page.text
    assert len(page.tables[-1]) == 1 + 64
    assert "report.json has 36 more files" in page.text
