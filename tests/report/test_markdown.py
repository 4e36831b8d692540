"""The report as Markdown: what is in it, its pictures, and what cannot get into it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from tests.report.made_across import split, together
from traceparse.report import markdown
from traceparse.report.charts import NEEDED
from traceparse.report.safe import visible
from traceparse.units import UNKNOWN, format_ratio


@pytest.fixture
def full(used, make):
    found = [
        make.finding("warning", title="rank 1 is late", lost_ratio=0.2, lost_usd=1.5),
        make.finding("info", title="small messages"),
    ]
    return replace(together(used), utilization=split(used.utilization), findings=found)


@pytest.fixture
def without_pictures(monkeypatch):
    monkeypatch.setattr(markdown, "why_no_charts", lambda: NEEDED)


def text_of(report):
    text = markdown.render(report)["report.md"]
    assert isinstance(text, str)
    return text


def tables_in(text):
    """The cells of all tables, as a reader of GitHub's Markdown parts them."""
    return [
        [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in block.splitlines()
        ]
        for block in text.split("\n\n")
        if block.startswith("| ")
    ]


def test_pictures_are_files_beside_it_that_it_links_to(full):
    files = markdown.render(full)
    links = re.findall(r"!\[.*\]\((.*)\)", text_of(full))
    assert links == [
        "report-waterfall.png",
        "report-steps.png",
        "report-scaling_loss.png",
        "report-collectives.png",
        "report-roofline.png",
    ]
    assert sorted([*links, "report.md"]) == sorted(files)
    for name in links:
        content = files[name]
        assert isinstance(content, bytes)
        assert content.startswith(b"\x89PNG")


@pytest.mark.usefixtures("without_pictures")
def test_without_the_extra_it_says_what_to_install(full):
    assert list(markdown.render(full)) == ["report.md"]
    text = text_of(full)
    assert "](report-" not in text
    assert "traceparse\\[report\\]" in text.splitlines()[-1]


@pytest.mark.usefixtures("without_pictures")
def test_the_verdict_is_first_and_then_what_to_do(full):
    lines = text_of(full).splitlines()
    assert lines[0] == f"# {full.summary.verdict}"
    text = text_of(full)
    assert (
        "* **warning: rank 1 is late** (would win back 20.0% of the device-steps, "
        "\\$1.50 a step): 120% of the peak. The device is another."
    ) in text
    assert "* **info: small messages**: 120% of the peak." in text


@pytest.mark.usefixtures("without_pictures")
def test_the_waterfall_has_the_numbers_of_the_report(full):
    shares = [
        (share["name"].replace("_", " "), format_ratio(share["ratio"]))
        for share in full.utilization["waterfall"]
        if share["ratio"]
    ]
    rows = {tuple(row) for table in tables_in(text_of(full)) for row in table}
    for name, percent in shares:
        assert (name.replace("mfu", "MFU"), percent) in rows


@pytest.mark.usefixtures("without_pictures")
def test_every_row_of_a_table_has_as_many_cells_as_its_head(full, hostile):
    for report in (full, hostile):
        tables = tables_in(text_of(report))
        assert len(tables) >= 3
        for table in tables:
            assert {len(row) for row in table} == {len(table[0])}


@pytest.mark.usefixtures("without_pictures")
def test_many_ranks_are_few_rows_and_it_says_how_many_more(make):
    text = text_of(make.fleet(512))
    assert len(text) < 10_000
    assert "507 more ranks in report.json." in text


@pytest.mark.usefixtures("without_pictures")
def test_an_unknown_peak_says_why(full, make):
    unknown = replace(full, utilization=make.use(waterfall=None))
    assert "No account of the peak: the notes say why." in text_of(unknown)


@pytest.mark.usefixtures("without_pictures")
def test_no_name_is_markup(hostile):
    text = text_of(hostile)
    for line in text.splitlines():
        outside = re.sub(r"`[^`]*`", "", line)
        assert not re.search(r"[<>]", outside)
        assert not re.search(r"(?<!\\)\[(?!.*\]\(report-)", outside)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\udcff]", text)


@pytest.mark.usefixtures("without_pictures")
def test_a_report_of_nothing_is_written_too(make):
    text = text_of(make.report([]))
    assert text.startswith("# ")
    assert "## Ranks" not in text


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("which", ["full", "hostile"])
def test_a_reader_of_markdown_finds_no_markup_of_others(which, request):
    report = request.getfixturevalue(which)
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    kinds = {"inline"}
    for token in reader.parse(text_of(report)):
        kinds |= {token.type, *(part.type for part in token.children or ())}
    assert not {kind for kind in kinds if kind.startswith(("html", "link", "s_", "fence"))}
    assert not kinds & {"image", "em_open", "hr", "blockquote_open", "code_block"}
    assert {"heading_open", "table_open", "bullet_list_open", "strong_open"} <= kinds


@pytest.mark.usefixtures("without_pictures")
def test_a_reader_of_markdown_shows_names_as_they_are(hostile, hostile_text):
    reader = MarkdownIt("commonmark").enable("table")
    shown = "".join(
        part.content
        for token in reader.parse(text_of(hostile))
        for part in token.children or ()
    )
    assert visible(hostile_text, 60) in shown.replace("\N{WORD JOINER}", "")


@pytest.mark.usefixtures("without_pictures")
def test_it_says_how_numbers_are_judged_and_what_took_most(full):
    judged = {"mfu": {"value": 0.4, "band": "good", "limits": {"good": 0.35}, "source": "page"}}
    kernel = {
        "name": "gemm|x",
        "op": None,
        "shapes": None,
        "kind": "compute",
        "is_counted": True,
        "count": 3,
        "time_ns": 5_000_000,
        "ratio": 0.5,
    }
    rest = {**kernel, "name": None}
    text = text_of(replace(full, bands=judged, top_kernels=[kernel, rest]))
    assert "* MFU 40.0% is good, by bands" in text
    (rows,) = (table for table in tables_in(text) if table[0][0] == "kernel")
    assert rows[2:] == [["gemm&#124;x", UNKNOWN, UNKNOWN, "compute", "3", "5.000", "50.0%"]]
