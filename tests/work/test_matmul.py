"""Matrix products by hand: every figure below is worked out in the test's own line."""

from __future__ import annotations

import pytest

from tests.work.calls import BF16, FP4, FP8, T, count, reason

M, K, N = 3, 5, 7
FLOP = 2 * 3 * 5 * 7


def test_mm():
    work = count("aten::mm", T([M, K]), T([K, N]))
    assert (work.flop, work.lowest_flop, work.highest_flop) == (FLOP, FLOP, FLOP)
    assert (work.recompute_flop, work.dtype, work.conventions) == (0, "bf16", ())
    assert work.least_bytes == 2 * (3 * 5 + 5 * 7 + 3 * 7)


def test_mm_with_a_wider_result():
    assert count("aten::mm", T([M, K]), T([K, N]), 6).least_bytes == 2 * (15 + 35) + 4 * 21


@pytest.mark.parametrize(
    ("number", "width"),
    [*((n, 1) for n in (0, 1, 23, 24, 25, 26)), (5, 2), (15, 2), (3, 4), (6, 4), (7, 8)],
)
def test_types_of_results(number, width):
    work = count("aten::mm", T([M, K]), T([K, N]), number)
    assert work.least_bytes == 2 * (15 + 35) + width * 21


@pytest.mark.parametrize(
    ("kind", "dtype", "width"),
    [
        ("double", "fp64", 8),
        ("float", "fp32", 4),
        (BF16, "bf16", 2),
        ("c10::Half", "fp16", 2),
        (FP8, "fp8", 1),
        ("c10::Float8_e4m3fnuz", "fp8", 1),
        ("c10::Float8_e5m2", "fp8", 1),
        ("c10::Float8_e5m2fnuz", "fp8", 1),
        ("signed char", "int8", 1),
        ("unsigned char", "int8", 1),
    ],
)
def test_dtypes(kind, dtype, width):
    work = count("aten::mm", T([M, K], kind), T([K, N], kind))
    assert (work.dtype, work.least_bytes) == (dtype, width * 71)
    assert work.conventions == (("fp32=may be tf32",) if dtype == "fp32" else ())


def test_two_kinds_of_fp8_are_one_peak():
    work = count("aten::mm", T([M, K], FP8), T([K, N], "c10::Float8_e5m2"))
    assert work.dtype == "fp8"


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        ("long int", "long int", "long int"),
        ("c10::complex<float>", "c10::complex<float>", "c10::complex<float>"),
        (BF16, "float", "c10::BFloat16, float"),
    ],
)
def test_types_without_one_peak(left, right, told):
    text = reason("aten::mm", T([M, K], left), T([K, N], right))
    assert told in text


def test_types_not_recorded():
    text = reason("aten::mm", T([M, K], ""), T([K, N], ""))
    assert text == "input 0 is of type not recorded"


def test_matrices_that_do_not_fit():
    told = "the matrices do not fit each other"
    assert reason("aten::mm", T([2, 3]), T([4, 5])) == told
    assert reason("aten::_int_mm", T([2, 3]), T([4, 5])) == told
    assert reason("aten::addmm", T([5]), T([2, 3]), T([4, 5]), 1, 1) == told
    assert reason("aten::bmm", T([2, 2, 3]), T([3, 3, 5])) == told
    assert reason("aten::baddbmm", T([5]), T([2, 2, 3]), T([2, 4, 5]), 1, 1) == told
    assert reason("aten::_scaled_mm", T([2, 3]), T([4, 5])) == told
    assert reason("aten::_grouped_mm", T([2, 3]), T([2, 4, 5])) == told
    assert reason("aten::_grouped_mm", T([2, 2, 3]), T([3, 3, 5])) == told


def test_shapes_past_belief():
    told = "the shapes are past belief"
    assert reason("aten::mm", T([2**40, 2]), T([2, 2**40])) == told
    most = 2**31 - 1  # the last that a column of int64 holds is 2**63 - 1
    column = T([2**31, 1], FP8)
    assert count("aten::mm", T([most, 2**31], FP8), column).flop == 2**63 - 2**32
    assert reason("aten::mm", T([2**31, 2**31], FP8), column) == told


def test_int_mm():
    work = count("aten::_int_mm", T([M, K], "signed char"), T([K, N], "signed char"))
    assert (work.flop, work.dtype) == (FLOP, "int8")
    assert work.least_bytes == 15 + 35 + 4 * 21


@pytest.mark.parametrize("name", ["aten::addmm", "aten::_addmm_activation"])
@pytest.mark.parametrize(("beta", "bias_bytes"), [("1", 14), ("0.", 0), ("", 0), ("0.5", 14)])
def test_addmm_reads_what_it_adds_unless_beta_is_zero(name, beta, bias_bytes):
    rest = (beta, 1, "False") if name.endswith("activation") else (beta, 1)
    work = count(name, T([N]), T([M, K]), T([K, N]), *rest)
    assert work.flop == FLOP
    assert work.least_bytes == 2 * 71 + bias_bytes


