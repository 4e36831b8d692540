"""Least bytes of operators without formula, worked out by hand."""

from __future__ import annotations

import pytest

from traceparse.work import Call, input_bytes


@pytest.mark.parametrize(
    ("name", "dims", "types", "expected"),
    [
        ("aten::add", [[8, 4], [8, 4], []], ["float", "float", "Scalar"], 256),
        ("aten::add_", [[8, 4], [4]], ["c10::Half", "c10::Half"], 72),
        ("aten::mul", [[8], []], ["float", "double"], 32),  # by a number of no dimensions
        ("aten::where", [[8], [8], [8]], ["bool", "long int", "long"], 136),
        ("aten::sum", [[32, 10], [], [], []], ["float", "GenericList", "Bool", ""], 1280),
        ("aten::native_layer_norm", [[2, 6], [], [6], [6], []], ["double"] * 5, 192),
        # what is written, and not what is read of: that may be one number, repeated
        ("aten::copy_", [[8, 8], [8, 8], []], ["float", "c10::Half", "Scalar"], 256),
        ("aten::fill_", [[5], []], ["signed char", "Scalar"], 5),
    ],
)
def test_what_touches_all_of_its_inputs_moves_them(name, dims, types, expected):
    assert input_bytes(Call(name, dims, types)) == expected


@pytest.mark.parametrize(
    ("name", "dims", "types"),
    [
        ("aten::embedding", [[50_000, 64], [8]], ["float", "long int"]),  # looks up a few
        ("aten::index", [[50_000, 64], []], ["float", "TensorList"]),
        ("mine::add", [[8]], ["float"]),
        ("aten::add", [[8], [8]], ["float"]),  # no type of the second
        ("aten::add", [[8]], ["quint8"]),
        ("aten::where", [[[8], [8]]], ["TensorList"]),
        ("aten::add", [], []),
        ("aten::add", [[0]], ["float"]),  # moves nothing, so that nothing is bounded
        ("aten::add", [[2**40, 2**40]], ["float"]),
        ("aten::add", [[-8]], ["float"]),
        ("aten::add", None, None),
    ],
)
def test_of_all_else_nothing_is_said(name, dims, types):
    assert input_bytes(Call(name, dims, types)) is None
