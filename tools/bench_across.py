"""The benchmark ``across``: what it costs to match ever more ranks, on simulated jobs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.bench_job import analyze_words
from tools.bench_outcome import Outcome
from tools.bench_runs import run_python, take_turns
from tools.bench_scale import linear
from tools.bench_simulated import simulated
from tools.bench_table import (
    PROCESS_COLUMNS,
    Column,
    Figures,
    Goal,
    fixed,
    over,
    process_figures,
)

__all__ = ["across", "simulated_job"]

_STEPS = 5
_FEW_LAYERS = 8  # of what is only gathered


def across(*, ranks: Sequence[int], gathered: int, layers: int, repeat: int) -> Outcome:
    """Time ``traceparse analyze`` on jobs that all communicate, against their ranks.

    The last row is the second run on ``gathered`` ranks: what was digested comes from the
    cache, so that it is what is done across ranks, and reading the digests.
    """
    jobs = {_ranks(count): simulated_job(count, layers) for count in sorted(ranks)}
    last, from_cache = _ranks(max(ranks)), f"{_ranks(gathered)}, from the cache"
    large = simulated_job(gathered, _FEW_LAYERS)
    with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
        words = {
            **{name: analyze_words("--no-cache", "--", str(job)) for name, job in jobs.items()},
            from_cache: analyze_words("--cache", cache, "--", str(large)),  # warm-up fills it
        }
        results = take_turns(
            {name: lambda said=said: run_python(said) for name, said in words.items()},  # type: ignore[misc]
            repeat,
        )
    rows = process_figures(results)
    for name, job in {**jobs, from_cache: large}.items():
        rows[name]["bytes"] = sum(file.stat().st_size for file in job.iterdir())
    return Outcome(
        "across",
        f"whole command on simulated jobs, {layers} layers, {_STEPS} steps; from the cache: "
        f"{_FEW_LAYERS} layers",
        {"layers": layers, "steps": _STEPS},
        results,
        rows,
        (
            Column("MB", "bytes", fixed(0, scale=1e-6)),
            *PROCESS_COLUMNS,
            Column("x per doubling", "per_doubling", fixed(2)),
        ),
        [
            *_goals(rows, last, from_cache),
            linear("ranks", [rows[name] for name in jobs]),
        ],
        "peak RSS: of the largest of its processes: one a processor that reads, and the one "
        "that gathers.",
    )


def _ranks(count: int) -> str:
    return f"{count:,} ranks"


def _goals(rows: Mapping[str, Figures], last: str, from_cache: str) -> list[Goal]:
    peak, processes = rows[last]["peak_rss_bytes"], (os.cpu_count() or 1) + 1
    return [
        Goal(f"s of {last}", rows[last]["process_s"], 30, is_least=False),
        Goal(
            f"peak MB of {last}, all {processes} processes at once, at most",
            None if peak is None else peak * processes / 1e6,
            1000,
            is_least=False,
        ),
        Goal(f"s of {from_cache}", rows[from_cache]["process_s"], 60, is_least=False),
        Goal(
            f"peak MB of {from_cache}",
            over(rows[from_cache]["peak_rss_bytes"], 1e6),
            1000,
            is_least=False,
        ),
    ]


def simulated_job(ranks: int, layers: int) -> Path:
    """Return a folder with a simulated job, which stays in ``bench-out/traces``."""
    size = ["--ranks", str(ranks), "--layers", str(layers), "--steps", str(_STEPS)]
    stem = f"ddp-{ranks}x{layers}x{_STEPS}"
    return simulated("traces", stem, ["ddp", *size, "--no-truth"])
