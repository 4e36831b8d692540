from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.traces import write_rank
from tools import bench, bench_dask, bench_simulated, simulate


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the benchmark with no analysis run: each gives the report that it is told."""
    monkeypatch.setattr(bench_simulated, "ROOT", tmp_path)

    def benchmark(report_of):
        def simulated(said):
            assert simulate.main(said[1:]) == 0
            return {}

        def measured(said):
            _, engine, killed, job, answer = said
            assert len(list(Path(job).glob("rank*_trace.json"))) == 4
            found = {"analysis_s": 2, "client_rss_bytes": 10**8}
            Path(answer).write_text(json.dumps({**found, "report": report_of(engine, killed)}))
            return {"process_s": 3, "process_cpu_s": 1, "peak_rss_bytes": 10**9}

        monkeypatch.setattr(bench_simulated, "run_python", simulated)
        monkeypatch.setattr(bench_dask, "run_python", measured)
        out = tmp_path / "out.json"
        words = ["dask", "--ranks", "4", "--layers", "2", "--repeat", "1", "--json", str(out)]
        return bench.main(words), json.loads(out.read_text())

    return benchmark


def test_both_engines_run_and_a_worker_is_killed(run, capsys):
    _, record = run(lambda _engine, _killed: 5.0)
    rows = record["rows"]
    assert list(rows) == ["local, 2 processes", "dask, 2 workers", "dask, a worker killed"]
    said = capsys.readouterr().out
    assert "different reports of all runs: 1.00 (at most 1: met)" in said
    assert "client peak MB, dask, a worker killed: 100.00 (at most 1000: met)" in said


def test_reports_that_differ_are_seen(run, capsys):
    run(lambda _engine, killed: float(killed))
    assert "different reports of all runs: 2.00 (at most 1: NOT MET)" in capsys.readouterr().out


def test_a_run_tells_its_report_by_a_number(tmp_path):
    found: list[dict[str, float]] = []
    for ranks in (1, 1, 2):
        folder = tmp_path / f"run{len(found) // 2}"
        folder.mkdir(exist_ok=True)
        for rank in range(ranks):
            write_rank(folder, rank, ranks)
        bench_dask._main("local", "0", str(folder), str(tmp_path / "answer"))
        found.append(json.loads((tmp_path / "answer").read_text()))
    assert found[0]["report"] == found[1]["report"] != found[2]["report"]
    assert all(one["client_rss_bytes"] > 10**7 for one in found)


def test_a_tenth_of_the_files_is_read_before_one_is_killed(monkeypatch):
    killed = []

    class _Process:
        def kill(self):
            killed.append(self)

    monkeypatch.setattr("multiprocessing.active_children", lambda: [_Process()])
    killer = bench_dask._Killer()
    killer.start(30, 1)
    for number in range(30):
        killer.advance(1)
        killer.file_done()
        assert len(killed) == (number >= 2)
