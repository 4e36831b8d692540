from __future__ import annotations

import pytest

from traceparse.report.markdown_text import code, prose, table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, 12.3% of 5 ms", "plain, 12.3% of 5 ms"),
        ("aten::scaled_dot_product", "aten::scaled_dot_product"),
        ("_allgather_base", "\\_allgather_base"),
        ("a*b*", "a\\*b\\*"),
        ("[x](y)", "\\[x\\](y)"),
        ("<b>&amp;", "&#60;b&#62;&#38;amp;"),
        ("a|b", "a&#124;b"),
        ("a\\|b", "a&#92;&#124;b"),
        ("`x`", "&#96;x&#96;"),
        ("$1.50", "\\$1.50"),
        ("# title", "\\# title"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("12) item", "12\\) item"),
        ("a\nb\x1b", "a&#92;nb&#92;x1b"),
    ],
)
def test_a_text_shows_as_it_is(text, shown):
    assert prose(text) == shown


@pytest.mark.parametrize(
    "text", ["@somebody", "a@b.org", "https://x.org", "http://x.org", "www.x.org", "x#12"]
)
def test_nobody_is_mentioned_and_nothing_linked(text):
    assert prose(text) != text
    assert prose(text).replace("\N{WORD JOINER}", "") == text


def test_names_are_code_where_they_can_be():
    assert code("void gemm<64, 128>(float*)") == "`void gemm<64, 128>(float*)`"
    for name in ("a|b", "a`b", "a\\b"):
        assert code(name) == prose(name)
    assert code("\N{EN DASH}") == "\N{EN DASH}"
    assert code("  ") == "  "


def test_a_table_has_its_words_left_and_its_numbers_right():
    assert table(("a", "b"), [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"
