"""The language of ``check``: what it reads, what it refuses and how."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.errors import UsageError
from traceparse.run.check.grammar import parse
from traceparse.run.check.tree import (
    Aggregate,
    AllOf,
    Arithmetic,
    Comparison,
    Constant,
    Field,
    Filter,
    Finding,
    Key,
    Not,
    OneOf,
    Place,
)

FINISH = "finish the condition, such as mfu < 0.35"
THERE_ARE = "there are max, min, mean, sum, count, finding"


def field(*names):
    return Field(tuple(map(Key, names)), ".".join(names))


def test_a_comparison():
    assert parse("mfu < 0.35") == Comparison("<", field("mfu"), Constant(0.35), "mfu", "0.35")


def test_what_binds_closer():
    tree = parse("a < 1 or b < 2 and not c == 3")
    assert isinstance(tree, OneOf)
    first, second = tree.conditions
    assert isinstance(first, Comparison) and isinstance(second, AllOf)
    assert isinstance(second.conditions[1], Not)
    assert parse("(a < 1 or b < 2) and c < 3") != parse("a < 1 or b < 2 and c < 3")
    sum_ = parse("a + b * -c / 2 - 1 > 0")
    assert isinstance(sum_, Comparison)
    negative = Arithmetic("-", Constant(0), field("c"))
    product = Arithmetic("/", Arithmetic("*", field("b"), negative), Constant(2))
    assert sum_.left == Arithmetic("-", Arithmetic("+", field("a"), product), Constant(1))
    assert sum_.left_text == "a + b * -c / 2 - 1"


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("5", 5, None),
        ("0.5", 0.5, None),
        (".5", 0.5, None),
        ("1e3", 1_000, None),
        ("35%", 0.35, "ratio"),
        ("5 ns", 5, "ns"),
        ("1.5us", 1_500, "ns"),
        ("0.25 us", 250, "ns"),
        ("5 ms", 5_000_000, "ns"),
        ("2 s", 2 * 10**9, "ns"),
        ("2 min", 120 * 10**9, "ns"),
        ("3 KB", 3_000, "bytes"),
        ("3 GB/s", 3 * 10**9, "bytes_per_s"),
        ("4 TFLOP", 4 * 10**12, "flop"),
        ("989.4TFLOP/s", 989_400_000_000_000, "flop_per_s"),
    ],
)
def test_numbers_and_their_units(text, value, kind):
    tree = parse(f"a > {text}")
    assert isinstance(tree, Comparison)
    assert (tree.right, tree.right_text) == (Constant(value, kind), text)


def test_a_unit_ends_where_a_slash_divides():
    tree = parse("10 ms/step_ns > 2")
    assert isinstance(tree, Comparison)
    assert tree.left == Arithmetic("/", Constant(10**7, "ns"), field("step_ns"))


def test_ways_into_the_report():
    tree = parse("devices[3].window.idle_ns > clock.offsets_ns['7']")
    assert isinstance(tree, Comparison)
    steps = Key("devices"), Place(3), Key("window"), Key("idle_ns")
    assert tree.left == Field(steps, "devices[3].window.idle_ns")
    assert isinstance(tree.right, Field)
    assert tree.right.steps[-1] == Key("7")


def test_functions_and_conditions_on_entries():
    tree = parse('count( findings[severity == "error"] ) >= 1 and finding("straggler")')
    assert isinstance(tree, AllOf)
    counted, finding = tree.conditions
    assert finding == Finding("straggler")
    assert isinstance(counted, Comparison) and isinstance(counted.left, Aggregate)
    assert counted.left_text == 'count( findings[severity == "error"] )'
    assert isinstance(counted.left.over, Field)
    condition = Comparison("==", field("severity"), Constant("error"), "severity", '"error"')
    assert counted.left.over.steps == (Key("findings"), Filter(condition))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", f"a number or a field is missing; {FINISH} (at its end)"),
        ("mfu <", f"a number or a field is missing; {FINISH} (at its end)"),
        ("0.35", f"is a value and no condition; {FINISH}"),
        ("mfu + 1", f"is a value and no condition; {FINISH}"),
        ("mfu = 1", "write == to compare, = sets nothing here"),
        ("mfu < 1 && a > 2", "write and, or, not"),
        ("!a", "write and, or, not"),
        ("0 < mfu < 1", "compares three things; join two comparisons with and (before '<')"),
        ("mfu < 1 a > 2", "something is left over; join conditions with and, or (before 'a')"),
        ("(mfu < 1", ") is missing behind what a parenthesis opened (at its end)"),
        ("a[0 < 1", "] is missing behind what a bracket opened (at its end)"),
        ("max(a < 1", ") is missing behind what max is of (before '<')"),
        ("a. < 1", "the name of a field is missing behind the dot (before '<')"),
        ("median(a) < 1", f"no function 'median'; {THERE_ARE}"),
        ("finding(x)", "finding takes the code of one, such as 'straggler' (before ')')"),
        ("mfu < 5 km", "something is left over; join conditions with and, or (before 'km')"),
        ("__import__('os').system('true')", f"no function '__import__'; {THERE_ARE}"),
        ("a < 1; b", "';' is no word of an expression"),
        ("a < 'x", '"\'x" is no word of an expression'),
        ("a == '\x1b'", "a text with invisible characters is none to look for"),
        ("a < 1e999", "1e999 is more than anybody has"),
        ("mfu < " + "9" * 40, f"{'9' * 20} is more than anybody has"),
    ],
)
def test_what_is_no_condition_is_refused_in_a_line(text, why):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert str(caught.value) == f"--fail-on {text!r}: {why}"


def test_what_is_endless_is_refused_in_a_line():
    for text, why in (
        ("a" * 1_001, "has more than 1,000 characters"),
        ("1+" * 150 + "1 < 2", "has more than 200 words; give several --fail-on"),
        ("(" * 60 + "a", "is nested more than 24 deep"),
        ("not " * 60 + "a", "is nested more than 24 deep"),
        ("a[" * 60 + "a", "is nested more than 24 deep"),
        ("-" * 60 + "a < 1", "is nested more than 24 deep"),
        ("max(" * 60 + "a", "is nested more than 24 deep"),
    ):
        with pytest.raises(UsageError) as caught:
            parse(text)
        assert str(caught.value).endswith(f": {why}")
        assert len(str(caught.value)) < 240


SIGNS = "()[].,<>+-*/%='\" \n\x00"
SPELLED = ("<=", "==", "and", "or", "not", "null", "true", "max", "count", "finding", "mfu")
WORDS = st.sampled_from([*SIGNS, *SPELLED, "devices", "0", "1.5", "5ms", "35%", "é", "_a"])


@given(st.lists(WORDS, max_size=30).map("".join) | st.text(max_size=60))
def test_any_text_is_a_condition_or_refused(text):
    try:
        parse(text)
    except UsageError as error:
        assert "\n" not in str(error).replace(repr(text), "")
