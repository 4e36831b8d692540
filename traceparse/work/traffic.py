"""How many bytes must an operator without formula move at least?

Of operators that touch every element of every input, such as those elementwise, that is the
size of their inputs: the kernel reads each once, or writes it. An operator that looks some of
them up (an embedding, an index) moves less than it is given, so that nothing is said of it; nor
of what is not listed here.
"""

from __future__ import annotations

from math import prod
from typing import Final

from traceparse.work.call import Call, NotKnownError
from traceparse.work.dtypes import element_bytes

__all__ = ["input_bytes"]

_POINTWISE = (
    "abs add addcdiv addcmul bitwise_and bitwise_not bitwise_or ceil clamp clamp_max clamp_min "
    "clone copysign cos div elu eq erf exp expm1 floor fmod ge gelu gelu_backward gt hardswish "
    "hardtanh isfinite isinf isnan le leaky_relu leaky_relu_backward lerp log log1p log2 "
    "logical_and logical_not logical_or lt masked_fill maximum minimum mish mul native_dropout "
    "native_dropout_backward ne neg pow reciprocal relu remainder round rsqrt rsub sigmoid "
    "sigmoid_backward sign silu silu_backward sin softplus sqrt square sub tanh tanh_backward "
    "threshold threshold_backward tril triu trunc where"
)
_REDUCED = (
    "_log_softmax _log_softmax_backward_data _softmax _softmax_backward_data all amax amin any "
    "argmax argmin batch_norm_backward cudnn_batch_norm cudnn_batch_norm_backward cumsum "
    "linalg_vector_norm max mean min miopen_batch_norm miopen_batch_norm_backward mse_loss "
    "native_batch_norm native_batch_norm_backward native_group_norm native_group_norm_backward "
    "native_layer_norm native_layer_norm_backward norm prod std std_mean sum var var_mean"
)
# these write their first input and do not read it; the others may be views without strides
_WRITTEN: Final = frozenset({"aten::fill_", "aten::zero_", "aten::copy_"})
_TOUCHED: Final = frozenset(
    f"aten::{name}{ending}"
    for names in (_POINTWISE, _REDUCED)
    for name in names.split()
    for ending in ("", "_")
)
# what runs on no matrix unit, and is as wide on all machines that torch runs on
_OTHER_WIDTHS: Final = {"bool": 1, "short int": 2, "long": 8, "long int": 8}
_TENSORS = "TensorList"  # of which no types are recorded
_MOST_BYTES = 1 << 62


def input_bytes(call: Call) -> int | None:
    """How many bytes do the inputs of one call have, if it must touch all of them?

    ``None`` where that is unknown: of other operators, and where sizes or types are missing.
    What a view repeats (``expand``) is counted as if it were there; then the result, which is
    not counted, is at least as large.
    """
    try:
        if call.name in _WRITTEN:
            found = _bytes_of(call, 0)
        elif call.name in _TOUCHED:
            found = sum(_bytes_of(call, place) for place in range(call.num_inputs))
        else:
            return None
    except NotKnownError:
        return None
    return found if 0 < found < _MOST_BYTES else None


def _bytes_of(call: Call, place: int) -> int:
    kind = call.type_of(place)
    if kind == _TENSORS:
        raise NotKnownError(f"the types of the tensors of input {place} are not recorded")
    if not call.is_given(place):
        return 0  # a number, or what was left out
    width = _OTHER_WIDTHS.get(kind)
    return prod(call.shape(place)) * (element_bytes(call, place) if width is None else width)
