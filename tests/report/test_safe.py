"""Hostile text becomes harmless text."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.report.safe import encodable, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ncclKernel_AllReduce<half>", "ncclKernel_AllReduce<half>"),
        ("Größe 模型 [red]", "Größe 模型 [red]"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x00\x7f\x9b2J", r"\x00\x7f\x9b2J"),
        ("a\r\n\tb", r"a\r\n\tb"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("zero\u200bwidth\u2028line", r"zero\u200bwidth\u2028line"),
        ("rank\udcff.json", r"rank\udcff.json"),
        ("tag\U000e0041", r"tag\U000e0041"),
    ],
)
def test_what_is_invisible_is_spelled_out(text, shown):
    assert visible(text) == shown


@given(st.text())
def test_nothing_shown_controls_anything_or_fails_to_encode(text):
    shown = visible(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert shown.encode("utf-8").decode("utf-8") == shown


@given(st.text())
def test_showing_twice_changes_nothing(text):
    assert visible(visible(text)) == visible(text)


def test_an_endless_name_loses_its_middle():
    assert visible("a" * 300 + "b" * 301, limit=10) == "aaaaa … bbbbb"
    assert visible("a" * 10, limit=10) == "a" * 10


def test_text_fits_the_encoding_of_the_output():
    assert encodable("1 – 2 … █▓▒░", "utf-8") == "1 – 2 … █▓▒░"
    assert encodable("1 – 2 … █▓▒░", "ascii") == "1 - 2 ... #=~."
    assert encodable("Größe 模", "latin-1") == r"Größe \u6a21"
