"""FLOP and bytes of matrix products: plain, batched, scaled and grouped.

Two FLOP for each multiply and add, whatever is added afterwards; positions are those of the
schemas of PyTorch 2.13 (``torch.ops.aten.<name>.default._schema``). The least traffic reads
each operand and writes the result once; of what is added, as much as is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

from traceparse.work.call import Call, Work
from traceparse.work.count import need, work_from
from traceparse.work.dtypes import (
    counted_dtype,
    element_bytes,
    is_packed,
    output_bytes,
    tensor_bytes,
)

__all__ = ["MATMUL"]

_PRODUCT = "the matrices do not fit each other"
_ALL_ROWS = "moe=padded"  # all rows of the buffer, all groups


def _plain(call: Call) -> Work:
    """``mm(self, mat2)``, ``mm.dtype`` with ``out_dtype`` third: 2MNK."""
    m, k = call.shape(0, 2)
    depth, n = call.shape(1, 2)
    need(k == depth, _PRODUCT)
    traffic = tensor_bytes(call, 0, 1) + m * n * output_bytes(call, 0, 2)
    return work_from(2 * m * n * k, counted_dtype(call, 0, 1), traffic)


def _integer(call: Call) -> Work:
    """``_int_mm(self, mat2)``: int8 in, int32 out."""
    m, k = call.shape(0, 2)
    depth, n = call.shape(1, 2)
    need(k == depth, _PRODUCT)
    return work_from(
        2 * m * n * k, counted_dtype(call, 0, 1), tensor_bytes(call, 0, 1) + 4 * m * n
    )


def _is_typed(call: Call) -> bool:
    """Is it the ``dtype`` overload, with ``out_dtype`` before ``beta`` and ``alpha``?

    A sixth input may also be the tensor of an ``out`` overload, whose text is empty.
    """
    return call.is_recorded(5)


def _added(call: Call, *, is_typed: bool | None = None) -> Work:
    """``addmm(self, mat1, mat2, beta, alpha)``: ``self`` is read unless ``beta`` is 0."""
    is_typed = _is_typed(call) if is_typed is None else is_typed
    m, k = call.shape(1, 2)
    depth, n = call.shape(2, 2)
    need(k == depth, _PRODUCT)
    traffic = tensor_bytes(call, 1, 2) + m * n * output_bytes(call, 1, 3 if is_typed else None)
    if call.is_nonzero(4 if is_typed else 3):
        traffic += tensor_bytes(call, 0)
    return work_from(2 * m * n * k, counted_dtype(call, 1, 2), traffic)


def _batched(call: Call) -> Work:
    """``bmm(self, mat2)``, ``bmm.dtype`` with ``out_dtype`` third: 2BMNK."""
    batch, m, k = call.shape(0, 3)
    batches, depth, n = call.shape(1, 3)
    need((batch, k) == (batches, depth), _PRODUCT)
    traffic = tensor_bytes(call, 0, 1) + batch * m * n * output_bytes(call, 0, 2)
    return work_from(2 * batch * m * n * k, counted_dtype(call, 0, 1), traffic)


def _batched_added(call: Call, *, is_reduced: bool) -> Work:
    """``baddbmm(self, batch1, batch2, beta, alpha)``; ``addbmm`` adds up the batch as well."""
    is_typed = _is_typed(call)
    batch, m, k = call.shape(1, 3)
    batches, depth, n = call.shape(2, 3)
    need((batch, k) == (batches, depth), _PRODUCT)
    num_results = m * n if is_reduced else batch * m * n
    traffic = tensor_bytes(call, 1, 2)
    traffic += num_results * output_bytes(call, 1, 3 if is_typed else None)
    if call.is_nonzero(4 if is_typed else 3):
        traffic += tensor_bytes(call, 0)
    return work_from(2 * batch * m * n * k, counted_dtype(call, 1, 2), traffic)


def _depth(call: Call, recorded: int) -> int:
    """Return the true K: packed fp4 records half of it."""
    return 2 * recorded if is_packed(call, 0) else recorded


def _scale_bytes(call: Call, *positions: int) -> int:
    """Return the bytes of scales; of a list of tensors no type is recorded: 1 each at least."""
    traffic = 0
    for position in filter(call.is_given, positions):
        if call.type_of(position) == "TensorList":
            traffic += sum(map(prod, call.shapes(position)))
        else:
            traffic += tensor_bytes(call, position)
    return traffic


def _scaled(call: Call, *, scales: tuple[int, int], bias: int, out_dtype: int) -> Work:
    """``_scaled_mm`` and ``_scaled_mm_v2``: 2MNK at the peak of the operands' dtype."""
    m, k = call.shape(0, 2)
    depth, n = call.shape(1, 2)
    need(k == depth, _PRODUCT)
    traffic = tensor_bytes(call, 0, 1, bias) + _scale_bytes(call, *scales)
    traffic += m * n * output_bytes(call, 0, out_dtype)
    return work_from(2 * m * n * _depth(call, k), counted_dtype(call, 0, 1), traffic)


