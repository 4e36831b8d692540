"""The benchmarks ``analyze``, ``cache`` and ``start``: the whole command as people run it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.bench_make import larger_job, larger_trace
from tools.bench_outcome import Outcome
from tools.bench_runs import Sample, import_seconds, run_python, take_turns
from tools.bench_table import (
    PROCESS_COLUMNS,
    Column,
    Figures,
    Goal,
    fixed,
    over,
    process_figures,
)

__all__ = ["analyze", "analyze_words", "cache", "made_of", "rank_files", "start"]

_FIRST, _SECOND, _IMPORTS = "first run", "second run", "... of it, imports"
# on Linux the peak of so small a process is that of whoever started it
_TIMES = tuple(column for column in PROCESS_COLUMNS if column.key != "peak_rss_bytes")
_VERSION, _SMALL, _PANDAS = "--version", "analyze of 1 MB", "import pandas"


def made_of(paths: Sequence[Path]) -> str:
    """Say what traces are made of."""
    return f"made of {' + '.join(path.name for path in paths)}"


def analyze_words(*options: str) -> list[str]:
    """Return the words of a command that says nothing while it works."""
    return ["-m", "traceparse", "analyze", "--quiet", *options]


def rank_files(paths: Sequence[Path], counts: Sequence[int], megabytes: int) -> list[str]:
    """Return the files of a job of as many ranks as the largest of the counts."""
    folder = larger_job(paths, max(counts), megabytes)
    return [str(folder / f"rank{rank}_trace.json") for rank in range(max(counts))]


def analyze(
    paths: Sequence[Path], *, ranks: Sequence[int], megabytes: int, repeat: int
) -> Outcome:
    """Time ``traceparse analyze`` on so many ranks, with one process and with all."""
    counts = sorted(ranks)
    files = rank_files(paths, counts, megabytes)
    every = max(2, os.cpu_count() or 1)

    def run(count: int, jobs: int) -> Sample:
        return run_python(
            analyze_words("--no-cache", "--jobs", str(jobs), "--", *files[:count])
        )

    names = {(count, jobs): _of(count, jobs) for count in counts for jobs in (1, every)}
    results = take_turns(
        {
            name: lambda count=count, jobs=jobs: run(count, jobs)  # type: ignore[misc]
            for (count, jobs), name in names.items()
        },
        repeat,
    )
    rows = process_figures(results)
    read = Path(files[0]).stat().st_size
    for (count, _), name in names.items():
        row = rows[name]
        row["bytes_per_s"] = over(count * read, row["process_s"])
        row["times_alone"] = over(rows[names[count, 1]]["process_s"], row["process_s"])
    last = rows[names[counts[-1], every]]
    return Outcome(
        "analyze",
        f"whole command on ranks of {read / 1e6:.1f} MB {made_of(paths)}",
        {"MB": megabytes, "file_bytes": read},
        results,
        rows,
        (
            *PROCESS_COLUMNS,
            Column("MB/s", "bytes_per_s", fixed(0, scale=1e-6)),
            Column("x 1 process", "times_alone", fixed(2)),
        ),
        [
            Goal(
                f"{every} processes against 1, {_ranks(counts[-1])}",
                last["times_alone"],
                1.8,
                is_least=True,
            )
        ],
        "peak RSS: of the largest of its processes.",
    )


def _of(count: int, jobs: int) -> str:
    return f"{_ranks(count)}, --jobs {jobs}"


def _ranks(count: int) -> str:
    return f"{count} rank{'' if count == 1 else 's'}"


def cache(paths: Sequence[Path], *, ranks: int, megabytes: int, repeat: int) -> Outcome:
    """Time ``traceparse analyze`` the first time and the second, from its cache."""
    files = rank_files(paths, [ranks], megabytes)
    with tempfile.TemporaryDirectory(prefix="bench-cache-") as folder:
        words = analyze_words("--cache", folder, "--", *files)

        def first() -> Sample:
            shutil.rmtree(folder)
            return run_python(words)

        results = take_turns(
            {
                _FIRST: first,
                _SECOND: lambda: run_python(words),
                _IMPORTS: lambda: import_seconds(words),
            },
            repeat,
        )
    rows = process_figures(results)
    for row in rows.values():
        row["times_first"] = over(rows[_FIRST]["process_s"], row["process_s"])
    rows[_IMPORTS] = {"process_s": rows[_IMPORTS]["process_s"]}
    return Outcome(
        "cache",
        f"whole command on {_ranks(ranks)} of {megabytes} MB {made_of(paths)}",
        {"MB": megabytes, "ranks": ranks},
        results,
        rows,
        (*PROCESS_COLUMNS, Column("x first", "times_first", fixed(1))),
        [Goal("second run against the first", rows[_SECOND]["times_first"], 20, is_least=True)],
        "imports: what python -X importtime adds up to, in runs of their own.",
    )


def start(paths: Sequence[Path], *, repeat: int) -> Outcome:
    """Time what is there before any trace is read, next to pandas."""
    small = larger_trace(paths, 1)
    results = take_turns(
        {
            "python -c pass": lambda: run_python(["-c", "pass"]),
            _VERSION: lambda: run_python(["-m", "traceparse", "--version"]),
            _SMALL: lambda: run_python(analyze_words("--no-cache", "--", str(small))),
            _PANDAS: lambda: run_python(["-c", "import pandas"]),
        },
        repeat,
    )
    rows = process_figures(results)
    for row in rows.values():
        row["pandas_ratio"] = over(row["process_s"], rows[_PANDAS]["process_s"])
    return Outcome(
        "start",
        f"a trace of {small.stat().st_size / 1e6:.1f} MB {made_of(paths)}",
        {},
        results,
        rows,
        (*_TIMES, Column("/ import pandas", "pandas_ratio", fixed(2))),
        _start_goals(rows),
    )


def _start_goals(rows: Mapping[str, Figures]) -> list[Goal]:
    return [
        Goal(f"{name} against import pandas, wall s", value, 1, is_least=False)
        for name in (_VERSION, _SMALL)
        for value in [rows[name]["pandas_ratio"]]
    ]
