"""What changed between two runs, as a page: the same words, escaped, and nothing that runs."""

from __future__ import annotations

import base64
import hashlib
import re

from tests.report.parsed import Parsed
from tests.report.test_compare_text import OTHER_ROWS, ROWS, job
from tests.run.compare.made import compared, kernel
from traceparse.report import compare_html
from traceparse.report.compare_words import operator_rows, side_lines, term_rows, verdict

SLOWER = compared(job(0, 0, **ROWS), job(10, 10, **OTHER_ROWS))


def test_the_words_are_those_of_the_terminal():
    page = Parsed(compare_html.render(SLOWER))
    text = " ".join(page.text.split())
    assert verdict(SLOWER) in text
    assert all(line in text for line in side_lines(SLOWER))
    assert page.body("terms-table") == [
        [row.name, row.base, row.new, row.delta, row.share, row.is_significant]
        for row in term_rows(SLOWER)
    ]
    ((row,), more) = operator_rows(SLOWER, 9)
    ((*operator, _),) = page.body("operators-table")
    assert (operator, more) == ([row.name, row.delta, row.share], 0)
    ((collective, *_),) = page.body("collectives-table")
    assert collective == "allreduce of 25.0 MB fp32 among ranks 0-1"
    assert page.body("notes-table")[0][0] == "runs_not_repeated"


def test_no_difference_has_no_rows():
    text = " ".join(Parsed(compare_html.render(compared(job(0, 0), job(0, 0)))).text.split())
    assert "No difference: a mean step takes 100.0 ms on both sides, term by term" in text
    assert text.count("None changed by as much as 0.5% of a step") == 2


def test_nothing_runs_and_nothing_is_loaded():
    page = compare_html.render(SLOWER)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.replace("&#39;", "'").startswith(
        f"default-src 'none'; script-src 'none'; style-src 'sha256-{digest}'; "
    )
    elements = Parsed(page).elements
    assert not [tag for tag, _ in elements if tag in {"script", "link", "img", "iframe"}]
    assert not [attrs for _, attrs in elements if any(key.startswith("on") for key in attrs)]


def test_names_are_escaped():
    hostile = "</td><script>alert(1)</script>\x1b\u202e"
    rows = {"top_kernels": [kernel(hostile, hostile, 84_000_000, name=hostile)]}
    page = compare_html.render(compared(job(0, 0, **ROWS), job(10, 10, **rows)))
    assert "<script" not in page
    assert "\x1b" not in page and "\u202e" not in page
    assert hostile[:13] in Parsed(page).text
