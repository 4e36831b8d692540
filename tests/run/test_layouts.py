"""Which groups and shapes tell that two runs were laid out otherwise, and which do not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.run.test_scaling import BASE, codes, curve_of, report_of
from traceparse.run.layouts import Layout, group_changes, layout_of, new_shapes

MB = 1_000_000


def row(collective, group_size, message_bytes=MB, count=1):
    return {
        "collective": collective,
        "group_size": group_size,
        "message_bytes": message_bytes,
        "count": count,
    }


def product(shapes, flop, op="aten::mm"):
    return {"op": op, "shapes": shapes, "dtype": "bf16", "flop": flop}


def laid_out(devices, *rows, roofline=()):
    return replace(report_of(devices, **BASE), collectives=list(rows), roofline=list(roofline))


def sizes(found):
    return {kind: frozenset([size]) for kind, size in found.items()}


@pytest.mark.parametrize(
    ("before", "after", "growth", "said"),
    [
        # all ranks, and more of them
        ({"allreduce": {8}}, {"allreduce": {16}}, 2, []),
        # tensor parallel stays 2, data parallel 4 becomes 8
        ({"allreduce": {2, 4}}, {"allreduce": {2, 8}}, 2, []),
        # data parallel from 1, so that it had no group
        ({"allreduce": {2}}, {"allreduce": {2, 4}}, 4, []),
        ({"allreduce": {2}}, {"allreduce": {2}, "reduce_scatter": {4}}, 4, []),
        ({"allreduce": {6}}, {"allreduce": {9}}, Fraction(3, 2), []),
        # tensor parallel grew by other than the job, or data parallel took another way
        ({"allreduce": {2}}, {"allreduce": {8}}, 2, ["allreduce among 8 ranks, there among 2"]),
        (
            {"allreduce": {8}},
            {"reduce_scatter": {16}},
            2,
            [
                "allreduce nowhere, there among 8",
                "reduce_scatter among 16 ranks, there nowhere",
            ],
        ),
        # a pipeline that was not
        ({}, {"send/recv": {2}}, 2, ["send/recv among 2 ranks, there nowhere"]),
        ({"send/recv": {2}}, {"send/recv": {2}}, 2, []),
    ],
)
def test_groups_stay_or_grow_with_the_job(before, after, growth, said):
    found = list(group_changes(after, before, Fraction(growth)))
    assert len(found) == len(said)
    assert all(one.startswith(words) for one, words in zip(found, said, strict=True))


def test_what_hardly_moves_a_byte_tells_nothing_and_an_unknown_group_neither():
    rows = row("allreduce", 8, count=99), row("broadcast", 8, MB), row("barrier", 8, 0)
    assert layout_of(laid_out(8, *rows)).groups == sizes({"allreduce": 8, "broadcast": 8})
    small = row("allreduce", 8, count=100), row("broadcast", 8, MB - 1)
    assert layout_of(laid_out(8, *small)).groups == sizes({"allreduce": 8})
    assert layout_of(laid_out(8, row("allreduce", None))).groups is None
    assert layout_of(laid_out(8, row(None, 8))).groups is None
    assert layout_of(laid_out(8, row("send/recv", 2, None))).groups == sizes({"send/recv": 2})


def test_new_shapes_are_told_by_their_share_of_flop():
    base = Layout({}, {("mm", "2x2", "bf16"): 5})
    shapes = {("mm", "2x2", "bf16"): 60, ("mm", "4x4", "bf16"): 30, ("mm", "2x2", "fp8"): 10}
    assert new_shapes(Layout({}, shapes), base) == (0.4, "mm 4x4")
    little = {("mm", "2x2", "bf16"): 99, ("mm", "4x4", "bf16"): 1}
    assert new_shapes(Layout({}, little), base) is None
    assert new_shapes(Layout({}, {}), base) is None
    assert new_shapes(base, Layout({}, {})) is None


def test_another_layout_is_said_of_the_run_that_has_it():
    base, run = laid_out(4, row("allreduce", 4)), laid_out(8, row("allreduce", 2))
    curve = curve_of(base, run, mode="weak")
    assert codes(curve) == ["layout_differs"]
    assert curve.notes[0].message == (
        "n1: is laid out otherwise than n0 (allreduce among 2 ranks, there among 4 ranks), so "
        "the loss is that of another layout too, not of size alone"
    )


def test_one_device_has_no_layout_to_differ_from():
    curve = curve_of(laid_out(1), laid_out(8, row("allreduce", 2)), mode="weak")
    assert codes(curve) == []


def test_other_shapes_are_said_where_each_device_is_to_do_the_same():
    base = laid_out(1, roofline=[product("8x8, 8x8", 100)])
    run = laid_out(2, roofline=[product("8x8, 8x8", 75), product("16x8, 8x4", 25)])
    weak = curve_of(base, run, mode="weak")
    assert codes(weak) == ["shapes_differ"]
    assert weak.notes[0].message == (
        "n1: 25.0% of its FLOP are in shapes that n0 has not (aten::mm 16x8, 8x4 most of all): "
        "another batch, model or layout"
    )
    assert "shapes_differ" not in codes(curve_of(base, run, mode="strong"))
