from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.work import Call, work_of


def call(name, *shapes, dtype="c10::BFloat16"):
    """Return a call with these tensors, and a number of elements behind them."""
    types = [dtype] * len(shapes) + ["Scalar"]
    return Call(name, [*map(list, shapes), []], types, [*[""] * len(shapes), "64"])


@pytest.mark.parametrize(
    ("name", "shapes", "flop"),
    [
        # as torch's own test has it
        ("triton_tem_fused_mm_0", [(4, 4), (4, 4), (4, 4)], 2 * 4 * 4 * 4),
        ("triton_tem_fused_mm_t_view_14", [(64, 32), (16, 32), (64, 16)], 2 * 64 * 32 * 16),
        # [batch, sequence, hidden] is not flat where it lies
        ("triton_tem_fused_mm_1", [(4, 16, 32), (16, 32), (4, 16, 16)], 2 * 64 * 32 * 16),
        ("triton_tem_fused_addmm_2", [(16,), (64, 32), (32, 16), (64, 16)], 2 * 64 * 32 * 16),
        # what is fused in has an input too
        (
            "triton_tem_fused_add_addmm_gelu_3",
            [(16,), (64, 32), (32, 16), (64, 16), (64, 16)],
            2 * 64 * 32 * 16,
        ),
        ("triton_tem_fused_bmm_4", [(5, 8, 3), (5, 3, 7), (5, 8, 7)], 2 * 5 * 8 * 3 * 7),
    ],
)
def test_products(name, shapes, flop):
    work = work_of(call(name, *shapes))
    assert work is not None
    assert (work.flop, work.dtype, work.unknown) == (flop, "bf16", None)
    assert work.conventions == ("fused=product only",)
    sizes = 0
    for shape in shapes:
        size = 1
        for each in shape:
            size *= each
        sizes += size
    assert work.least_bytes == 2 * sizes


sizes = st.integers(1, 50)


@given(sizes, sizes, sizes, st.booleans())
def test_whatever_lies_transposed(rows, depth, columns, is_transposed):
    other = (columns, depth) if is_transposed else (depth, columns)
    work = work_of(call("triton_tem_fused_mm_0", (rows, depth), other, (rows, columns)))
    assert work is not None
    assert work.flop == 2 * rows * depth * columns


@pytest.mark.parametrize(
    ("name", "shapes", "reason"),
    [
        (
            "triton_tem_fused_convolution_0",
            [(1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 6, 6)],
            "kernels of templates of convolution are not counted",
        ),
        ("triton_tem_fused_0", [(4, 4)] * 3, "a kernel of a template that is no product"),
        ("triton_tem_fused_mm_0", [(4, 4)] * 2, "it has no two inputs and an output"),
        (
            "triton_tem_fused_mm_0",
            [(4, 4), (4, 5), (3, 3)],
            "its inputs do not tell which are multiplied",
        ),
        (
            "triton_tem_fused_add_mm_0",  # along 2, or along 4
            [(4, 2), (2, 4), (4, 8), (4, 4)],
            "its inputs do not tell which are multiplied",
        ),
    ],
)
def test_what_is_not_known(name, shapes, reason):
    work = work_of(call(name, *shapes))
    assert work is not None
    assert work.unknown == reason


@pytest.mark.parametrize("kind", ["poi", "red", "per"])
def test_names_of_kernels_that_finish_count_nothing(kind):
    assert work_of(call(f"triton_{kind}_fused_addmm_gelu_0", (4, 4), (4, 4), (4, 4))) is None