def test_addmm_with_a_wider_result_has_beta_one_further():
    work = count("aten::addmm", T([M, N], "float"), T([M, K]), T([K, N]), 6, "0", "1")
    assert work.least_bytes == 2 * (15 + 35) + 4 * 21
    work = count("aten::addmm", T([M, N], "float"), T([M, K]), T([K, N]), 6, "1", "0")
    assert work.least_bytes == 2 * (15 + 35) + 4 * 21 * 2


@pytest.mark.parametrize("beta", ["1", "0.5", "0"])
def test_out_overloads_have_beta_in_its_place(beta):
    args = (T([M, K]), T([K, N]), beta, "0.5")
    plain, out = (count("aten::addmm", T([N]), *args, *more) for more in ((), (T([M, N]),)))
    assert plain == out
    assert plain.least_bytes == 2 * 71 + (0 if beta == "0" else 14)
    assert count("aten::mm", *args[:2], T([M, N])) == count("aten::mm", *args[:2])
    batched = (T([4, M, N]), T([4, M, K]), T([4, K, N]), beta, "0.5")
    for name in ("aten::baddbmm", "aten::addbmm"):
        assert count(name, *batched, T([4, M, N])) == count(name, *batched)


def test_bmm():
    work = count("aten::bmm", T([4, M, K]), T([4, K, N]))
    assert (work.flop, work.least_bytes) == (4 * FLOP, 4 * 2 * 71)
    wide = count("aten::bmm", T([4, M, K]), T([4, K, N]), 6)
    assert wide.least_bytes == 4 * (2 * 50 + 4 * 21)


def test_baddbmm():
    added, left, right = T([4, M, N]), T([4, M, K]), T([4, K, N])
    assert count("aten::baddbmm", added, left, right, 1, 1).least_bytes == 4 * 2 * (71 + 21)
    work = count("aten::baddbmm", added, left, right, 0, 0.5)
    assert (work.flop, work.least_bytes) == (4 * FLOP, 4 * 2 * 71)
    wide = count("aten::baddbmm", added, left, right, 6, 0, 1)
    assert wide.least_bytes == 4 * (2 * 50 + 4 * 21)


def test_addbmm_writes_one_matrix():
    work = count("aten::addbmm", T([M, N]), T([4, M, K]), T([4, K, N]), 0, 1)
    assert (work.flop, work.least_bytes) == (4 * FLOP, 2 * (4 * 50 + 21))


def test_scaled_mm():
    scale, bias = T([1], "float"), T([N])
    args = (T([M, K], FP8), T([K, N], FP8), scale, scale)
    work = count("aten::_scaled_mm", *args, bias, None, 15, "True")
    assert (work.flop, work.dtype) == (FLOP, "fp8")
    assert work.least_bytes == 15 + 35 + 2 * 4 + 2 * 7 + 2 * 21
    narrow = count("aten::_scaled_mm", *args, None, None, None, "False")
    assert narrow.least_bytes == 15 + 35 + 2 * 4 + 21


def test_scales_of_a_byte():
    scales = [T([64], "c10::Float8_e8m0fnu"), T([32], "c10::Float8_e8m0fnu")]
    left, right = T([16, 32], FP8), T([32, 8], FP8)
    work = count("aten::_scaled_mm", left, right, *scales, None, None, 15, "False")
    assert work.least_bytes == 16 * 32 + 32 * 8 + 64 + 32 + 2 * 16 * 8


def test_scaled_mm_of_packed_fp4_has_twice_the_depth_that_is_recorded():
    # GIVEN K = 64, recorded as 32 pairs, and a scale of a byte for every 16 elements
    left, right = T([16, 32], FP4), T([32, 8], FP4)
    scales = T([16 * 4], FP8), T([8 * 4], FP8)
    work = count("aten::_scaled_mm", left, right, *scales, None, None, 15, "False")
    assert (work.flop, work.dtype) == (2 * 16 * 64 * 8, "fp4")
    assert work.least_bytes == 16 * 32 + 32 * 8 + 64 + 32 + 2 * 16 * 8


def test_scaled_mm_v2():
    scales = [T([M, 1], "float")], [T([1, N], "float")]
    args = (T([M, K], FP8), T([K, N], FP8), scales[0], [1], [0], scales[1], [1], [0])
    work = count("aten::_scaled_mm_v2", *args, T([N]), 15, [], "False")
    assert (work.flop, work.dtype) == (FLOP, "fp8")
    # the types of tensors in a list are not recorded: a byte each at least
    assert work.least_bytes == 15 + 35 + (3 + 7) + 2 * 7 + 2 * 21


