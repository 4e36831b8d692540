"""libFuzzer as the one who chooses what to try: it sees which code a file reaches."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np

from tools.fuzz_mutate import MOST_BYTES, Mutator, text_of

__all__ = ["has_atheris", "instrumented", "run"]

T = TypeVar("T")

_COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)


def has_atheris() -> bool:
    """Say whether this Python has atheris, without importing it."""
    return find_spec("atheris") is not None


def instrumented(load: Callable[[], T]) -> T:
    """Import what is tested with counters in its code; ``load`` does the importing."""
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=["traceparse"]):
        return load()


def _mend_comparisons(atheris: Any) -> None:  # noqa: ANN401 - an optional module
    """Compare arrays without atheris: version 3.0 never frees the array that comes out.

    ``Fuzz()`` puts its own comparison in, so this has to come after it has begun.
    """
    shift = import_module("atheris.version_dependent").CMP_OP_SHIFT_AMOUNT
    known = atheris._trace_cmp

    def compare(left: Any, right: Any, operation: int, *rest: object) -> object:  # noqa: ANN401
        if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
            return _COMPARISONS[operation >> shift](left, right)
        return known(left, right, operation, *rest)

    atheris._trace_cmp = compare


def run(
    try_one: Callable[[bytes], object],
    seeds: Sequence[bytes],
    *,
    seed: int,
    folder: Path,
    corpus: str | None,
) -> None:
    """Call ``try_one`` with one file after another; never returns.

    ``corpus`` is a folder where libFuzzer finds and keeps what reaches new code; the seeds go
    to ``folder``.
    """
    atheris = import_module("atheris")
    mutator = Mutator(seeds)
    begin = cache(lambda: _mend_comparisons(atheris))

    def one(data: bytes) -> None:
        begin()
        try_one(data)

    def mutate(data: bytes, most: int, chance: int) -> bytes:
        rng = Random(chance)  # noqa: S311 - libFuzzer's own chance
        if rng.random() < 0.2:
            changed: bytes = atheris.Mutate(text_of(data)[0], most)
            return changed
        return mutator.mutate(data, rng)[:most]

    for index, data in enumerate(seeds):
        (folder / f"{index:05}").write_bytes(data)
    atheris.Setup(
        [
            *("fuzz", f"-seed={seed % (1 << 31) + 1}", f"-max_len={2 * MOST_BYTES}"),
            # we watch time and memory ourselves
            *("-timeout=300", "-rss_limit_mb=0", "-len_control=0", "-verbosity=0"),
            *([corpus] if corpus else []),
            str(folder),
        ],
        one,
        custom_mutator=mutate,
    )
    atheris.Fuzz()
