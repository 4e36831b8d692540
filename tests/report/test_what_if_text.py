"""Steps under other conditions, in a terminal and on the page."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.report.parsed import Parsed
from tests.report.test_terminal import lines
from traceparse.report import html
from traceparse.report.terminal_what_if import render_what_if
from traceparse.report.words import DEFINITIONS


def row(change: str, step_ns: int | None, **fields: Any) -> dict[str, Any]:
    won = None if step_ns is None else 1 - step_ns / 2_000_000
    between = None if step_ns is None else [step_ns, step_ns]
    known = {
        "ranks": None,
        "between_ns": between,
        "won_ratio": won,
        "subtracted_step_ns": 1_250_000,
    }
    return {"change": change, "step_ns": step_ns, **known, **fields}


@pytest.fixture
def replayed(report):
    changes = [
        row("straggler_median", 1_500_000, ranks=[3]),
        row("network_2x", 1_900_000),
        row("network_free", None),
        row("launch_gaps_gone", 2_500_000, subtracted_step_ns=None),
        row("another", None, between_ns=[1_000_000, 1_200_000]),
    ]
    field = {"step_ns": 2_000_000, "unexplained_ratio": 0.0, "changes": changes}
    return replace(report, what_if=field)


def test_what_is_known_is_a_row(replayed):
    expected = """\

What if  a mean step, replayed with one thing changed: ms
                               step    wins  by subtraction
as recorded                   2.000
rank 3 as fast as the others  1.500   25.0%           1.250
network twice as fast         1.900    5.0%           1.250
no device waits for its host  2.500  -25.0%               –
another  1.000 to 1.200  40.0% to 50.0%  1.250
"""
    found = lines(render_what_if, replayed, 80)
    squeezed = [" ".join(line.split()) for line in found]
    assert squeezed == [" ".join(line.split()) for line in expected.splitlines()]


@pytest.mark.parametrize(
    "field",
    [
        None,
        {"step_ns": 1, "unexplained_ratio": 0.0, "changes": []},
        {"step_ns": 1, "unexplained_ratio": 0.0, "changes": [row("network_free", None)]},
    ],
)
def test_where_nothing_is_known_nothing_is_said(report, field):
    silent = replace(report, what_if=field)
    assert lines(render_what_if, silent, 80) == []
    page = Parsed(html.render(silent))
    assert "what-if" not in page.attributes("id")
    assert "#what-if" not in page.attributes("href")


def test_the_page_has_a_section_and_a_link_to_it(replayed):
    page = Parsed(html.render(replayed))
    assert "what-if" in page.attributes("id")
    assert "#what-if" in page.attributes("href")
    assert DEFINITIONS["what_if"][1:] in page.text
    table = page.tables["what-if-table"]
    assert [cells[0] for cells in table[1:]] == [
        "as recorded",
        "rank 3 as fast as the others",
        "network twice as fast",
        "no device waits for its host",
        "another",
    ]
    assert table[2][-3:] == ["1.500", "25.0%", "1.250"]
    assert 'width="60.00%"' in html.render(replayed)  # 1.5 of 2.5
