"""What a notebook shows of a report, a run and its tables."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pyarrow as pa

from tests.report.made_across import split, together
from traceparse.report.notebook import report_html, run_html, tables_html
from traceparse.run import Run


class Seen(HTMLParser):
    """Elements that nest, and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.styles: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.names.append(tag)
        assert {name for name, _ in attrs} <= {"class", "role", "aria-label", "style", "title"}
        self.styles += [value for name, value in attrs if name == "style"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_it_has_the_verdict_the_figures_and_the_findings(used, make):
    report = replace(used, findings=[make.finding("warning", title="rank 1 is late")])
    seen = Seen(report_html(report))
    assert report.summary.verdict in seen.text
    assert "HFU 50.0%, MFU 37.5%" in seen.text
    assert "warning: rank 1 is late: 120% of the peak" in seen.text


def test_the_bar_is_the_waterfall(used):
    use = split(used.utilization)
    seen = Seen(report_html(replace(together(used), utilization=use)))
    widths = [
        float(width) for style in seen.styles for width in re.findall(r"flex:([\d.]+)", style)
    ]
    assert widths == [round(share["ratio"], 6) for share in use["waterfall"] if share["ratio"]]


def test_of_an_unknown_peak_the_bar_is_where_the_time_went(report):
    seen = Seen(report_html(report))
    times = report.summary.times
    assert f"compute {100 * times.compute_ns / times.span_ns:.1f}%" in seen.text


def test_names_stay_names(hostile):
    seen = Seen(report_html(hostile))
    assert "script" not in seen.names
    assert "<script>" in seen.text
    assert "\x1b" not in seen.text


def test_a_run_lists_its_tables(report):
    tables = {"kernels": pa.table({"name": ["a", "b"]}), "<x>": pa.table({"<y>": [1]})}
    seen = Seen(run_html(Run(tables, report)))
    assert report.summary.verdict in seen.text
    assert "kernels2" in seen.text
    assert "<x>1<y>" in seen.text
    assert Seen(tables_html({})).names.count("tr") == 1


def test_a_notebook_needs_no_altair():
    code = "import sys, traceparse.report.notebook; sys.exit('altair' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
