"""How tools/bench.py times: a fresh process a run, all taking turns, medians.

A machine is never as quiet as one would like. Turns make what else runs there hit all alike,
so that ratios within one run hold where seconds do not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TypeAlias

from tools.bench_child import ENGINES

__all__ = [
    "Measure",
    "Result",
    "RunFailedError",
    "Sample",
    "ended",
    "import_seconds",
    "is_installed",
    "run_child",
    "run_python",
    "take_turns",
]

ROOT = Path(__file__).resolve().parent.parent
CHILD = ROOT / "tools" / "bench_child.py"
WARM_UP = 1
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
Sample: TypeAlias = dict[str, float]
Measure: TypeAlias = Callable[[], Sample]


class RunFailedError(Exception):
    """A process did not do what it was to; the text says why."""


@dataclass(slots=True)
class Result:
    """What the runs of one kind gave, or why there are none.

    ``status`` is ``ok``, ``not installed`` or ``failed: ...``. A sample has ``process_s``,
    ``process_cpu_s`` and ``peak_rss_bytes`` of the whole process; that of an engine also
    ``load_s`` and ``cpu_s`` (the load alone), ``import_s``, ``imported_rss_bytes`` (the peak
    before the load), ``mapped_bytes`` on Linux, and counts where the engine has them.
    """

    status: str = "ok"
    samples: list[Sample] = field(default_factory=list)

    def median(self, key: str) -> float | None:
        """Return the median of one figure over the runs, ``None`` if no run has it."""
        values = [sample[key] for sample in self.samples if key in sample]
        return median(values) if values else None

    def spread(self, key: str) -> float | None:
        """Return largest minus smallest, as a share of the median."""
        values = [sample[key] for sample in self.samples if key in sample]
        return (max(values) - min(values)) / median(values) if values else None


def is_installed(engine: str) -> bool:
    """Say whether this Python has what the engine needs, without importing it."""
    return all(find_spec(module) is not None for module in ENGINES[engine].modules)


def _progress(text: str) -> None:
    print(text, file=sys.stderr)


def take_turns(
    measures: Mapping[str, Measure | None],
    repeat: int,
    *,
    say: Callable[[str], object] = _progress,
) -> dict[str, Result]:
    """Measure everything ``repeat`` times, in turns; the warm-up round is thrown away.

    The order rotates from round to round, so that none always runs after the same other. What
    fails once is left out of the rest. ``None`` is what is not installed.
    """
    results = {
        name: Result("ok" if measure else "not installed") for name, measure in measures.items()
    }
    for number in range(-WARM_UP, repeat):
        say(f"round {number + 1} of {repeat}" if number >= 0 else "warm-up round")
        for name in _rotated(list(measures), number):
            measure = measures[name]
            if measure and results[name].status == "ok":
                _run_once(measure, results[name], is_kept=number >= 0)
    return results


def _rotated(names: Sequence[str], number: int) -> list[str]:
    first = number % len(names)
    return [*names[first:], *names[:first]]


def _run_once(measure: Measure, result: Result, *, is_kept: bool) -> None:
    try:
        sample = measure()
    except RunFailedError as error:
        result.status = f"failed: {error}"
        result.samples.clear()
        return
    if is_kept:
        result.samples.append(sample)


def run_child(engine: str, path: Path) -> Sample:
    """Run one engine once in a fresh process and return what it measured."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer")
        sample = run_python([str(CHILD), engine, str(path.resolve()), str(answer)])
        return {**sample, **json.loads(answer.read_text())}


def run_python(words: Sequence[str]) -> Sample:
    """Run this Python with these words to its end.

    Its children count in the CPU time only.

    Raises
    ------
    RunFailedError
        It failed.
    """
    return _run(words)[0]


def import_seconds(words: Sequence[str]) -> Sample:
    """Return how long this Python spends on imports when it runs these words."""
    sample, said = _run(["-X", "importtime", *words])
    rows = (line.split("|") for line in said.splitlines() if line.startswith("import time:"))
    each = (row[0].partition(":")[2].strip() for row in rows)
    return {**sample, "process_s": sum(int(text) for text in each if text.isdigit()) / 1e6}


def _run(words: Sequence[str]) -> tuple[Sample, str]:
    with tempfile.TemporaryFile() as complaints:
        begun = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, "-P", *words],
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env=_environment(os.environ),
        )
        sample = ended(child, begun)
        complaints.seek(0)
        said = complaints.read().decode(errors="replace")
    if child.returncode:
        raise RunFailedError(_reason(child.returncode, said))
    return sample, said


def ended(child: subprocess.Popen[bytes], begun: float) -> Sample:
    """Wait for the end of a process, and return what the whole of it took since it began."""
    _, status, used = os.wait4(child.pid, 0)
    process_s = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "process_s": process_s,
        "process_cpu_s": used.ru_utime + used.ru_stime,
        "peak_rss_bytes": used.ru_maxrss * unit,
    }


def _reason(status: int, said: str) -> str:
    if status < 0:
        return f"killed by signal {-status}"
    lines = (line.strip() for line in reversed(said.split("\n")))
    return next(filter(None, lines), f"exit status {status}")


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Put this checkout first, so that it is what gets timed, installed or not.

    Its bytecode is kept, as that of installed packages is: else each run would compile it.
    """
    found = {name: value for name, value in given.items() if name != _NO_BYTECODE}
    path = filter(None, [str(ROOT), given.get("PYTHONPATH")])
    return {**found, "PYTHONPATH": os.pathsep.join(path)}
