"""The benchmark ``hta``: from trace files to HTA's ``TraceAnalysis``, by us and by HTA."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.bench_facts import BenchError
from tools.bench_job import made_of
from tools.bench_make import larger_trace
from tools.bench_outcome import Outcome
from tools.bench_runs import is_installed, run_child, take_turns
from tools.bench_table import Column, Goal, fixed, medians, over

__all__ = ["hta"]

_OURS, _FRAMES, _THEIRS = "hta-bridge", "hta-frames", "hta-analysis"
_TITLES = {
    _OURS: "traceparse.read, then to_hta",
    _FRAMES: "to_hta alone",
    _THEIRS: "HTA TraceAnalysis",
}
_KEYS = ("load_s", "process_s", "process_cpu_s", "peak_rss_bytes", "rows")
_COLUMNS = (
    Column("load s", "load_s", fixed(3)),
    Column("spread %", "spread_ratio", fixed(0, scale=100)),
    Column("process CPU s", "process_cpu_s", fixed(3)),
    Column("x HTA", "times_hta", fixed(1)),
    Column("peak RSS MB", "peak_rss_bytes", fixed(0, scale=1e-6)),
    Column("rows", "rows", fixed(0)),
)
_NOTES = """\
load: from paths to a TraceAnalysis, after imports; process CPU: user and system seconds of the
whole process, imports and children too. HTA reads several ranks in as many processes as there
are CPUs, traceparse in one. rows: of the frames of all ranks, which are the same."""


def hta(paths: Sequence[Path], *, megabytes: int | None, repeat: int) -> Outcome:
    """Time what gives a ``TraceAnalysis`` of the first trace, or of one made of all."""
    if not is_installed(_THEIRS):
        raise BenchError("HTA is not installed: pip install 'traceparse[hta]'")
    subject, path = f"{paths[0].name}", paths[0]
    if megabytes is not None:
        path = larger_trace(paths, megabytes)
        subject = f"{megabytes} MB {made_of(paths)}"
    results = take_turns(
        {name: lambda name=name: run_child(name, path) for name in _TITLES},  # type: ignore[misc]
        repeat,
    )
    rows = {
        name: medians(result, _KEYS, spread_of="load_s") for name, result in results.items()
    }
    reference = rows[_THEIRS]
    for row in rows.values():
        row["times_hta"] = over(reference["load_s"], row["load_s"])
    return Outcome(
        "hta",
        subject,
        {"MB": megabytes},
        results,
        rows,
        _COLUMNS,
        [Goal("read and to_hta against HTA's own", rows[_OURS]["times_hta"], 1, is_least=True)],
        _NOTES,
        _TITLES,
    )
