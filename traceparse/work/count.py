"""A formula's numbers, checked and put together as :class:`Work`."""

from __future__ import annotations

from traceparse.work.call import NotKnownError, Work
from traceparse.work.dtypes import MAYBE_TF32

__all__ = ["need", "work_from"]

_MOST = 2**63 - 1  # what a column of a table holds


def need(fits: bool, reason: str) -> None:  # noqa: FBT001 - a condition, as assert takes one
    """Check something that holds of every call that ran.

    Raises
    ------
    NotKnownError
        It does not.
    """
    if not fits:
        raise NotKnownError(reason)


def work_from(
    flop: int,
    dtype: str,
    least_bytes: int,
    *conventions: str,
    recompute_flop: int = 0,
    bounds: tuple[int, int] | None = None,
) -> Work:
    """Put together what a call works; without ``bounds`` the count is exact.

    Raises
    ------
    NotKnownError
        The shapes are past belief.
    """
    lowest, highest = bounds or (flop, flop)
    need(max(highest, least_bytes) <= _MOST, "the shapes are past belief")
    return Work(
        flop=flop,
        recompute_flop=recompute_flop,
        lowest_flop=lowest,
        highest_flop=highest,
        dtype=dtype,
        least_bytes=least_bytes,
        conventions=(*conventions, MAYBE_TF32) if dtype == "fp32" else conventions,
    )
