"""Convolutions by hand, and every multiply and add of small ones counted one by one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.work.calls import T, count, reason

# GIVEN 2 pictures of 4 channels, 9 by 8; 6 filters in 2 groups, 3 by 2 taps
DATA, WEIGHT, BIAS = T([2, 4, 9, 8]), T([6, 2, 3, 2]), T([6])
STRIDE, PADDING, DILATION = [2, 1], [1, 0], [1, 3]
# THEN (9 + 2 - 2 - 1) // 2 + 1 = 5 rows and (8 - 3 - 1) // 1 + 1 = 5 columns come out
FLOP = 2 * 2 * (5 * 5) * (6 * 2 * 3 * 2)
BYTES = 2 * (2 * 4 * 9 * 8 + 6 * 2 * 3 * 2 + 2 * 6 * 5 * 5)

SPELLINGS = {
    "aten::convolution": (BIAS, STRIDE, PADDING, DILATION, False, [0, 0], 2),
    "aten::_convolution": (
        *(BIAS, STRIDE, PADDING, DILATION, False, [0, 0], 2),
        *(False, False, True, True),
    ),
    "aten::convolution_overrideable": (BIAS, STRIDE, PADDING, DILATION, False, [0, 0], 2),
    "aten::cudnn_convolution": (PADDING, STRIDE, DILATION, 2, True, False, True),
    "aten::cudnn_convolution_relu": (BIAS, STRIDE, PADDING, DILATION, 2),
    "aten::miopen_convolution": (BIAS, PADDING, STRIDE, DILATION, 2, True, False),
    "aten::miopen_depthwise_convolution": (BIAS, PADDING, STRIDE, DILATION, 2, True, False),
    "aten::mkldnn_convolution": (BIAS, PADDING, STRIDE, DILATION, 2),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_is_the_same_convolution(name):
    work = count(name, DATA, WEIGHT, *SPELLINGS[name])
    assert (work.flop, work.recompute_flop, work.dtype) == (FLOP, 0, "bf16")
    assert work.lowest_flop == work.highest_flop == FLOP
    assert work.least_bytes == BYTES + (0 if name == "aten::cudnn_convolution" else 12)


def test_what_is_added_is_read():
    result = T([2, 6, 5, 5])
    args = (result, 1, BIAS, STRIDE, PADDING, DILATION, 2)
    work = count("aten::cudnn_convolution_add_relu", DATA, WEIGHT, *args)
    assert (work.flop, work.least_bytes) == (FLOP, BYTES + 2 * 300 + 12)


# GIVEN 2 pictures of 6 channels, 5 by 4; filters to 2 channels in each of 3 groups
UP_DATA, UP_WEIGHT = T([2, 6, 5, 4]), T([6, 2, 3, 2])
# THEN (5 - 1)2 - 2 + 2 + 1 + 1 = 10 rows and (4 - 1)1 + 3 + 1 = 7 columns come out
UP_FLOP = 2 * 2 * (5 * 4) * (6 * 2 * 3 * 2)
UP_BYTES = 2 * (2 * 6 * 5 * 4 + 6 * 2 * 3 * 2 + 2 * 6 * 10 * 7)

UP_SPELLINGS = {
    "aten::convolution": (None, STRIDE, PADDING, DILATION, True, [1, 0], 3),
    "aten::cudnn_convolution_transpose": (
        *(PADDING, [1, 0], STRIDE, DILATION, 3),
        *(False, False, True),
    ),
    "aten::miopen_convolution_transpose": (
        *(None, PADDING, [1, 0], STRIDE, DILATION, 3),
        *(False, False),
    ),
}


@pytest.mark.parametrize("name", UP_SPELLINGS)
def test_every_spelling_is_the_same_transposed_convolution(name):
    work = count(name, UP_DATA, UP_WEIGHT, *UP_SPELLINGS[name])
    assert (work.flop, work.least_bytes) == (UP_FLOP, UP_BYTES)


@pytest.mark.parametrize(
    ("mask", "times", "num_bytes"),
    [
        # dY; then X and dW, or W and dX; then one for each bias
        ([True, True, True], 2, 2 * (300 + 2 * (576 + 72) + 6)),
        ([True, False, False], 1, 2 * (300 + 576 + 72)),
        ([False, True, False], 1, 2 * (300 + 576 + 72)),
        ([False, False, True], 0, 2 * (300 + 6)),
    ],
)
def test_backward_costs_the_forward_for_each_gradient(mask, times, num_bytes):
    args = ([6], STRIDE, PADDING, DILATION, False, [0, 0], 2, mask)
    work = count("aten::convolution_backward", T([2, 6, 5, 5]), DATA, WEIGHT, *args)
    assert (work.flop, work.recompute_flop) == (times * FLOP, 0)
    assert work.least_bytes == num_bytes


def test_backward_of_a_transposed_convolution():
    upstream = T([2, 6, 10, 7])
    args = ([0], STRIDE, PADDING, DILATION, True, [1, 0], 3, [True, True, False])
    work = count("aten::convolution_backward", upstream, UP_DATA, UP_WEIGHT, *args)
    assert work.flop == 2 * UP_FLOP


def test_one_stride_stands_for_all():
    args = (None, [2], [1], [1], False, [0], 1)
    square = (None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1)
    data, weight = T([1, 3, 8, 8]), T([4, 3, 3, 3])
    assert count("aten::convolution", data, weight, *args) == count(
        "aten::convolution", data, weight, *square
    )


GOOD = [DATA, WEIGHT, None, STRIDE, PADDING, DILATION, False, [0, 0], 2]


@pytest.mark.parametrize(
    ("position", "value", "told"),
    [
        (0, T([4, 9]), "input 0 has 2 dimensions instead of 3 or 4 or 5"),
        (0, T([4, 9, 8]), "data and filter differ in dimensions"),
        (0, T([2, 5, 9, 8]), "the filter does not fit the channels"),
        (0, T([2, 4, 9, 2]), "the filter does not fit the padded data"),
        (1, T([5, 2, 3, 2]), "the filter does not divide into the groups"),
        (3, [0, 1], "argument 3 does not fit the shapes"),
        (4, [-1, 1], "argument 4 does not fit the shapes"),
        (5, [1, 1, 1], "argument 5 does not fit the shapes"),
        (6, None, "argument 6 is no flag"),
        (8, 0, "the filter does not divide into the groups"),
        (8, None, "argument 8 is not recorded"),
    ],
)
def test_what_does_not_fit(position, value, told):
    args = [*GOOD[:position], value, *GOOD[position + 1 :]]
    assert reason("aten::convolution", *args) == told


def test_a_padding_larger_than_the_transposed_result():
    args = (None, [1, 1], [9, 0], [1, 1], True, [0, 0], 3)
    told = "the filter does not fit the padded data"
    assert reason("aten::convolution", UP_DATA, UP_WEIGHT, *args) == told


def test_a_transposed_result_may_be_empty():
    # (1 - 1)1 - 2 + 1 + 1 = 0 rows
    args = (None, [1], [1], [1], True, [0], 1)
    work = count("aten::convolution", T([2, 3, 1]), T([3, 5, 2]), *args)
    assert (work.flop, work.least_bytes) == (2 * 2 * 30, 2 * (6 + 30))


@pytest.mark.parametrize(
    ("upstream", "mask", "told"),
    [
        ([2, 6, 5], [True, True, True], "data and gradient differ in dimensions"),
        ([2, 5, 5, 5], [True, True, True], "the gradient does not fit the filter"),
        ([2, 6, 5, 5], [True, True], "argument 10 does not say which gradients"),
        ([2, 6, 5, 5], None, "argument 10 is not recorded as a list"),
    ],
)
def test_what_does_not_fit_in_backward(upstream, mask, told):
    args = ([6], STRIDE, PADDING, DILATION, False, [0, 0], 2, mask)
    assert reason("aten::convolution_backward", T(upstream), DATA, WEIGHT, *args) == told


def _starts(size, taps, stride, padding, dilation):
    """Where a filter can be laid on a padded row, step by step."""
    start, starts = -padding, []
    while start + dilation * (taps - 1) <= size - 1 + padding:
        starts.append(start)
        start += stride
    return starts


@st.composite
def convolutions(draw, *, transposed):
    num = draw(st.integers(1, 3))
    groups, batch = draw(st.integers(1, 2)), draw(st.integers(0, 2))
    ins, outs = (groups * draw(st.integers(1, 2)) for _ in range(2))

    def axes(low, high):
        return draw(st.lists(st.integers(low, high), min_size=num, max_size=num))

    taps, strides, paddings, dilations = axes(1, 3), axes(1, 3), axes(0, 2), axes(1, 2)
    least = [d * (k - 1) + 1 - 2 * p for k, p, d in zip(taps, paddings, dilations, strict=True)]
    if transposed:  # until something comes out
        pads = zip(taps, paddings, dilations, strict=True)
        paddings = [min(p, d * (k - 1) // 2) for k, p, d in pads]
        sizes = axes(1, 3)
    else:
        sizes = [max(1, low) + more for low, more in zip(least, axes(0, 2), strict=True)]
    return batch, groups, ins, outs, sizes, taps, strides, paddings, dilations


@given(convolutions(transposed=False))
def test_every_multiply_and_add_of_a_convolution(drawn):
    batch, groups, ins, outs, sizes, taps, strides, paddings, dilations = drawn
    rows = zip(sizes, taps, strides, paddings, dilations, strict=True)
    points = list(product(*[_starts(*row) for row in rows]))
    filters = list(product(*map(range, taps)))
    multiply_adds = 0
    for _, out, into, _, _ in product(range(batch), range(outs), range(ins), points, filters):
        multiply_adds += out * groups // outs == into * groups // ins  # of the same group
    args = (None, strides, paddings, dilations, False, [0] * len(sizes), groups)
    data, weight = T([batch, ins, *sizes]), T([outs, ins // groups, *taps])
    work = count("aten::convolution", data, weight, *args)
    assert work.flop == 2 * multiply_adds
    results = batch * outs * len(points)
    assert work.least_bytes == tensors(data, weight) + 2 * results
    upstream = T([batch, outs, *(len(_starts(*row)) for row in _rows(drawn))])
    backward = ([0], *args[1:], [True, True, False])
    work = count("aten::convolution_backward", upstream, data, weight, *backward)
    assert work.flop == 4 * multiply_adds


def _rows(drawn):
    return zip(*drawn[4:], strict=True)


def tensors(*given):
    total = 0
    for tensor in given:
        elements = 1
        for size in tensor.sizes:
            elements *= size
        total += 2 * elements
    return total


@given(convolutions(transposed=True))
def test_every_multiply_and_add_of_a_transposed_convolution(drawn):
    batch, groups, ins, outs, sizes, taps, strides, paddings, dilations = drawn
    reached: list[set[int]] = [set() for _ in sizes]
    multiply_adds = 0
    points, filters = list(product(*map(range, sizes))), list(product(*map(range, taps)))
    for _, out, into, point, tap in product(
        range(batch), range(outs), range(ins), points, filters
    ):
        multiply_adds += out * groups // outs == into * groups // ins
        for axis, seen in enumerate(reached):  # where on the uncut result it is added
            seen.add(point[axis] * strides[axis] + tap[axis] * dilations[axis])
    args = (None, strides, paddings, dilations, True, [0] * len(sizes), groups)
    data, weight = T([batch, ins, *sizes]), T([ins, outs // groups, *taps])
    work = count("aten::convolution", data, weight, *args)
    assert work.flop == 2 * multiply_adds
    results = batch * outs
    for axis, seen in enumerate(reached):
        if batch:
            results *= max(seen) + 1 - 2 * paddings[axis]
    assert work.least_bytes == tensors(data, weight) + 2 * results
