"""The benchmark ``reduce``: from the digests of all ranks to a report, on a simulated mesh."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log
from pathlib import Path

from tools.bench_outcome import Outcome
from tools.bench_runs import Result, Sample, run_python, take_turns
from tools.bench_simulated import simulated
from tools.bench_table import Column, Figures, Goal, fixed, over, process_figures

__all__ = ["exponent", "reduce", "rest_of"]

ROOT = Path(__file__).resolve().parent.parent
_CHILD = ROOT / "tools" / "bench_reduce_child.py"
_SEED, _LAYERS, _STEPS = 1, 8, 3
_LARGE = 1024  # ranks that a promise is about
_PAGE_MB = 5
_GROW = {
    "assemble_s": "making the report, s",
    "peak_rss_bytes": "peak RSS",
    "load_s": "loading, s",
}
_SECONDS = {
    "load": "load s",
    "assemble": "report s",
    "across": "across s",
    "graph": "graph s",
    "replays": "replays s",
    "stragglers": "stragglers s",
    "rest": "rest s",
    "json": "JSON s",
    "html": "page s",
}
_SIZES = {"json": ("JSON MB", 1), "html": ("page MB", 2)}


def reduce(*, ranks: Sequence[int], repeat: int) -> Outcome:
    """Time the reduce stage on ever more ranks, whose digests come from the cache's files.

    All seconds but the last column's are of the processor, as little runs beside it.
    """
    jobs = {f"{count:,} ranks": count for count in sorted(ranks)}
    folders = {name: _digests(count) for name, count in jobs.items()}
    results = take_turns(
        {name: lambda name=name: _once(folders[name], jobs[name]) for name in jobs},  # type: ignore[misc]
        repeat,
    )
    rows = process_figures(results)
    for name, row in rows.items():
        row.update(_figures(results[name]) | {"ranks": jobs[name]})
    for before, after in pairwise(rows.values()):
        after["exponent"] = exponent(before, after, "assemble_s")
    return Outcome(
        "reduce",
        f"digests of a mesh from the cache's files to a report, {_LAYERS} layers a stage, "
        f"{_STEPS} steps",
        {"layers": _LAYERS, "steps": _STEPS, "seed": _SEED},
        results,
        rows,
        (
            Column("calls k", "calls", fixed(0, scale=1e-3)),
            *(Column(title, f"{name}_s", fixed(1)) for name, title in _SECONDS.items()),
            *(
                Column(title, f"{name}_bytes", fixed(decimals, scale=1e-6))
                for name, (title, decimals) in _SIZES.items()
            ),
            Column("peak RSS MB", "peak_rss_bytes", fixed(0, scale=1e-6)),
            Column("exponent", "exponent", fixed(2)),
            Column("wall s", "process_s", fixed(1)),
        ),
        _goals(list(rows.values())),
        "Seconds are of the processor, but for wall s, that of the whole process. exponent: of "
        "report s,\nin ranks, from the row before. The report is checked against what was "
        "planted: every clock's offset,\nhow often and how long every group communicates, who "
        "is waited for and why (of 64 ranks not\nthe latter: one of two copies is last as "
        "often by chance).\n" + _growth(list(rows.values())),
    )


def _once(folder: Path, ranks: int) -> Sample:
    with tempfile.TemporaryDirectory() as place:
        answer = Path(place, "answer")
        sample = run_python([str(_CHILD), str(folder), str(ranks), str(answer)])
        return {**sample, **json.loads(answer.read_text())}


def _figures(result: Result) -> Figures:
    keys = {key for sample in result.samples for key in sample}
    found: Figures = {key: result.median(key) for key in sorted(keys)}
    return found | rest_of(found)


def rest_of(found: Mapping[str, float | None]) -> Figures:
    """Return what is left of a time without what is timed within it."""
    graph, what_if = (found.get(f"{name}_s") for name in ("graph", "what_if"))
    shown = [found.get(f"{name}_s") for name in ("across", "what_if", "stragglers")]
    whole = found.get("assemble_s")
    known = [one for one in shown if one is not None]
    return {
        "replays_s": None if graph is None or what_if is None else what_if - graph,
        "rest_s": None if whole is None or len(known) < len(shown) else whole - sum(known),
    }


def exponent(before: Figures, after: Figures, key: str) -> float | None:
    """Return with which power of the ranks a figure grows from one row to another."""
    more, larger = over(after[key], before[key]), over(after["ranks"], before["ranks"])
    if not more or not larger or larger == 1:
        return None
    return log(more) / log(larger)


def _growth(rows: Sequence[Figures]) -> str:
    """Say how figures grow from the first row, and from the last but one, to the last."""
    if len(rows) < 2:
        return ""
    found = []
    for key, title in _GROW.items():
        over_all, at_last = (exponent(rows[at], rows[-1], key) for at in (0, -2))
        if over_all is not None and at_last is not None:
            found.append(f"{title}: ranks^{over_all:.2f}, at last ranks^{at_last:.2f}")
    return "; ".join(found)


def _goals(rows: Sequence[Figures]) -> list[Goal]:
    goals = []
    for row in rows:
        ranks = row["ranks"] or 0
        if ranks < _LARGE:
            continue
        whole = [row.get(name) for name in ("load_s", "assemble_s")]
        known = [one for one in whole if one is not None]
        goals += [
            Goal(
                f"ms a rank, {ranks:,.0f} ranks, digests to report",
                over(sum(known) * 1e3, ranks) if len(known) == len(whole) else None,
                40,
                is_least=False,
            ),
            Goal(
                f"peak GB, {ranks:,.0f} ranks",
                over(row["peak_rss_bytes"], 1e9),
                16,
                is_least=False,
            ),
            Goal(
                f"MB of the page, {ranks:,.0f} ranks",
                over(row.get("html_bytes"), 1e6),
                _PAGE_MB,
                is_least=False,
            ),
        ]
    return goals


def _digests(ranks: int) -> Path:
    """Return a folder with the digests of a mesh, which stays in ``bench-out/digests``."""
    sizes = {"ranks": ranks, "layers": _LAYERS, "steps": _STEPS, "seed": _SEED}
    words = [word for key, size in sizes.items() for word in (f"--{key}", str(size))]
    stem = f"mesh-{ranks}x{_LAYERS}x{_STEPS}"
    return simulated(
        "digests", stem, ["mesh", "--digests", *words], rooms=("ingest", "rank", "work")
    )
