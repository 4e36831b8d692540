"""The benchmarks ``memory`` and ``scale``: what an analysis costs as what it reads grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log2
from pathlib import Path

from tools.bench_job import analyze_words, made_of, rank_files
from tools.bench_make import gzipped, larger_trace
from tools.bench_outcome import Outcome
from tools.bench_runs import Measure, run_python, take_turns
from tools.bench_table import (
    PROCESS_COLUMNS,
    Column,
    Figures,
    Goal,
    fixed,
    over,
    process_figures,
)

__all__ = ["linear", "memory", "per_doubling", "scale"]


def memory(paths: Sequence[Path], *, sizes: Sequence[int], repeat: int) -> Outcome:
    """Measure the peak memory of ``traceparse analyze`` on files of several sizes."""
    names = {size: f"{size} MB" for size in sorted(sizes)}
    files: dict[str, Path] = {}
    for size, name in names.items():
        files[name] = larger_trace(paths, size)
        files[_packed(name)] = gzipped(files[name])
    results = take_turns({name: _alone([path]) for name, path in files.items()}, repeat)
    rows = process_figures(results)
    return Outcome(
        "memory",
        f"whole command on one file {made_of(paths)}",
        {"files": {name: str(path) for name, path in files.items()}},
        results,
        rows,
        PROCESS_COLUMNS,
        _memory_goals(rows, list(names.values())),
    )


def _packed(name: str) -> str:
    return f"{name}, .json.gz"


def _alone(files: Sequence[Path | str]) -> Measure:
    words = analyze_words("--no-cache", "--jobs", "1", "--", *map(str, files))
    return lambda: run_python(words)


def _memory_goals(rows: Mapping[str, Figures], names: Sequence[str]) -> list[Goal]:
    """Return what is promised of memory, and of packed files; the largest comes last."""
    goals = []
    for named in (str, _packed):
        first, last = named(names[0]), named(names[-1])
        peak = rows[last]["peak_rss_bytes"]
        goals += [
            Goal(f"peak MB of {last}", over(peak, 1e6), 500, is_least=False),
            Goal(
                f"peak MB of {last} against {first}",
                over(peak, rows[first]["peak_rss_bytes"]),
                1.1,
                is_least=False,
            ),
        ]
    for name in names:
        ratio = over(rows[_packed(name)]["process_s"], rows[name]["process_s"])
        goals.append(
            Goal(f".json.gz against .json, {name}, wall s", ratio, 1.15, is_least=False)
        )
    return goals


def scale(
    paths: Sequence[Path],
    *,
    sizes: Sequence[int],
    ranks: Sequence[int],
    megabytes: int,
    repeat: int,
) -> Outcome:
    """Time ``traceparse analyze`` against the size of one file and the ranks of a job."""
    files = rank_files(paths, ranks, megabytes)
    by_size = {f"{size} MB": [str(larger_trace(paths, size))] for size in sorted(sizes)}
    by_ranks = {f"{count} x {megabytes} MB": files[:count] for count in sorted(ranks)}
    everything = {**by_size, **by_ranks}
    results = take_turns({name: _alone(read) for name, read in everything.items()}, repeat)
    rows = process_figures(results)
    for name, row in rows.items():
        row["bytes"] = sum(Path(file).stat().st_size for file in everything[name])
        row["s_per_byte"] = over(row["process_s"], row["bytes"])
    goals = [
        linear(what, [rows[name] for name in series])
        for what, series in (("size", by_size), ("ranks", by_ranks))
    ]
    return Outcome(
        "scale",
        f"whole command, one process, on files {made_of(paths)}",
        {"MB": megabytes},
        results,
        rows,
        (
            Column("MB", "bytes", fixed(0, scale=1e-6)),
            *PROCESS_COLUMNS,
            Column("ms/MB", "s_per_byte", fixed(2, scale=1e9)),
            Column("x per doubling", "per_doubling", fixed(2)),
        ),
        goals,
        "x per doubling: wall s over that of the row before, as if it were half as large.",
    )


def linear(what: str, rows: Sequence[Figures]) -> Goal:
    """Fill in what doubling costs from row to row, and promise of the dearest."""
    for before, after in pairwise(rows):
        after["per_doubling"] = per_doubling(before, after)
    known = [cost for row in rows[1:] if (cost := row["per_doubling"]) is not None]
    dearest = max(known) if known and len(known) == len(rows) - 1 else None
    return Goal(f"x per doubling of {what}, at worst", dearest, 2.1, is_least=False)


def per_doubling(before: Figures, after: Figures) -> float | None:
    """Return how many times as long twice as much takes, from two that are any ratio apart."""
    times = over(after["process_s"], before["process_s"])
    larger = over(after["bytes"], before["bytes"])
    if times is None or larger is None or larger == 1:
        return None
    return float(times ** (1 / log2(larger)))
