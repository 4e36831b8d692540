"""The benchmarks ``job`` and ``memory``: the whole command, on many files and on large ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tools.bench_facts import machine, versions
from tools.bench_make import larger_trace
from tools.bench_table import Goal, goals_text

__all__ = ["Run", "job", "job_goals", "memory", "memory_goals", "run_command"]

_ANALYZE = ("-m", "traceparse", "analyze")


class Run(NamedTuple):
    """What one process took, its children included in the CPU time only."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def run_command(words: Sequence[str]) -> Run:
    """Run this Python with these words to its end.

    Raises
    ------
    subprocess.CalledProcessError
        It failed.
    """
    begun = time.perf_counter()
    child = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, words)
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * unit)


def _medians(runs: Sequence[Run]) -> dict[str, float]:
    return {name: median(getattr(run, name) for run in runs) for name in Run._fields}


def _in_turns(
    commands: Mapping[str, Callable[[], Run]], repeat: int
) -> dict[str, dict[str, float]]:
    """Run every command again and again, in turns; the first round warms up."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(-1, repeat):
        print(f"round {number + 1} of {repeat}", file=sys.stderr)
        for name, command in commands.items():
            run = command()
            if number >= 0:
                runs[name].append(run)
    return {name: _medians(of_name) for name, of_name in runs.items()}


def _folder_of(path: Path, files: int) -> Path:
    """Return a folder in which the trace stands as that of so many ranks."""
    folder = path.with_suffix(f".{files}-ranks")
    folder.mkdir(exist_ok=True)
    for rank in range(files):
        link = folder / f"rank{rank}_trace.json"
        if not link.exists():
            os.link(path, link)
    return folder


def job(path: Path, *, files: int, megabytes: int, repeat: int) -> dict[str, Any]:
    """Time ``traceparse analyze`` on a job of many ranks, cached and not, and its start."""
    folder = str(_folder_of(larger_trace(path, megabytes, "k-old"), files))
    small = str(larger_trace(path, 1, "k-old"))
    with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:

        def cached(*, anew: bool) -> Run:
            if anew:
                shutil.rmtree(cache, ignore_errors=True)
            return run_command([*_ANALYZE, folder, "--quiet", "--jobs", "2", "--cache", cache])

        def analyze(where: str, jobs: int) -> Run:
            options = ("--quiet", "--no-cache", "--jobs", str(jobs))
            return run_command([*_ANALYZE, where, *options])

        rows = _in_turns(
            {
                "--jobs 1": lambda: analyze(folder, 1),
                "--jobs 2": lambda: analyze(folder, 2),
                "--jobs 2, kept": lambda: cached(anew=True),
                "... again": lambda: cached(anew=False),
                "a trace of 1 MB": lambda: analyze(small, 1),
                "--version": lambda: run_command(["-m", "traceparse", "--version"]),
                "import pandas": lambda: run_command(["-c", "import pandas"]),
            },
            repeat,
        )
    print(f"traceparse analyze, {files} files of {megabytes} MB made of {path.name}")
    return _said(rows, job_goals(rows), {"benchmark": "job", "files": files, "MB": megabytes})


def job_goals(rows: Mapping[str, Mapping[str, float]]) -> list[Goal]:
    """Return what is promised of jobs of many ranks."""
    wall = {name: row["wall_s"] for name, row in rows.items()}
    return [
        Goal("2 processes against 1", wall["--jobs 1"] / wall["--jobs 2"], 1.8, is_least=True),
        Goal(
            "from the cache against reading",
            wall["--jobs 2, kept"] / wall["... again"],
            20,
            is_least=True,
        ),
    ]


def memory(path: Path, *, sizes: Sequence[int], repeat: int) -> dict[str, Any]:
    """Measure the peak memory of ``traceparse analyze`` on files of several sizes."""
    made = {size: str(larger_trace(path, size, "k-old")) for size in sorted(sizes)}
    options = ("--quiet", "--no-cache", "--jobs", "1")
    rows = _in_turns(
        {
            f"{size} MB": lambda where=where: run_command([*_ANALYZE, where, *options])  # type: ignore[misc]
            for size, where in made.items()
        },
        repeat,
    )
    print(f"traceparse analyze, one file made of {path.name}")
    return _said(rows, memory_goals(rows), {"benchmark": "memory"})


def memory_goals(rows: Mapping[str, Mapping[str, float]]) -> list[Goal]:
    """Return what is promised of memory, the largest file coming last."""
    peaks = [row["peak_bytes"] for row in rows.values()]
    return [
        Goal("peak MB of the largest", peaks[-1] / 1e6, 500, is_least=False),
        Goal("... against the smallest", peaks[-1] / peaks[0], 1.1, is_least=False),
    ]


def _said(
    rows: Mapping[str, Mapping[str, float]], goals: Sequence[Goal], facts: dict[str, Any]
) -> dict[str, Any]:
    host = machine()
    print(f"{host['cpu']}, {host['num_cpus']} CPUs, load average {os.getloadavg()[0]:.1f}\n")
    width = max(map(len, rows))
    print(f"| {'medians':<{width}} | wall s | CPU s | peak MB |")
    print(f"| {'-' * width} | -----: | ----: | ------: |")
    for name, row in rows.items():
        wall, cpu, peak = row["wall_s"], row["cpu_s"], row["peak_bytes"] / 1e6
        print(f"| {name:<{width}} | {wall:6.2f} | {cpu:5.2f} | {peak:7.0f} |")
    print(f"\n{goals_text(goals)}")
    return {**facts, "machine": host, "versions": versions(), "rows": dict(rows)}
