"""Rows of a query in a terminal: aligned, cut, and what was left out said."""

from __future__ import annotations

import io

import pyarrow as pa
from rich.console import Console

from traceparse.report.answer_text import render
from traceparse.units import UNKNOWN


def drawn(table, *, width=None, most=0):
    out = io.StringIO()
    console = Console(file=out, width=width or 80, force_terminal=width is not None)
    render(table, console, most=most)
    text = out.getvalue()
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m"):
        text = text.replace(code, "")
    return [line.rstrip() for line in text.splitlines()]


def test_numbers_stand_right_and_texts_left():
    table = pa.table({"name": ["a", "bcd"], "n": [1, 1_796_028_469_322_576_883]})
    assert drawn(table) == [
        "name                   n",
        "a                      1",
        "bcd  1796028469322576883",
    ]


def test_values_are_readable():
    table = pa.table(
        {
            "x": pa.array([1_234_567_890.4, None, 1 / 3, 1e20]),
            "l": pa.array([[1, 2], None, [], []], pa.list_(pa.int64())),
        }
    )
    assert drawn(table) == [
        "         x l",
        "1234567890 [1, 2]",
        f"         {UNKNOWN} {UNKNOWN}",
        "  0.333333 []",
        "     1e+20 []",
    ]


def test_rows_beyond_the_limit_are_counted():
    table = pa.table({"n": list(range(1_005))})
    assert drawn(table, most=2) == [
        *("n", "0", "1"),
        "… 1,003 more rows: --rows 0 prints all 1,005",
    ]
    assert len(drawn(table, most=0)) == 1_006


def test_a_terminal_gets_the_columns_that_fit_and_the_names_of_others():
    table = pa.table({name: ["x" * 15] for name in ("one", "two", "three", "four")})
    assert drawn(table, width=40) == [
        "one             two",
        "xxxxxxxxxxxxxxx xxxxxxxxxxxxxxx",
        "… 2 more columns (three, four): --format",
        "csv or json",
    ]
    assert drawn(table)[0].split() == ["one", "two", "three", "four"]


def test_one_column_is_there_however_narrow_it_is():
    assert drawn(pa.table({"one": ["x" * 30], "two": ["y"]}), width=10)[0] == "one"


def test_long_cells_are_cut_and_that_is_said():
    lines = drawn(pa.table({"name": ["k" * 61]}))
    assert lines[1] == "k" * 59 + "…"
    assert lines[2] == "… cells are cut after 60 characters: --format csv or json"
    assert drawn(pa.table({"name": ["k" * 60]}))[1:] == ["k" * 60]


def test_nothing_in_a_cell_or_name_is_markup_or_moves_the_cursor():
    lines = drawn(pa.table({"[red]x": ["[bold]y\x1b[2J\n"]}), width=80)
    assert lines == ["[red]x", "[bold]y\\x1b[2J\\n"]


def test_a_plan_is_printed_as_it_is():
    plan = pa.table({"explain_key": ["physical_plan"], "explain_value": ["┌──┐\n│ x│\n"]})
    assert drawn(plan) == ["┌──┐", "│ x│"]


def test_no_rows_are_the_names_of_columns():
    assert drawn(pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})) == [
        "a b"
    ]
