"""Kernels that torch.compile makes of a template: products with what follows them fused in.

Inductor records each with its arguments: inputs of the product in the place of its operator's,
those of what is fused in, the output last (torch/_inductor/select_algorithm.py; torch's own
test_profiler looks for ``triton_tem_fused_mm_0`` with three shapes). They are storage: a matrix
may lie transposed, or flat. So it is their sizes that tell what was multiplied.

Names of kernels that only finish or reduce (``triton_poi_``, ``triton_red_``, ``triton_per_``)
list the operators that they were fused from too, and count nothing.
"""

from __future__ import annotations

from itertools import pairwise
from math import isqrt, prod

from traceparse.work.call import Call, Work
from traceparse.work.count import need, work_from
from traceparse.work.dtypes import counted_dtype, tensor_bytes

__all__ = ["TEMPLATES", "template"]

TEMPLATES = "triton_tem_fused_"  # what names of template kernels begin with
_OTHERS = ("convolution", "attention", "scaled", "grouped")


def template(call: Call) -> Work:
    """Count the product of a template kernel: 2 MNK, times the batch."""
    other = next((kind for kind in _OTHERS if kind in call.name), None)
    need(other is None, f"kernels of templates of {other} are not counted")
    need("mm" in call.name, "a kernel of a template that is no product")
    given = [place for place in range(call.num_inputs) if call.is_given(place)]
    need(len(given) >= _FEWEST, "it has no two inputs and an output")
    *inputs, output = given
    found = {
        (depth, pair)
        for pair in pairwise(inputs)
        if (depth := _depth(call, *pair, output, is_batched="bmm" in call.name))
    }
    need(len({depth for depth, _ in found}) == 1, "its inputs do not tell which are multiplied")
    depth, pair = min(found)
    return work_from(
        2 * prod(call.shape(output)) * depth,
        counted_dtype(call, *pair),
        tensor_bytes(call, *given),
        "fused=product only",
    )


_FEWEST = 3


def _depth(call: Call, left: int, right: int, output: int, *, is_batched: bool) -> int | None:
    """Return K, if the two can be the factors of the output: MK, KN and MN, each batched."""
    shapes = [call.shape(place) for place in (left, right, output)]
    batch = shapes[0][0] if is_batched else 1
    one, other, out = (prod(shape) for shape in shapes)
    if not (batch and out) or any(size % batch for size in (one, other, out)):
        return None
    square, rest = divmod(one * other, out * batch)
    depth = isqrt(square)
    fits = not rest and depth * depth == square and depth > 0
    # a size of both: it is what they are multiplied along
    is_a_size = all(depth in shape for shape in shapes[:2])
    return depth if fits and is_a_size else None
