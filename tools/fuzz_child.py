"""The process that fuzzes: tools/fuzz.py starts it, watches it, and starts another if it dies.

The file that is being tried is the only one in the work folder, so that whoever is left knows
what killed this process. What is found goes to the folder of findings at once, and the counts
to ``stats.json`` every moment.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import fuzz_atheris  # noqa: E402
from tools.bench_child import peak_rss_bytes  # noqa: E402
from tools.fuzz_mutate import Mutator, read_seeds  # noqa: E402
from tools.fuzz_stats import Stats  # noqa: E402

if TYPE_CHECKING:
    from tools.fuzz_check import Outcome

__all__ = ["OVER_MEMORY", "Job", "Session", "TooSlow", "main", "time_limit"]

OVER_MEMORY = 3  # the exit status that asks for a fresh process: peak memory never falls again
_MOST_MEMORY = 1_000_000_000
_MOST_ADDRESSES = 16 << 30  # a backstop, lest the machine suffers
_SAY_EVERY_S = 1.0
_MOST_POOL = 2000
_TESTED = str(ROOT / "traceparse")

Check = Callable[[bytes, Path], "Outcome"]


class TooSlow(BaseException):
    """A file took longer than any file may."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the parent wants: written by it, read by the child, as JSON."""

    work: str
    findings: str
    seeds: Sequence[str]
    corpus: str | None
    seconds: float
    seed: int
    limit_s: float
    engine: str


class Session:
    """Tries files, counts what comes of them, keeps what is found."""

    def __init__(self, job: Job, check: Check) -> None:
        self.stats = Stats()
        self._check = check
        self._limit_s = job.limit_s
        self._work, self._findings = Path(job.work), Path(job.findings)
        self._ends = time.monotonic() + job.seconds
        self._said = 0.0
        self._features: set[object] = set()
        self._box = self._work / "input"
        self._box.mkdir(parents=True, exist_ok=True)

    @property
    def is_over(self) -> bool:
        """Say whether the time is up."""
        return time.monotonic() >= self._ends

    def try_one(self, data: bytes) -> bool:
        """Try one file; say whether it did something that none has done before."""
        begun = time.monotonic()
        outcome = None
        try:
            with time_limit(self._limit_s):
                outcome = self._check(data, self._box)
        except (Exception, TooSlow) as error:  # noqa: BLE001 - whatever escapes is what we seek
            self._keep(data, _place(error), "".join(traceback.format_exception(error)))
        now = time.monotonic()
        self.stats.tried += 1
        self.stats.slowest_s = max(self.stats.slowest_s, now - begun)
        self._watch_memory(data)
        if now - self._said > _SAY_EVERY_S:
            self._said = now
            self.say()
        return outcome is not None and self._is_new(outcome)

    def say(self) -> None:
        """Write the counts down."""
        self.stats.write(self._work / "stats.json")

    def _is_new(self, outcome: Outcome) -> bool:
        self.stats.kinds[outcome.kind] += 1
        known = len(self._features)
        self._features.add((outcome.kind, outcome.feature))
        self.stats.features = len(self._features)
        return len(self._features) > known

    def _watch_memory(self, data: bytes) -> None:
        peak = peak_rss_bytes()
        self.stats.peak_rss_bytes = peak
        if peak > _MOST_MEMORY:
            self._keep(data, "memory", f"peak memory {peak / 1e6:.0f} MB after this file\n")
            self.say()
            os._exit(OVER_MEMORY)

    def _keep(self, data: bytes, name: str, story: str) -> None:
        """Keep the shortest file of every kind of escape."""
        self.stats.escapes[name] += 1
        path = self._findings / f"{name}.bin"
        if not path.exists() or path.stat().st_size > len(data):
            self._findings.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.with_suffix(".txt").write_text(story, errors="backslashreplace")


def _place(error: BaseException) -> str:
    """Name an escape by its class and the place in our code, or in the check, it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_TESTED)]
    checks = [frame for frame in frames if frame.name.startswith("_check")]
    last = (ours or checks or frames)[-1]
    where = Path(last.filename).stem if ours else last.name.strip("_")
    return f"{type(error).__name__}-{where}-{last.lineno}"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`TooSlow` in what runs longer than that."""
    signal.signal(signal.SIGALRM, _too_slow)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _too_slow(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlow


# -- the two ways to choose what to try next


def _seeds(job: Job) -> list[bytes]:
    return read_seeds([Path(folder) for folder in (*job.seeds, job.corpus) if folder])


def _run_random(job: Job) -> None:
    """Mutate at random, going on from whatever did something new."""
    rng = Random(job.seed)  # noqa: S311 - to be repeated, not to be secret
    pool = _seeds(job)
    mutator = Mutator(pool)
    session = Session(job, _import_check())
    while not session.is_over:
        data = mutator.mutate(rng.choice(pool), rng)
        if session.try_one(data) and len(pool) < _MOST_POOL:
            pool.append(data)
    session.say()


def _run_atheris(job: Job) -> None:
    """Let libFuzzer choose, by what code a file reaches; never returns."""
    session = Session(job, fuzz_atheris.instrumented(_import_check))

    def try_one(data: bytes) -> None:
        session.try_one(data)
        if session.is_over:
            session.say()
            os._exit(0)

    folder = Path(job.work, "seeds")
    folder.mkdir()
    fuzz_atheris.run(try_one, _seeds(job), seed=job.seed, folder=folder, corpus=job.corpus)


def _import_check() -> Check:
    from tools.fuzz_check import check  # noqa: PLC0415 - only now, to be instrumented

    return check


def main() -> None:
    """Do the job that the argument holds."""
    job = Job(**json.loads(sys.argv[1]))
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
    if job.engine == "atheris":
        _run_atheris(job)
    else:
        _run_random(job)


if __name__ == "__main__":
    main()
