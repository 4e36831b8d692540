"""How wide is an element, and whose peak does it run at?

Types are named as the profiler writes them (``c10::BFloat16``), and numbered as in
torch/headeronly/core/ScalarType.h where an argument asks for a type of output.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from traceparse.work.call import Call, NotKnownError

__all__ = [
    "MAYBE_TF32",
    "counted_dtype",
    "element_bytes",
    "is_packed",
    "output_bytes",
    "tensor_bytes",
]

MAYBE_TF32 = "fp32=may be tf32"  # which the record does not say
_PACKED_FP4 = "c10::Float4_e2m1fn_x2"


class _Dtype(NamedTuple):
    num_bytes: int
    peak: str | None = None  # the contract's name; without one, no matrix unit runs it


_DTYPES = {
    "double": _Dtype(8, "fp64"),
    "float": _Dtype(4, "fp32"),
    "c10::BFloat16": _Dtype(2, "bf16"),
    "c10::Half": _Dtype(2, "fp16"),
    "c10::Float8_e4m3fn": _Dtype(1, "fp8"),
    "c10::Float8_e4m3fnuz": _Dtype(1, "fp8"),
    "c10::Float8_e5m2": _Dtype(1, "fp8"),
    "c10::Float8_e5m2fnuz": _Dtype(1, "fp8"),
    _PACKED_FP4: _Dtype(1, "fp4"),  # two elements in each byte
    "signed char": _Dtype(1, "int8"),
    "unsigned char": _Dtype(1, "int8"),
    "c10::Float8_e8m0fnu": _Dtype(1),  # scales only
    "int": _Dtype(4),  # results of int8 only
}

_SCALAR_TYPES = {
    0: "unsigned char",
    1: "signed char",
    3: "int",
    5: "c10::Half",
    6: "float",
    7: "double",
    15: "c10::BFloat16",
    23: "c10::Float8_e5m2",
    24: "c10::Float8_e4m3fn",
    25: "c10::Float8_e5m2fnuz",
    26: "c10::Float8_e4m3fnuz",
}


def counted_dtype(call: Call, *positions: int) -> str:
    """Return the dtype whose peak these inputs run at, in the contract's words.

    Raises
    ------
    NotKnownError
        They differ, or no peak is known for them.
    """
    types = [call.type_of(position) for position in positions]
    peaks = {_DTYPES[name].peak if name in _DTYPES else None for name in types}
    peak = peaks.pop() if len(peaks) == 1 else None
    if peak is None:
        told = ", ".join(sorted({name or "not recorded" for name in types}))
        raise NotKnownError(f"no peak is known for inputs of type {told}")
    return peak


def is_packed(call: Call, position: int) -> bool:
    """Is each recorded element two of fp4?"""
    return call.type_of(position) == _PACKED_FP4


def element_bytes(call: Call, position: int) -> int:
    """Return the bytes of an element of an input.

    Raises
    ------
    NotKnownError
        The type is none that is known.
    """
    name = call.type_of(position)
    if name not in _DTYPES:
        raise NotKnownError(f"input {position} is of type {name or 'not recorded'}")
    return _DTYPES[name].num_bytes


def tensor_bytes(call: Call, *positions: int) -> int:
    """Return the bytes of these inputs together; what was not given has none.

    Raises
    ------
    NotKnownError
        A shape or a type is not recorded.
    """
    return sum(
        prod(call.shape(position)) * element_bytes(call, position)
        for position in positions
        if call.is_given(position)
    )


def output_bytes(call: Call, like: int, out_dtype: int | None = None) -> int:
    """Return the bytes of an element of the output: as asked for, else as an input's.

    Raises
    ------
    NotKnownError
        The type is none that is known.
    """
    asked = None if out_dtype is None else call.whole(out_dtype)
    if asked is None:
        return element_bytes(call, like)
    if asked not in _SCALAR_TYPES:
        raise NotKnownError(f"the output is of type number {asked}")
    return _DTYPES[_SCALAR_TYPES[asked]].num_bytes
