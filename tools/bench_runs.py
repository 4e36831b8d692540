"""How tools/bench.py times: a fresh process a run, engines interleaved, medians.

A machine is never as quiet as one would like. Interleaving makes what else runs there hit all
engines alike, so that ratios within one run hold where seconds do not.
"""

from __future__ import annotations

import json
import os
import resource
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
    "EngineFailedError",
    "Plan",
    "Result",
    "Sample",
    "is_installed",
    "run_child",
    "time_engines",
]

ROOT = Path(__file__).resolve().parent.parent
CHILD = ROOT / "tools" / "bench_child.py"
Sample: TypeAlias = dict[str, float]
Runner: TypeAlias = Callable[[str, Path], Sample]


class EngineFailedError(Exception):
    """An engine did not load the file; the text says why."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to time, and how often."""

    path: Path
    engines: Sequence[str]
    repeat: int
    warm_up: int = 1


@dataclass(slots=True)
class Result:
    """What the runs of one engine gave, or why there are none.

    ``status`` is ``ok``, ``not installed`` or ``failed: ...``. A sample has ``load_s`` and
    ``cpu_s`` (the load alone), ``import_s``, ``process_s`` and ``process_cpu_s`` (the whole
    process), ``peak_rss_bytes``, ``imported_rss_bytes`` (the peak before the load),
    ``mapped_bytes`` on Linux, and counts where the engine has them.
    """

    engine: str
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


def time_engines(
    plan: Plan, *, run: Runner | None = None, say: Callable[[str], object] = print
) -> dict[str, Result]:
    """Run every engine ``repeat`` times, in turns; the warm-up rounds are thrown away.

    The order rotates from round to round, so that none always runs after the same other. An
    engine that fails once is left out of the rest.
    """
    run = run or run_child
    results = {name: Result(name) for name in plan.engines}
    for name, result in results.items():
        if not is_installed(name):
            result.status = "not installed"
    for number in range(-plan.warm_up, plan.repeat):
        say(f"round {number + 1} of {plan.repeat}" if number >= 0 else "warm-up round")
        for name in _rotated(plan.engines, number):
            if results[name].status == "ok":
                _run_once(plan.path, results[name], run, is_kept=number >= 0)
    return results


def _rotated(engines: Sequence[str], number: int) -> list[str]:
    first = number % len(engines)
    return [*engines[first:], *engines[:first]]


def _run_once(path: Path, result: Result, run: Runner, *, is_kept: bool) -> None:
    try:
        sample = run(result.engine, path)
    except EngineFailedError as error:
        result.status = f"failed: {error}"
        result.samples.clear()
        return
    if is_kept:
        result.samples.append(sample)


def run_child(engine: str, path: Path) -> Sample:
    """Run one engine once in a fresh process and return what it measured."""
    with tempfile.TemporaryDirectory() as folder:
        answer, complaints = Path(folder, "answer"), Path(folder, "complaints")
        command = [sys.executable, "-P", str(CHILD), engine, str(path.resolve()), str(answer)]
        cpu_before, begun = _children_cpu_s(), time.perf_counter()
        with complaints.open("wb") as errors:
            status = subprocess.run(
                command,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": _with_root(os.environ)},
                check=False,
            ).returncode
        process_s = time.perf_counter() - begun
        if status:
            raise EngineFailedError(_reason(status, _last_line(complaints)))
        sample: Sample = json.loads(answer.read_text())
    process_cpu_s = _children_cpu_s() - cpu_before
    return {**sample, "process_s": process_s, "process_cpu_s": process_cpu_s}


def _reason(status: int, complaint: str) -> str:
    if status < 0:
        return f"killed by signal {-status}"
    return complaint or f"exit status {status}"


def _with_root(environment: Mapping[str, str]) -> str:
    """Put this checkout first, so that it is what gets timed, installed or not."""
    return os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
