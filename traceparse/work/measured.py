"""How many FLOP/s does this machine's CPU reach at most?

No vendor lists what all cores of a CPU reach together under load, so it is measured: with
products of square matrices, which is the most that a BLAS gets out of it. In a process of its
own, as a BLAS counts its threads once, when it is loaded; this module is that process too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np

from traceparse.errors import TraceparseError, UsageError

__all__ = ["Measured", "measure_peak", "rates_of"]

_Float: TypeAlias = type[np.float32] | type[np.float64]
_DTYPES: Final[Mapping[str, _Float]] = {"fp32": np.float32, "fp64": np.float64}
_SIZES: Final = (256, 512, 1024, 2048, 4096)
_SECONDS = 0.8  # for all sizes of a dtype
_PATIENCE_S = 60.0
_LONGEST_REASON = 200  # letters
_Rate = Annotated[float, msgspec.Meta(gt=0)]
# what the libraries that numpy is built with call it
_NUM_THREADS = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The most that a CPU has reached, in FLOP/s by dtype; ``words`` say what was timed."""

    flop_per_s: Mapping[str, float]
    num_threads: int
    words: str


class _Told(msgspec.Struct):
    """What the process says that measures: FLOP/s by dtype and by width of the matrices."""

    rates: dict[str, Annotated[dict[int, _Rate], msgspec.Meta(min_length=1)]]
    library: str


def measure_peak(num_threads: int | None = None) -> Measured:
    """Measure how many FLOP/s this CPU reaches with so many threads; it takes two seconds.

    Not given, there are as many threads as CPUs this process may use; and there are never
    more, as no more run at a time.

    Raises
    ------
    UsageError
        Fewer than one thread.
    TraceparseError
        It could not be measured.
    """
    if num_threads is not None and num_threads < 1:
        raise UsageError(f"num_threads={num_threads}: measuring needs at least one thread")
    most = _num_cpus()
    num_threads = most if num_threads is None else min(num_threads, most)
    told = _ask(num_threads)
    sizes = sorted({size for rates in told.rates.values() for size in rates})
    threads = "1 thread" if num_threads == 1 else f"{num_threads} threads"
    return Measured(
        flop_per_s={dtype: max(rates.values()) for dtype, rates in told.rates.items()},
        num_threads=num_threads,
        words=f"the fastest of repeated products of square matrices, {sizes[0]:,} to "
        f"{sizes[-1]:,} wide, by {told.library} on {threads}",
    )


def _num_cpus() -> int:
    """Count the CPUs that this process may use: it may be confined to some of the machine's."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _ask(num_threads: int) -> _Told:
    """Measure in a process that has so many threads.

    Raises
    ------
    TraceparseError
        It failed, took too long, or did not say which dtype reaches what.
    """
    # -P: nothing is imported from the folder that this happens to run in
    command = [sys.executable, "-P", "-m", __spec__.name]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and module
            command,
            env={**os.environ, **dict.fromkeys(_NUM_THREADS, str(num_threads))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _failed(f"it took over {_PATIENCE_S:g} s") from error
    except OSError as error:
        raise _failed(f"{sys.executable}: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        last = lines[-1] if lines else "no message"
        raise _failed(f"exit status {done.returncode}: {last[:_LONGEST_REASON]}")
    try:
        told = msgspec.json.decode(done.stdout, type=_Told)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _failed(str(error)) from error
    if told.rates.keys() != _DTYPES.keys():
        raise _failed(f"only {', '.join(told.rates) or 'nothing'} was measured")
    return told


def _failed(why: str) -> TraceparseError:
    return TraceparseError(
        f"the peak of this CPU could not be measured: {why}; give the peak instead"
    )


# -- in the process that measures


def rates_of(
    prepare: Callable[[int], Callable[[], object]], seconds: float, clock: Callable[[], float]
) -> dict[int, float]:
    """Return the most FLOP/s that products of square matrices reach, by their width.

    ``prepare`` makes matrices of a width, and returns what multiplies them. Every width has
    its share of the time that is left, and is multiplied at least once, unless that would take
    longer than is left.
    """
    ends = clock() + seconds
    rates: dict[int, float] = {}
    for place, size in enumerate(_SIZES):
        flop, now = 2 * size**3, clock()
        if rates and now + flop / max(rates.values()) > ends:
            break
        shortest = _shortest(prepare(size), now + (ends - now) / (len(_SIZES) - place), clock)
        if shortest > 0:
            rates[size] = flop / shortest
    return rates


def _shortest(
    multiply: Callable[[], object], until: float, clock: Callable[[], float]
) -> float:
    """Return the shortest time, in s, that something takes when it is repeated."""
    shortest = float("inf")
    while True:
        begun = clock()
        multiply()
        now = clock()
        shortest = min(shortest, now - begun)
        if now >= until:
            return shortest


def _prepare(dtype: _Float) -> Callable[[int], Callable[[], object]]:
    random = np.random.default_rng(0)

    def prepare(size: int) -> Callable[[], object]:
        matrix = random.random((size, size), dtype)
        product = np.empty_like(matrix)
        return lambda: np.matmul(matrix, matrix, out=product)

    return prepare


def _library() -> str:
    """Name numpy and the BLAS that it was built with, as far as it knows that."""
    found: Any = np.show_config(mode="dicts")
    blas = found.get("Build Dependencies", {}).get("blas", {})
    named = " ".join(str(blas[key]) for key in ("name", "version") if blas.get(key))
    return f"numpy {np.__version__} with {named or 'an unknown BLAS'}"


def main() -> None:
    """Measure, and write it to standard output."""
    rates = {
        name: rates_of(_prepare(dtype), _SECONDS, time.perf_counter)
        for name, dtype in _DTYPES.items()
    }
    print(json.dumps({"rates": rates, "library": _library()}))  # noqa: T201 - for _ask


if __name__ == "__main__":
    main()
