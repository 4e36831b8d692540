"""Operators beside each other: what came, went, was given other shapes, or ran other code."""

from __future__ import annotations

import pytest

from tests.run.compare.made import compared, kernel, report_of, steps_of
from traceparse.run.compare.operators import MOST_ROWS

STEPS = steps_of(1_000, 1_000)


def operators(base, new, **fields):
    """Compare kernels of traces of two steps on one rank, and return what is not the same."""
    sides = [report_of(STEPS, top_kernels=rows, **fields) for rows in (base, new)]
    rows = compared(*sides).operators
    assert rows is not None
    return [row for row in rows if row["change"] != "same"]


def test_one_takes_longer():
    other = kernel("aten::add", "8", 100)
    (row,) = operators(
        [kernel("aten::mm", "2x2, 2x2", 400, count=4), other],
        [kernel("aten::mm", "2x2, 2x2", 600, count=6), other],
    )
    assert row == {
        "op": "aten::mm",
        "shapes": "2x2, 2x2",
        "dtype": None,
        "kind": "compute",
        "change": "changed",
        "base": {
            "shapes": "2x2, 2x2",
            "count": 2.0,
            "recompute_count": None,
            "time_ns": 200,
            "kernels": ["kernel of aten::mm"],
        },
        "new": {
            "shapes": "2x2, 2x2",
            "count": 3.0,
            "recompute_count": None,
            "time_ns": 300,
            "kernels": ["kernel of aten::mm"],
        },
        "delta_ns": 100,
        "ratio": 0.1,
    }


def test_a_kernel_that_only_has_another_name_is_one_row():
    (row,) = operators(
        [kernel("aten::mm", "2x2, 2x2", 400, name="cutlass")],
        [
            kernel("aten::mm", "2x2, 2x2", 300, name="nvjet"),
        ],
    )
    assert (row["change"], row["delta_ns"]) == ("renamed", -50)
    assert (row["base"]["kernels"], row["new"]["kernels"]) == (["cutlass"], ["nvjet"])


def test_several_kernels_of_an_operator_are_one_row_the_longest_first():
    (row,) = operators(
        [kernel("aten::mm", "2x2", 100, name="a"), kernel("aten::mm", "2x2", 300, name="b")],
        [kernel("aten::mm", "2x2", 500, name="b")],
    )
    assert row["base"]["kernels"] == ["b", "a"]
    assert (row["base"]["time_ns"], row["new"]["time_ns"], row["change"]) == (
        200,
        250,
        "renamed",
    )


def test_what_came_and_what_went():
    rows = operators([kernel("aten::add", "8", 100)], [kernel("aten::mul", "8", 300)])
    assert [(row["op"], row["change"], row["delta_ns"]) for row in rows] == [
        ("aten::mul", "appeared", 150),
        ("aten::add", "disappeared", -50),
    ]
    assert rows[0]["base"] is None
    assert rows[1]["new"] is None


def test_other_shapes_of_the_same_operator_as_often():
    (row,) = operators(
        [kernel("aten::mm", "2x2, 2x2", 400, count=4)],
        [kernel("aten::mm", "2x2, 2x4", 800, count=4)],
    )
    assert (row["change"], row["shapes"], row["delta_ns"]) == ("reshaped", "2x2, 2x4", 200)
    assert row["base"]["shapes"] == "2x2, 2x2"


@pytest.mark.parametrize(
    "new",
    [
        [kernel("aten::mm", "2x2, 2x4", 800, count=6)],  # not as often
        [
            kernel("aten::mm", "2x4", 4, count=4),
            kernel("aten::mm", "2x8", 4, count=4),
        ],  # which?
        [kernel("aten::mm", "2x4", 4, count=4, kind="copy")],
    ],
)
def test_what_became_of_it_is_not_guessed(new):
    rows = operators([kernel("aten::mm", "2x2, 2x2", 400, count=4)], new)
    assert {row["change"] for row in rows} == {"appeared", "disappeared"}


def test_communication_has_its_own_table():
    assert operators([kernel("c10d::allreduce_", None, 9, kind="comm")], []) == []


def test_kernels_of_no_operator_are_known_by_name():
    rows = operators([kernel(None, None, 100, name="a")], [kernel(None, None, 200, name="a")])
    assert [(row["op"], row["delta_ns"]) for row in rows] == [("a", 50)]


def test_what_may_be_among_the_rest_has_not_disappeared():
    """The rest was at most 100 ns a row: of what took less nobody knows."""
    rest = kernel(None, None, 1_000, name=None, kind=None, count=50)
    base = [kernel("aten::mm", "2x2", 900), kernel("aten::add", "8", 90)]
    new = [kernel("aten::mm", "2x2", 900), kernel("aten::mul", "8", 100), rest]
    assert [(row["op"], row["change"]) for row in operators(base, new)] == [
        ("aten::mul", "appeared")
    ]
    assert {row["op"] for row in operators(base, new[:2])} == {"aten::mul", "aten::add"}


def test_data_types_and_recomputation_are_those_of_the_roofline():
    def roofline(again):
        known = {"op": "aten::mm", "dtype": "bf16", "count": 4, "time_ns": 400, "flop": 8}
        return [{**known, "shapes": "2x2", "recompute_count": again}]

    sides = [
        report_of(STEPS, top_kernels=[kernel("aten::mm", "2x2", 400, count=4)], roofline=rows)
        for rows in (roofline(0), roofline(2))
    ]
    (row,) = compared(*sides).operators or ()
    assert (row["dtype"], row["change"]) == ("bf16", "changed")
    assert [row[side]["recompute_count"] for side in ("base", "new")] == [0, 1]
    # of a report from before there were kernels in it
    sides = [report_of(STEPS, top_kernels=None, roofline=roofline(again)) for again in (0, 2)]
    found = compared(*sides)
    (row,) = found.operators or ()
    assert (row["change"], row["base"]["kernels"], row["base"]["time_ns"]) == (
        "changed",
        [],
        200,
    )


def test_without_rows_nothing_is_known():
    none = report_of(STEPS, top_kernels=None, roofline=None)
    found = compared(none, report_of(STEPS, top_kernels=[], roofline=[]))
    assert found.operators is None
    assert "operators_unknown" in [note.code for note in found.notes]


def test_rows_are_of_whole_traces_whichever_steps_are_compared():
    base = report_of(STEPS, top_kernels=[kernel("aten::mm", "2x2", 400)])
    (device,) = base.devices
    assert device.num_steps == 2
    found = compared(base, base)
    assert (found.operators or ())[0]["base"]["time_ns"] == 200
    assert "rows_of_whole_traces" not in [note.code for note in found.notes]


def test_there_are_no_more_rows_than_anyone_reads():
    rows = [kernel("aten::mm", f"{n}x2", 1_000 + 2 * n) for n in range(MOST_ROWS + 5)]
    found = operators([], rows)
    assert len(found) == MOST_ROWS
    assert found[0]["shapes"] == f"{MOST_ROWS + 4}x2"
