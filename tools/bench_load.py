"""The benchmark ``load``: one trace file through traceparse, json.load and HTA."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tools.bench_child import ENGINES
from tools.bench_facts import machine, trace_facts, versions
from tools.bench_runs import Plan, Result, time_engines
from tools.bench_table import Figures, Goal, figures, goals_text, table

__all__ = ["load", "load_goals", "load_text"]

_METHOD = """\
Medians of {repeat} rounds after {warm_up} of warm-up. Every run is a fresh process, the engines
take turns in an order that rotates, and the file was read once before: it is in the page cache.
load: the call alone; CPU: its user and system seconds; spread: slowest less fastest load, over
the median; import: the modules that the engine needs; process: from start to exit.
x: how many times as fast, by load (or by process). MB/s: of uncompressed JSON; size: its bytes.
peak RSS: of the whole process, mapped: what of it is files, that is shared libraries; the same
ones count more when freshly installed than when read back from disk. MB are 10^6 bytes.
rows: json.load gives every event, as a dict. HTA keeps what has a duration and a category, and
rounds to microseconds. traceparse keeps what it analyzes, to the nanosecond; "all tables" has
python_function and counter events as well."""


def load(path: Path, repeat: int) -> dict[str, Any]:
    """Time every engine on the file, print the table, return all there is to keep."""
    facts = trace_facts(path)
    plan = Plan(path, tuple(ENGINES), repeat)
    busy_before = os.getloadavg()[0]
    results = time_engines(plan, say=_progress)
    record = {
        "benchmark": "load",
        "file": {**facts, "events": _events(results.values())},
        "machine": {**machine(), "load_average": [busy_before, os.getloadavg()[0]]},
        "versions": versions(),
        "repeat": plan.repeat,
        "warm_up": plan.warm_up,
    }
    rows = figures(results, facts["uncompressed_bytes"])
    print(load_text(record, results, rows))
    return {**record, "engines": _engines(results, rows)}


def _progress(text: str) -> None:
    print(text, file=sys.stderr)


def _events(results: Iterable[Result]) -> int | None:
    """Return the number of events in the file, from the first engine that counts them."""
    counts = (result.median("events") for result in results)
    return next((int(count) for count in counts if count is not None), None)


def _engines(
    results: Mapping[str, Result], rows: Mapping[str, Figures]
) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "title": ENGINES[name].title,
            "status": result.status,
            "medians": rows[name],
            "samples": result.samples,
        }
        for name, result in results.items()
    }


def load_goals(rows: Mapping[str, Figures]) -> list[Goal]:
    """Return what is promised against HTA's loader and Python's."""
    row, reader = rows["analyze"], rows["traceparse"]
    return [
        Goal("native engine against HTA's loader", reader["times_hta"], 30, is_least=True),
        Goal("... against json.load", reader["times_json"], 14, is_least=True),
        Goal(
            "msgspec engine against HTA's loader",
            rows["traceparse-msgspec"]["times_hta"],
            5.5,
            is_least=True,
        ),
        Goal("analyze against HTA's loader, by load", row["times_hta"], 4, is_least=True),
        Goal("... by whole process", row["times_hta_process"], 4, is_least=True),
        Goal("analyze, peak RSS / size", row["rss_ratio"], 3, is_least=False),
    ]


def load_text(
    record: Mapping[str, Any], results: Mapping[str, Result], rows: Mapping[str, Figures]
) -> str:
    """Write the table with all that is needed to believe it."""
    absent = [
        f"{ENGINES[name].title}: {result.status}"
        for name, result in results.items()
        if result.status != "ok"
    ]
    return "\n".join(
        [
            *_head(record),
            "",
            table(results, rows),
            *absent,
            "",
            goals_text(load_goals(rows)),
            "",
            _METHOD.format_map(record),
        ]
    )


def _head(record: Mapping[str, Any]) -> list[str]:
    file, host = record["file"], record["machine"]
    events = "unknown number of" if file["events"] is None else f"{file['events']:,}"
    before, after = host["load_average"]
    return [
        f"{file['name']}: {file['uncompressed_bytes'] / 1e6:.1f} MB of JSON, "
        f"{file['bytes'] / 1e6:.1f} MB on disk, {events} events",
        f"{host['cpu']}, {host['num_cpus']} CPUs, load average {before:.1f} before and "
        f"{after:.1f} after; {host['system']}; {host['python']}",
        ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
    ]
