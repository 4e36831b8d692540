"""FLOP and bytes of attention, forward and backward, for each kernel that PyTorch calls.

Forward multiplies queries with keys and scores with values: ``2 * heads * pairs * (Dqk + Dv)``
for each batch. Backward has four products for the gradients and multiplies queries with keys
again, as flash attention keeps no scores (Dao et al. 2022, algorithm 4): that product is
recomputation. Only pairs that are not masked count; shared key heads (GQA) change nothing.

A causal mask that is not square lies top-left or bottom-right, by kernel: flash attention from
2.1 on aligns it bottom-right, under its PyTorch names too (torch/nn/attention/bias.py calls it
for that). The others are top-left: ``set_causal_mask`` in ATen/native/cudnn/MHA.cpp,
``CausalFromTopLeft`` in ATen/native/transformers/cuda/attention.cu; the efficient kernel proper
as its mask type says, :class:`CausalVariant` in torch/nn/attention/bias.py.

Positions are those of the schemas of PyTorch 2.13, and of flash_attn_interface.py of
flash-attn 2.7.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from traceparse.work.call import Call, Work
from traceparse.work.count import need, work_from
from traceparse.work.dtypes import counted_dtype, element_bytes, tensor_bytes
from traceparse.work.kernels import KERNELS, Kernel, Layout, is_varlen, span_of
from traceparse.work.pairs import Bounds, Packed, Span, cross_pairs, pairs, self_pairs

__all__ = ["ATTENTION"]

_SELF = "varlen=self"  # queries and keys of the same lengths
_EQUAL = "varlen=equal lengths"
_MASK = "mask=upper bound"
_BACKWARD = "attn_bwd=2.5x"  # forward again by half, and its two gradients
_LSE_BYTES = 4  # log-sum-exp of each row of scores, in fp32


class _Sizes(NamedTuple):
    """What the shapes say; ``queries`` and ``keys`` are packed totals where lengths vary."""

    batch: int
    heads: int
    queries: int
    keys: int
    depth: int
    value_depth: int


def _sizes(call: Call, kernel: Kernel, *, packed: bool) -> _Sizes:
    """Read the shapes of queries, keys and values, and check that they fit each other."""
    first = kernel.query
    query, key, value = (_in_order(call, first + i, kernel, packed=packed) for i in range(3))
    need(key[:3] == value[:3], "keys and values differ")
    need(query[3] == key[3] and query[0] == key[0], "queries and keys do not fit each other")
    need(key[1] > 0 and query[1] % key[1] == 0, "the heads do not divide among the keys")
    return _Sizes(query[0], query[1], query[2], key[2], query[3], value[3])


def _in_order(call: Call, position: int, kernel: Kernel, *, packed: bool) -> tuple[int, ...]:
    """Return batch, heads, length and depth of a tensor."""
    if packed:
        *ones, total, heads, depth = call.shape(position, 3, 4)
        need(ones in ([], [1]), "packed sequences have a batch")
        return 1, heads, total, depth
    batch, second, third, depth = call.shape(position, 4)
    if kernel.layout is Layout.BHSD:
        return batch, second, third, depth
    return batch, third, second, depth


def _bounds(call: Call, kernel: Kernel, sizes: _Sizes, span: Span, *, packed: bool) -> Bounds:
    """Bound the pairs of one head, over the batch."""
    if not packed:
        count = sizes.batch * pairs(sizes.queries, sizes.keys, span)
        return Bounds(count, count, count)
    queries, keys = _packed(call, kernel, sizes)
    need(queries.num == keys.num, "not as many sequences of queries as of keys")
    need(queries.is_possible and keys.is_possible, "the sequences are longer than the longest")
    if queries == keys:
        return self_pairs(queries, span)
    return cross_pairs(queries, keys, span)


def _packed(call: Call, kernel: Kernel, sizes: _Sizes) -> tuple[Packed, Packed]:
    """Read how many sequences are packed, and the longest of them."""
    assert kernel.cumulative is not None and kernel.longest is not None
    numbers = [call.shape(kernel.cumulative + i, 1)[0] - 1 for i in range(2)]
    longest = [call.number(kernel.longest + i) for i in range(2)]
    need(min(numbers) >= 0 and min(longest) >= 0, "lengths below zero")
    return (
        Packed(numbers[0], sizes.queries, longest[0]),
        Packed(numbers[1], sizes.keys, longest[1]),
    )


def _conventions(
    kernel: Kernel, bounds: Bounds, sizes: _Sizes, span: Span, *, packed: bool
) -> list[str]:
    """Say what was chosen where one could choose."""
    chosen = [_BACKWARD] if kernel.is_backward else []
    if span.right == 0:
        where = "bottom-right" if span.is_bottom_right else "top-left"
        is_square = sizes.queries == sizes.keys and not packed
        chosen.append("causal=half" if is_square else f"causal={where}")
    if packed and bounds.lowest != bounds.highest:
        chosen += [_SELF, _EQUAL] if sizes.queries == sizes.keys else [_EQUAL]
    return chosen


def _attention(call: Call, *, kernel: Kernel) -> Work:
    """Any of the kernels, forward or backward."""
    kernel = kernel.of(call)
    packed = is_varlen(call, kernel)
    sizes = _sizes(call, kernel, packed=packed)
    span = span_of(call, kernel)
    bounds = _bounds(call, kernel, sizes, span, packed=packed)
    chosen = _conventions(kernel, bounds, sizes, span, packed=packed)
    qk, pv = 2 * sizes.heads * sizes.depth, 2 * sizes.heads * sizes.value_depth
    each = 3 * qk + 2 * pv if kernel.is_backward else qk + pv
    lowest = bounds.lowest * each
    if kernel.mask is not None and call.is_given(kernel.mask):
        lowest = 0
        chosen.append(_MASK)
    return work_from(
        bounds.equal * each,
        counted_dtype(call, kernel.query, kernel.query + 1, kernel.query + 2),
        _traffic(call, kernel, sizes),
        *chosen,
        recompute_flop=bounds.equal * qk if kernel.is_backward else 0,
        bounds=(lowest, bounds.highest * each),
    )


def _traffic(call: Call, kernel: Kernel, sizes: _Sizes) -> int:
    """Return the least traffic: each of Q, K, V, O and log-sum-exp once each way.

    A mask is left out, which is often one row seen at the size of all; so is the fp32
    accumulator that flash attention keeps of dQ.
    """
    first = kernel.query
    inputs = tensor_bytes(call, first, first + 1, first + 2)
    rows = sizes.batch * sizes.heads * sizes.queries
    lse = rows * _LSE_BYTES if kernel.has_lse(call) else 0
    output = rows * sizes.value_depth * element_bytes(call, kernel.output_like)
    if kernel.is_backward:
        return 2 * inputs + 2 * output + lse  # dO and O; dQ, dK and dV
    return inputs + output + lse


ATTENTION: dict[str, Callable[[Call], Work]] = {
    name: partial(_attention, kernel=kernel) for name, kernel in KERNELS.items()
}