def _grouped(
    call: Call, *, scales: tuple[int, ...] = (), offsets: int, bias: int, out_dtype: int
) -> Work:
    """``_grouped_mm`` and its scaled forms: each row is multiplied by its group's matrix.

    What each group got is not recorded. The sum over groups is exact without it, as far as
    the groups fill the buffer; so all of its rows count, padding included.
    """
    multiply_adds, operands, results = _grouped_counts(call, offsets)
    traffic = operands + results * output_bytes(call, 0, out_dtype)
    traffic += tensor_bytes(call, bias) + _scale_bytes(call, *scales)
    return work_from(2 * multiply_adds, counted_dtype(call, 0, 1), traffic, _ALL_ROWS)


def _grouped_counts(call: Call, offsets: int) -> tuple[int, int, int]:
    """Return multiply-adds, bytes of operands that are touched, and elements of the result."""
    left, right = call.shape(0, 2, 3), call.shape(1, 2, 3)
    *left_groups, m, k = left
    *right_groups, depth, n = right
    need(k == depth, _PRODUCT)
    k = _depth(call, k)
    left_bytes, right_bytes = tensor_bytes(call, 0), tensor_bytes(call, 1)
    if left_groups and right_groups:  # a group has a matrix on both sides
        need(left_groups == right_groups, _PRODUCT)
        return left[0] * m * k * n, left_bytes + right_bytes, left[0] * m * n
    if right_groups:  # the rows are dealt out; a group without rows is not touched
        touched = min(m, right[0]) * depth * n * element_bytes(call, 1)
        return m * k * n, left_bytes + touched, m * n
    if left_groups:  # the columns are
        touched = min(n, left[0]) * m * depth * element_bytes(call, 0)
        return m * k * n, touched + right_bytes, m * n
    (num_groups,) = call.shape(offsets, 1)  # what is summed over is: one result a group
    return m * k * n, left_bytes + right_bytes, num_groups * m * n


MATMUL: dict[str, Callable[[Call], Work]] = {
    "aten::mm": _plain,
    "aten::_int_mm": _integer,
    "aten::addmm": _added,
    "aten::_addmm_activation": partial(_added, is_typed=False),  # its sixth is use_gelu
    "aten::bmm": _batched,
    "aten::baddbmm": partial(_batched_added, is_reduced=False),
    "aten::addbmm": partial(_batched_added, is_reduced=True),
    "aten::_scaled_mm": partial(_scaled, scales=(2, 3), bias=4, out_dtype=6),
    "aten::_scaled_mm_v2": partial(_scaled, scales=(2, 5), bias=8, out_dtype=9),
    "aten::_grouped_mm": partial(_grouped, offsets=2, bias=3, out_dtype=4),
    "aten::_scaled_grouped_mm": partial(
        _grouped, scales=(2, 3), offsets=4, bias=5, out_dtype=7
    ),
    "aten::_scaled_grouped_mm_v2": partial(
        _grouped, scales=(2, 5), offsets=8, bias=9, out_dtype=10
    ),
}
