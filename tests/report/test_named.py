"""Ranks that a text names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traceparse.report.named import Flag, linked, named_ranks, sentence, stragglers_of

ANCHORS = {"rank-3", "rank-14"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rank 3 waits", '<a href="#rank-3">rank 3</a> waits'),
        (
            "for rank 14, rank 3",
            'for <a href="#rank-14">rank 14</a>, <a href="#rank-3">rank 3</a>',
        ),
        ("rank 4 and ranks 3, crank 3", "rank 4 and ranks 3, crank 3"),
        ("set `x=<1>` now", "set <code>x=&lt;1&gt;</code> now"),
        ("a ` alone", "a ` alone"),
        ("<b>\u202e&rank 3", '&lt;b&gt;\\u202e&amp;<a href="#rank-3">rank 3</a>'),
        ("rank \u0663", "rank \u0663"),
    ],
)
def test_a_rank_that_has_a_section_is_a_link_and_all_else_is_escaped(text, shown):
    assert linked(text, ANCHORS) == shown


def test_an_endless_text_is_shortened():
    assert len(linked("x" * 100_000, ANCHORS)) < 5_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("it is so", "It is so."),
        ("Is it?", "Is it?"),
        ("rank 4", "Rank 4."),
        ("aten::mm is", "aten::mm is."),
        ("10 runs", "10 runs."),
        ("rank 3 waits", '<a href="#rank-3">Rank 3</a> waits.'),
        ("", "."),
    ],
)
def test_a_sentence_has_a_capital_and_an_end(text, shown):
    assert sentence(text, ANCHORS) == shown


def test_stragglers_are_those_of_findings_with_their_cause(make, report):
    findings = [
        make.finding("warning", code="straggler", title="rank 1 is waited for: slow link"),
        make.finding("info", code="straggler", title="rank 0 is waited for: cause unclear"),
        make.finding("error", code="straggler", title="rank 1 is waited for: late host"),
        make.finding("error", code="other", title="rank 7: too fast"),
    ]
    found = replace(report, findings=findings)
    assert stragglers_of(found) == {
        1: Flag("slow link", "warning"),
        0: Flag("cause unclear", "info"),
    }
    assert named_ranks(found) == [1, 0, 7]
    assert stragglers_of(report) == {}