def test_scaled_mm_v2_of_one_scale_for_all():
    one, none = [T([], "float")], list[int]()
    args = (T([M, K], FP8), T([K, N], FP8), one, [0], none, one, [0], none)
    work = count("aten::_scaled_mm_v2", *args, None, 15, none, "False")
    assert work.least_bytes == 15 + 35 + (1 + 1) + 2 * 21


def test_scaled_mm_v2_of_packed_fp4():
    scales = [T([64], FP8), T([1], "float")]
    args = (T([16, 32], FP4), T([32, 8], FP4), scales, [2, 0], [1, 0], scales, [2], [1])
    assert count("aten::_scaled_mm_v2", *args, None, 15, [], "False").flop == 2 * 16 * 64 * 8


def test_an_output_of_a_type_that_is_none():
    args = (T([M, K], FP8), T([K, N], FP8), T([1], "float"), T([1], "float"))
    text = reason("aten::_scaled_mm", *args, None, None, 99, "True")
    assert text == "the output is of type number 99"


GROUPS = T([4], "int")


def test_grouped_mm_deals_rows_out():
    # GIVEN 10 rows for 4 groups: which group got how many does not matter
    work = count("aten::_grouped_mm", T([10, K]), T([4, K, N]), GROUPS, None, None)
    assert work.flop == 2 * 10 * 5 * 7
    assert work.least_bytes == 2 * (10 * 5 + 4 * 5 * 7 + 10 * 7)
    assert work.conventions == ("moe=padded",)


def test_groups_without_a_row_are_not_touched():
    work = count("aten::_grouped_mm", T([3, K]), T([4, K, N]), GROUPS, None, None)
    assert work.least_bytes == 2 * (3 * 5 + 3 * 5 * 7 + 3 * 7)
    work = count("aten::_grouped_mm", T([4, M, K]), T([K, 2]), GROUPS, None, None)
    assert work.least_bytes == 2 * (2 * 3 * 5 + 5 * 2 + 3 * 2)


def test_grouped_mm_deals_columns_out():
    work = count("aten::_grouped_mm", T([4, M, K]), T([K, 10]), GROUPS, None, None)
    assert work.flop == 2 * 3 * 5 * 10
    assert work.least_bytes == 2 * (4 * 3 * 5 + 5 * 10 + 3 * 10)


def test_grouped_mm_deals_out_what_is_summed():
    # the gradient of the filters: [M, T] times [T, N], a result for each of 4 groups
    work = count("aten::_grouped_mm", T([M, 10]), T([10, N]), GROUPS, None, None)
    assert work.flop == 2 * 3 * 10 * 7
    assert work.least_bytes == 2 * (3 * 10 + 10 * 7 + 4 * 3 * 7)


def test_grouped_mm_of_a_matrix_each():
    work = count("aten::_grouped_mm", T([4, M, K]), T([4, K, N]), None, None, None)
    assert (work.flop, work.least_bytes) == (4 * FLOP, 4 * 2 * 71)


def test_grouped_mm_reads_its_bias():
    work = count("aten::_grouped_mm", T([4, M, K]), T([4, K, N]), None, T([4, N]), None)
    assert work.least_bytes == 4 * 2 * 71 + 2 * 28


def test_what_is_summed_needs_the_number_of_groups():
    text = reason("aten::_grouped_mm", T([M, 10]), T([10, N]), None, None, None)
    assert text == "input 2 has no shape"


def test_scaled_grouped_mm():
    left, right = T([10, K], FP8), T([4, K, N], FP8)
    scales = T([10], "float"), T([4, N], "float")
    args = (left, right, *scales, GROUPS, None, None, 15, "False")
    work = count("aten::_scaled_grouped_mm", *args)
    assert (work.flop, work.dtype) == (2 * 10 * 5 * 7, "fp8")
    assert work.least_bytes == 50 + 140 + 4 * (10 + 28) + 2 * 70


def test_scaled_grouped_mm_v2_of_packed_fp4():
    left, right = T([10, 32], FP4), T([4, 32, 8], FP4)
    scales = [T([10, 4], FP8)], [T([4, 32], FP8)]
    args = (left, right, scales[0], [2], [1], scales[1], [2], [1])
    work = count("aten::_scaled_grouped_mm_v2", *args, GROUPS, None, 15, [], "False")
    assert (work.flop, work.dtype) == (2 * 10 * 64 * 8, "fp4")
    assert work.least_bytes == 10 * 32 + 4 * 32 * 8 + (40 + 128) + 2 * 80


def test_scaled_grouped_mm_v2_needs_offsets_at_eight():
    left, right, scales = T([M, 32], FP4), T([32, 8], FP4), [T([3, 4], FP8)]
    args = (left, right, scales, [2], [1], scales, [2], [1])
    work = count("aten::_scaled_grouped_mm_v2", *args, GROUPS, None, 15, [], "False")
    assert work.flop == 2 * 3 * 64 * 8
    assert work.least_bytes == 3 * 32 + 32 * 8 + 24 + 2 * 4 * 3 * 8
