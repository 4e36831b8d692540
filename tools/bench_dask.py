"""The benchmark ``dask``: a job of many ranks read by local processes, and by Dask's workers.

``python tools/bench_dask.py ENGINE KILLED FOLDER ANSWER`` is one of its runs.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import resource
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.bench_across import simulated_job
from tools.bench_outcome import Outcome
from tools.bench_runs import Sample, run_python, take_turns
from tools.bench_table import PROCESS_COLUMNS, Column, Figures, Goal, fixed, process_figures

__all__ = ["dask"]

_LOCAL, _DASK, _KILLED = "local, 2 processes", "dask, 2 workers", "dask, a worker killed"
_JOBS = 2
_UNIT = 1 if sys.platform == "darwin" else 1024


def dask(*, ranks: int, layers: int, repeat: int) -> Outcome:
    """Time the analysis of a simulated job by both engines; their reports have to be equal."""
    job = simulated_job(ranks, layers)
    results = take_turns(
        {
            _LOCAL: lambda: _run("local", job),
            _DASK: lambda: _run("dask", job),
            _KILLED: lambda: _run("dask", job, is_killed=True),
        },
        repeat,
    )
    rows = process_figures(results)
    for name, result in results.items():
        for key in ("client_rss_bytes", "analysis_s"):
            rows[name][key] = result.median(key)
    reports = {sample["report"] for result in results.values() for sample in result.samples}
    return Outcome(
        "dask",
        f"a simulated job of {ranks:,} ranks, {layers} layers",
        {"layers": layers, "ranks": ranks},
        results,
        rows,
        (
            *(column for column in PROCESS_COLUMNS if column.key != "peak_rss_bytes"),
            Column("analysis s", "analysis_s", fixed(3)),
            Column("client peak RSS MB", "client_rss_bytes", fixed(0, scale=1e-6)),
        ),
        _goals(rows, len(reports)),
        "analysis: without imports; Dask's with the start and end of its workers. The one that "
        "is killed is so when a tenth of the files are read.",
    )


def _goals(rows: Mapping[str, Figures], num_reports: int) -> list[Goal]:
    killed = rows[_KILLED]["client_rss_bytes"]
    return [
        Goal("different reports of all runs", num_reports, 1, is_least=False),
        Goal(
            f"client peak MB, {_KILLED}",
            None if killed is None else killed / 1e6,
            1000,
            is_least=False,
        ),
    ]


def _run(engine: str, job: Path, *, is_killed: bool = False) -> Sample:
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer")
        words = [__file__, engine, str(int(is_killed)), str(job), str(answer)]
        sample = run_python(words)
        return {**sample, **json.loads(answer.read_text())}


class _Killer:
    """Kills a process that reads, once a tenth of the files are read."""

    def __init__(self) -> None:
        self._left = 0

    def start(self, num_files: int, num_bytes: int) -> None:  # noqa: ARG002 - the protocol's
        self._left = num_files // 10

    def advance(self, num_bytes: int) -> None: ...

    def file_done(self) -> None:
        self._left -= 1
        if self._left == 0:
            multiprocessing.active_children()[0].kill()


def _main(engine: str, killed: str, folder: str, answer: str) -> None:
    """Analyze a job, and write what that took and a number that tells reports apart."""
    import time  # noqa: PLC0415 - after the imports of a worker, which runs none of this

    from traceparse.engine import analyze  # noqa: PLC0415 - as above
    from traceparse.report import json_text  # noqa: PLC0415 - as above

    begun = time.perf_counter()
    killer = _Killer() if killed == "1" else None
    report = analyze(folder, engine=engine, jobs=_JOBS, progress=killer)
    taken = time.perf_counter() - begun
    text = json_text.render(report).encode()
    found = {
        "analysis_s": taken,
        "client_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT,
        "report": float(int(hashlib.sha256(text).hexdigest()[:13], 16)),
    }
    Path(answer).write_text(json.dumps(found))


if __name__ == "__main__":
    _main(*sys.argv[1:])
