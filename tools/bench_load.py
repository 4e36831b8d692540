"""The benchmark ``load``: one trace file through traceparse and through other readers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.bench_child import ENGINES
from tools.bench_facts import trace_facts
from tools.bench_make import gzipped
from tools.bench_outcome import Outcome
from tools.bench_runs import Measure, Result, is_installed, run_child, take_turns
from tools.bench_table import Column, Figures, Goal, fixed, medians, over

__all__ = ["figures", "load", "load_goals"]

_KEYS = (
    "load_s",
    "cpu_s",
    "import_s",
    "process_s",
    "process_cpu_s",
    "peak_rss_bytes",
    "imported_rss_bytes",
    "mapped_bytes",
    "rows",
)
_REFERENCES = ("hta", "json", "orjson", "tensorboard", "tracelens")
_COLUMNS = (
    Column("load s", "load_s", fixed(3)),
    Column("spread %", "spread_ratio", fixed(0, scale=100)),
    Column("CPU s", "cpu_s", fixed(3)),
    Column("MB/s", "bytes_per_s", fixed(0, scale=1e-6)),
    Column("x HTA", "times_hta", fixed(1)),
    Column("x json.load", "times_json", fixed(1)),
    Column("peak RSS MB", "peak_rss_bytes", fixed(0, scale=1e-6)),
    Column("RSS / size", "rss_ratio", fixed(2)),
    Column("process s", "process_s", fixed(3)),
    Column("process x HTA", "times_hta_process", fixed(1)),
    Column("rows", "rows", fixed(0)),
)
_NOTES = """\
load: the call alone, after imports; CPU: its user and system seconds; process: from start to
exit. x: how many times as fast, by load (or by process). MB/s: of uncompressed JSON; size: its
bytes. peak RSS: of the whole process, libraries and all.
rows: json.load gives every event, as a dict. HTA keeps what has a duration and a category, and
rounds to microseconds. traceparse keeps what it analyzes, to the nanosecond; "all tables" has
python_function and counter events as well. TraceLens's DataLoader calls orjson.loads on the
bytes of the file and does no more. torch-tb-profiler has no loader apart from its analysis."""
_PACKED = "traceparse-gz"
_TO_HTA = "hta-"  # those of the benchmark hta
_TIMES = {"load": "times_{}", "process": "times_{}_process"}
_NATIVE = "native engine on one core"
_PROMISES = (
    ("traceparse-core", f"{_NATIVE} against HTA's loader", "hta", "load", 30),
    ("traceparse-core", f"{_NATIVE} against json.load", "json", "load", 14),
    ("traceparse-core", f"{_NATIVE} against TraceLens's loader", "tracelens", "load", 10),
    ("traceparse-core", f"{_NATIVE} against orjson.loads", "orjson", "load", 10),
    ("traceparse-msgspec", "msgspec engine against HTA's loader", "hta", "load", 5.5),
    ("analyze", "analyze against HTA's loader, by load", "hta", "load", 4),
    ("analyze", "analyze against HTA's loader, by process", "hta", "process", 4),
)


class _Row(NamedTuple):
    title: str
    engine: str
    path: Path


def load(path: Path, *, repeat: int, engines: Sequence[str] = ()) -> Outcome:
    """Time every engine on the file, or those that are named, and the file's ``.gz`` twin."""
    facts = trace_facts(path)
    rows = {name: _Row(ENGINES[name].title, name, path) for name in engines or _engines()}
    if path.name.endswith(".json") and "traceparse" in rows:
        title = f"{ENGINES['traceparse'].title}, .json.gz"
        rows[_PACKED] = _Row(title, "traceparse", gzipped(path))
    results = take_turns({name: _measure(row) for name, row in rows.items()}, repeat)
    medians_and_ratios = figures(results, facts["uncompressed_bytes"])
    events = _events(results.values())
    counted = "unknown number of" if events is None else f"{events:,}"
    return Outcome(
        "load",
        f"{facts['name']}: {facts['uncompressed_bytes'] / 1e6:.1f} MB of JSON, "
        f"{facts['bytes'] / 1e6:.1f} MB on disk, {counted} events",
        {"file": {**facts, "events": events}},
        results,
        medians_and_ratios,
        _COLUMNS,
        load_goals(medians_and_ratios),
        _NOTES,
        {name: row.title for name, row in rows.items()},
    )


def _engines() -> list[str]:
    """Return the engines that this system can run as they are meant."""
    can_hold = hasattr(os, "sched_setaffinity")
    return [
        name
        for name in ENGINES
        if (can_hold or name != "traceparse-core") and not name.startswith(_TO_HTA)
    ]


def _measure(row: _Row) -> Measure | None:
    return (lambda: run_child(row.engine, row.path)) if is_installed(row.engine) else None


def _events(results: Iterable[Result]) -> int | None:
    """Return the number of events in the file, from the first engine that counts them."""
    counts = (result.median("events") for result in results)
    return next((int(count) for count in counts if count is not None), None)


def figures(results: Mapping[str, Result], uncompressed_bytes: int) -> dict[str, Figures]:
    """Return what each engine's row says: medians, rates and ratios.

    ``times_hta`` is how many times as fast as HTA: its median load time over this one's;
    ``times_hta_cpu`` and ``times_hta_process`` the same of the load's CPU time and of whole
    processes, imports and all. ``rss_ratio`` is peak memory over uncompressed size.
    """
    rows = {
        name: medians(result, _KEYS, spread_of="load_s") for name, result in results.items()
    }
    for row in rows.values():
        row["bytes_per_s"] = over(uncompressed_bytes, row["load_s"])
        row["rss_ratio"] = over(row["peak_rss_bytes"], uncompressed_bytes)
        for reference in _REFERENCES:
            other = rows.get(reference, {})
            for suffix, key in (("", "load_s"), ("_cpu", "cpu_s"), ("_process", "process_s")):
                row[f"times_{reference}{suffix}"] = over(other.get(key), row[key])
    return rows


def load_goals(rows: Mapping[str, Figures]) -> list[Goal]:
    """Return what is promised against other readers, as far as the rows are there."""
    goals = [
        Goal(text, rows[name][_TIMES[what].format(reference)], limit, is_least=True)
        for name, text, reference, what, limit in _PROMISES
        if name in rows and reference in rows
    ]
    if "analyze" in rows:
        share = rows["analyze"]["rss_ratio"]
        goals.append(Goal("analyze, peak RSS / size", share, 3, is_least=False))
    if _PACKED in rows:
        ratio = over(rows[_PACKED]["load_s"], rows["traceparse"]["load_s"])
        goals.append(Goal(".json.gz against .json, load s", ratio, 1.15, is_least=False))
    return goals
