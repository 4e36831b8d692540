"""Findings in order, and what they cost."""

from __future__ import annotations

from traceparse.run.findings import finding, in_order, priced


def test_the_most_severe_come_first_then_those_that_lose_most():
    def one(severity, lost_ratio):
        return {"severity": severity, "lost_ratio": lost_ratio}

    first, second = [one("info", 0.5), one("warning", None)], [one("warning", 0.1)]
    assert in_order(first, second, [one("error", None)]) == [
        *(one("error", None), one("warning", 0.1), one("warning", None), one("info", 0.5))
    ]


def test_a_share_is_priced_where_it_and_a_price_are_known():
    known = finding("a", "info", "title", "evidence", "advice", lost_ratio=0.25)
    unknown = finding("b", "error", "title", "evidence", "advice")
    assert priced([known, unknown], None) == [known, unknown]
    assert priced([known, unknown], 8.0) == [{**known, "lost_usd": 2.0}, unknown]
