"""Operator calls as the profiler records them, written as the call was."""

from __future__ import annotations

from typing import NamedTuple

from traceparse.work import Call, Work, work_of

BF16 = "c10::BFloat16"
FP8 = "c10::Float8_e4m3fn"
FP4 = "c10::Float4_e2m1fn_x2"


class T(NamedTuple):
    """A tensor: its sizes and its type."""

    sizes: list[int]
    type: str = BF16


def record(name, *args) -> Call:
    """Record a call: tensors by sizes and type, all else by its text; None was not given."""
    return Call(
        name,
        dims=[_dims(arg) for arg in args],
        types=[_type(arg) for arg in args],
        concrete=["" if _is_tensors(arg) or arg is None else str(arg) for arg in args],
    )


def count(name, *args) -> Work:
    """Count a call that can be counted."""
    work = work_of(record(name, *args))
    assert work is not None
    assert work.unknown is None, work.unknown
    return work


def reason(name, *args) -> str:
    """Say why a call cannot be counted."""
    return reason_of(record(name, *args))


def reason_of(call: Call) -> str:
    work = work_of(call)
    assert work is not None
    assert work == Work(unknown=work.unknown)
    assert work.unknown
    return work.unknown


def _is_tensors(arg) -> bool:
    return isinstance(arg, T) or (isinstance(arg, list) and any(type(x) is T for x in arg))


def _dims(arg):
    if isinstance(arg, T):
        return arg.sizes
    return [each.sizes for each in arg] if _is_tensors(arg) else []


def _type(arg) -> str:
    if isinstance(arg, T):
        return arg.type
    if arg is None:
        return ""
    if isinstance(arg, list):
        return "TensorList" if _is_tensors(arg) else "ScalarList"
    return "Scalar"
