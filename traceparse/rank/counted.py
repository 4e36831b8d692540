"""The work that was counted: by data type of a step, by operator of a file."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CopyWork", "DtypeWork", "KernelWork", "OperatorWork", "StepWork"]


@dataclass(frozen=True, slots=True)
class DtypeWork:
    """Matrix operations run in one data type, as its peak has them.

    ``recompute_flop`` is the part of ``flop`` that repeats earlier work; where shapes only
    bound the count, it lies in ``lowest_flop`` to ``highest_flop``. ``maybe_tf32_flop`` is the
    part, of fp32 only, of which no kernel's name tells whether it ran as tf32.
    """

    dtype: str
    flop: int
    recompute_flop: int
    lowest_flop: int
    highest_flop: int
    maybe_tf32_flop: int = 0


@dataclass(frozen=True, slots=True)
class StepWork:
    """What one step on one device worked.

    ``counted_ns`` is how much of its interval kernels of counted operators cover: the union of
    them; ``None`` for a step that has no interval. ``by_dtype`` is the work that it launched.
    """

    counted_ns: int | None
    by_dtype: tuple[DtypeWork, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorWork:
    """All runs of one operator with the same shapes in the same data type, in one file.

    ``time_ns`` sums its kernels, ``flop`` and ``least_bytes`` its runs: ``count`` of them, each
    of which has a kernel. ``is_recompute`` tells runs that repeat a forward.
    """

    op: str
    shapes: str
    dtype: str
    is_recompute: bool
    count: int
    time_ns: int
    flop: int
    recompute_flop: int
    least_bytes: int
    is_maybe_tf32: bool = False


@dataclass(frozen=True, slots=True)
class KernelWork:
    """All device events of one name, launched by one operator with the same shapes, in a file.

    ``time_ns`` sums their durations; where there is no device, those of operators less what
    other operators took inside of them. ``is_counted`` tells kernels of operators whose work is
    counted, which are none of the others. ``least_bytes`` is what the operator moved at least;
    ``None`` where nobody knows, or not which of its kernels did. ``op`` is ``None`` where no
    operator launched them; ``name`` where events are the rest, which are too many to tell
    apart.
    """

    name: str | None
    op: str | None
    shapes: str | None
    kind: str
    is_counted: bool
    count: int
    time_ns: int
    least_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CopyWork:
    """All copies of one direction and kind of memory in a file; memsets are ones too.

    ``direction`` and ``memory`` are ``None`` where their names do not tell, ``num_bytes`` where
    not all of them do. ``exposed_ns`` sums how long each ran beside neither compute nor
    communication; ``None`` where copies are too many to be told apart.
    """

    direction: str | None
    memory: str | None
    count: int
    time_ns: int
    num_bytes: int | None
    exposed_ns: int | None
