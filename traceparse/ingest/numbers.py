"""Decimal text to integers, exactly.

Times are microseconds written in decimal, absolute ones with more digits than a double
holds: digits go to int64 nanoseconds without ever being a float. Whole arrays of texts at a
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceparse.intervals import Int64s

__all__ = ["LIMIT", "MISSING", "UNUSABLE", "Nanoseconds", "nanoseconds", "unsigned"]

MISSING = np.iinfo(np.int64).min
UNUSABLE = MISSING + 1

LIMIT = 1 << 62  # in the year 2116; two such numbers add up without overflow
_ONE_NS = Decimal("0.001")  # in microseconds
_NEWLINE, _DOT, _MINUS, _ZERO = 10, 46, 45, 48
_FAST_DIGITS = 15  # times 1000 this still fits int64 with room to spare,
_BELOW = 4  # as does one more, if it is the first and below this: microseconds since 1970
_UINT64 = 1 << 64


class Nanoseconds(NamedTuple):
    """Times in ns; :data:`MISSING` where there was none, :data:`UNUSABLE` if it is no number.

    ``whole_us`` says that no text had a digit below the microsecond other than ``.0``.
    """

    values: Int64s
    whole_us: bool


def nanoseconds(texts: Sequence[bytes]) -> Nanoseconds:
    """How many nanoseconds is each of these texts of microseconds?

    Texts are JSON values as written. Digits below the nanosecond are rounded half to even;
    what is beyond :data:`LIMIT`, either way, is that.
    """
    data = np.frombuffer(b"\n".join(texts) + b"\n", np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    if ends.size != len(texts):  # a text with a line break in it: an array or object
        return _one_by_one(texts)
    starts = np.append(0, ends[:-1] + 1)
    values, plain, whole_us = _regular(data, starts, ends)
    for index in np.flatnonzero(~plain).tolist():
        values[index] = _exact(bytes(texts[index]))
    odd = values[~plain]
    return Nanoseconds(values, whole_us and bool(np.all((odd % 1000 == 0) | (odd <= UNUSABLE))))


def _one_by_one(texts: Sequence[bytes]) -> Nanoseconds:
    values = np.array([_exact(bytes(text)) for text in texts], np.int64)
    return Nanoseconds(values, bool(np.all((values % 1000 == 0) | (values <= UNUSABLE))))


def _regular(
    data: npt.NDArray[np.uint8], starts: Int64s, ends: Int64s
) -> tuple[Int64s, npt.NDArray[np.bool_], bool]:
    """Read every text of the form ``-?digits[.ddd]``; say which ones had it."""
    digits = data - np.uint8(_ZERO)
    strange = np.append(0, np.cumsum((digits > 9) & (data != _DOT) & (data != _NEWLINE)))
    negative = data[starts] == _MINUS
    dot_at = np.flatnonzero(data == _DOT)
    dots = np.searchsorted(dot_at, ends) - np.searchsorted(dot_at, starts)
    first = starts + negative
    point = ends.copy()
    with_dot = np.flatnonzero(dots == 1)
    point[with_dot] = dot_at[np.searchsorted(dot_at, starts[with_dot])]
    num_whole, num_part = point - first, np.maximum(ends - point - 1, 0)
    plain = (strange[ends] - strange[starts] == negative) & (dots <= 1)
    fits = num_whole <= _FAST_DIGITS + (digits[np.minimum(first, ends - 1)] < _BELOW)
    plain &= (num_whole > 0) & fits & (num_part <= 3)
    values = np.zeros(starts.size, np.int64)
    whole_us = True
    shapes = np.where(plain, num_whole * 4 + num_part, -1)
    for shape in np.unique(shapes[plain]).tolist():
        here = np.flatnonzero(shapes == shape)
        before, after = divmod(shape, 4)
        read = _digits(digits, first[here], before, 10**3)
        if after:
            part = _digits(digits, point[here] + 1, after, 10 ** (3 - after))
            whole_us = whole_us and after == 1 and not part.any()
            read += part
        values[here] = read
    np.negative(values, out=values, where=negative)
    return values, plain, whole_us


def _digits(digits: npt.NDArray[np.uint8], at: Int64s, count: int, unit: int) -> Int64s:
    """Read ``count`` digits at each place, the last one counting ``unit``."""
    weights = unit * 10 ** np.arange(count - 1, -1, -1, dtype=np.int64)
    total = np.zeros(at.size, np.int64)
    for offset, weight in enumerate(weights.tolist()):
        total += digits[at + offset] * np.int64(weight)
    return total


def _exact(text: bytes) -> int:
    """Read any JSON value as microseconds: exponents, many digits, numbers in quotes, null."""
    text = text.strip().strip(b'"').strip()
    if text in (b"", b"null"):
        return MISSING
    try:
        number = Decimal(text.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        return UNUSABLE
    return _in_ns(number) if number.is_finite() else UNUSABLE


def _in_ns(number: Decimal) -> int:
    # the exponent first: 1e999999999 must not become an integer of a billion digits
    if number.adjusted() > 18:
        return -LIMIT if number.is_signed() else LIMIT
    if number.adjusted() < -6:
        return 0
    # rounded once: a product would first be rounded to the 28 digits of the decimal context
    result = int(number.quantize(_ONE_NS, ROUND_HALF_EVEN).scaleb(3))
    return max(-LIMIT, min(result, LIMIT))


def unsigned(values: Sequence[Any]) -> list[int | None]:
    """Read ids as the trace has them: numbers or numeric text up to 2^64-1; else ``None``."""
    return [_unsigned(value) for value in values]


def _unsigned(value: object) -> int | None:
    if isinstance(value, str):
        try:
            value = int(value, 0)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _UINT64:
        return value
    return None
