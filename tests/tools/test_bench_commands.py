"""The benchmarks of the whole command: which words are run in which order, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.contract.places import HAND
from tools import (
    bench,
    bench_across,
    bench_job,
    bench_make,
    bench_scale,
    bench_simulated,
    simulate,
)
from tools.bench_runs import RunFailedError
from tools.bench_scale import per_doubling
from tools.bench_table import Figures

STORED = HAND / "two-devices" / "k-old.json"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run benchmarks on tiny traces, with no command run: each takes as long as it is told."""
    monkeypatch.setattr(bench_make, "ROOT", tmp_path)
    monkeypatch.setattr(bench_simulated, "ROOT", tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    ran = []

    def benchmark(words, takes, *, stored=True):
        def measured(said):
            if said[0].endswith("simulate.py"):
                assert simulate.main(said[1:]) == 0
                return {}
            ran.append(list(said))
            wall_s, peak_bytes = takes(said)
            return {
                "process_s": wall_s,
                "process_cpu_s": wall_s / 2,
                "peak_rss_bytes": peak_bytes,
            }

        for module in (bench_across, bench_job, bench_scale, bench_simulated):
            monkeypatch.setattr(module, "run_python", measured)
        monkeypatch.setattr(bench_job, "import_seconds", measured)
        out = tmp_path / "out.json"
        name, *options = words.split()
        status = bench.main(
            [name, *([str(STORED)] if stored else []), *options, "--json", str(out)]
        )
        return status, json.loads(out.read_text()) if out.exists() else None

    benchmark.ran = ran  # type: ignore[attr-defined]
    return benchmark


def traces(said):
    return [Path(word) for word in said if word.endswith((".json", ".json.gz"))]


def option(said, name):
    return said[said.index(name) + 1]


def test_jobs_are_analyzed_with_one_process_and_with_all(run, capsys):
    status, record = run(
        "analyze --ranks 3 1 --size 1 --repeat 2",
        lambda said: (len(traces(said)) * 6 / int(option(said, "--jobs")), 10**8),
    )

    assert status == 0
    assert len(run.ran) == 3 * 4
    assert all("--no-cache" in said for said in run.ran)
    assert [path.name for path in max(map(traces, run.ran), key=len)] == [
        f"rank{rank}_trace.json" for rank in range(3)
    ]
    rows = record["rows"]
    assert list(rows) == [
        "1 rank, --jobs 1",
        "1 rank, --jobs 2",
        "3 ranks, --jobs 1",
        "3 ranks, --jobs 2",
    ]
    assert rows["3 ranks, --jobs 1"]["medians"]["process_s"] == 18
    assert rows["3 ranks, --jobs 1"]["medians"]["times_alone"] == 1
    assert rows["3 ranks, --jobs 2"]["medians"]["times_alone"] == 2
    assert record["rows"]["1 rank, --jobs 1"]["medians"]["bytes_per_s"] == pytest.approx(
        record["file_bytes"] / 6
    )
    printed = capsys.readouterr().out
    assert "analyze: whole command on ranks of 1.0 MB made of k-old.json" in printed
    assert "2 processes against 1, 3 ranks: 2.00 (at least 1.8: met)" in printed


def test_the_cache_is_empty_the_first_time(run, capsys):
    seen = []

    def takes(said):
        folder = Path(option(said, "--cache"))
        seen.append(folder.exists())
        folder.mkdir(exist_ok=True)
        return (1 if seen[-1] else 19), 10**8

    status, record = run("cache --ranks 2 --size 1 --repeat 4", takes)

    assert status == 0
    # of three that take turns, the first is always the only one that finds no folder
    assert len(seen) == 15
    assert seen.count(False) == 5
    rows = record["rows"]
    assert [row["medians"]["process_s"] for row in rows.values()] == [19, 1, 1]
    assert rows["second run"]["medians"]["times_first"] == 19
    printed = capsys.readouterr().out
    assert "second run against the first: 19.00 (at least 20: NOT MET)" in printed
    assert "| ... of it, imports |  1.000 |        - |     - |" in printed


def test_start_up_is_told_next_to_pandas(run, capsys):
    status, record = run(
        "start --repeat 1",
        lambda said: ({"import pandas": 2, "pass": 1}.get(said[-1], 3), 10**7),
    )

    assert status == 0
    assert run.ran[-4:] == [
        ["-c", "pass"],
        ["-m", "traceparse", "--version"],
        ["-m", "traceparse", "analyze", "--quiet", "--no-cache", "--", run.ran[-2][-1]],
        ["-c", "import pandas"],
    ]
    assert run.ran[-2][-1].endswith("-1MB.json")
    assert [goal["value"] for goal in record["goals"]] == [1.5, 1.5]
    assert "--version against import pandas, wall s: 1.50 (at most 1: NOT MET)" in (
        capsys.readouterr().out
    )


def test_memory_is_that_of_each_size_packed_and_not(run, capsys):
    def takes(said):
        (path,) = traces(said)
        size = 2 if "-2MB" in path.name else 1
        return 1 + size * path.name.endswith(".gz") / 10, (480 + 10 * size) * 10**6

    status, record = run("memory --sizes 2 1 --repeat 1", takes)

    assert status == 0
    assert list(record["rows"]) == ["1 MB", "1 MB, .json.gz", "2 MB", "2 MB, .json.gz"]
    assert {option(said, "--jobs") for said in run.ran} == {"1"}
    printed = capsys.readouterr().out
    for goal in (
        "peak MB of 2 MB: 500.00 (at most 500: met)",
        "peak MB of 2 MB against 1 MB: 1.02 (at most 1.1: met)",
        "peak MB of 2 MB, .json.gz: 500.00 (at most 500: met)",
        "peak MB of 2 MB, .json.gz against 1 MB, .json.gz: 1.02 (at most 1.1: met)",
        ".json.gz against .json, 1 MB, wall s: 1.10 (at most 1.15: met)",
        ".json.gz against .json, 2 MB, wall s: 1.20 (at most 1.15: NOT MET)",
    ):
        assert goal in printed.splitlines()


def test_scale_says_what_doubling_costs(run, capsys):
    def takes(said):
        sizes = [path.stat().st_size for path in traces(said)]
        return (len(sizes) ** 2 if len(sizes) > 1 else sum(sizes) / 1e6), 10**8

    status, record = run("scale --sizes 1 4 2 --ranks 2 4 --size 1 --repeat 1", takes)

    assert status == 0
    rows = {name: row["medians"] for name, row in record["rows"].items()}
    assert list(rows) == ["1 MB", "2 MB", "4 MB", "2 x 1 MB", "4 x 1 MB"]
    assert "per_doubling" not in rows["1 MB"]
    assert [rows[name]["per_doubling"] for name in ("2 MB", "4 MB")] == pytest.approx([2, 2])
    assert rows["4 x 1 MB"]["per_doubling"] == pytest.approx(4, rel=1e-3)
    assert rows["4 MB"]["s_per_byte"] == pytest.approx(1e-6)
    printed = capsys.readouterr().out
    assert "x per doubling of size, at worst: 2.00 (at most 2.1: met)" in printed
    assert "x per doubling of ranks, at worst: 4.00 (at most 2.1: NOT MET)" in printed


@pytest.mark.parametrize(
    ("seconds", "size", "expected"), [(8, 4, 2.828), (4, 4, 2), (1, 4, 1), (8, 1, None)]
)
def test_a_doubling_is_one_however_far_two_are_apart(seconds, size, expected):
    before: Figures = {"process_s": 1, "bytes": 100}
    after: Figures = {"process_s": seconds, "bytes": 100 * size}

    assert per_doubling(before, after) == pytest.approx(expected, abs=1e-3)


def test_what_scale_does_not_know_is_no_goal_met(run, capsys):
    def takes(said):
        if len(traces(said)) == 2:
            raise RunFailedError("MemoryError")
        return 1, 1

    status, record = run("scale --sizes 1 --ranks 1 2 --size 1 --repeat 1", takes)

    assert status == 1
    assert record["rows"]["2 x 1 MB"]["status"] == "failed: MemoryError"
    printed = capsys.readouterr().out
    assert "2 x 1 MB: failed: MemoryError" in printed.splitlines()
    assert "x per doubling of ranks, at worst: unknown (at most 2.1: NOT MET)" in printed


@pytest.mark.parametrize("name", ["analyze", "cache", "start", "memory"])
def test_a_command_that_fails_makes_the_status_1(run, name, capsys):
    def fail(_):
        raise RunFailedError("no luck")

    options = {"memory": "--sizes 1", "start": ""}.get(name, "--ranks 1 --size 1")
    status, record = run(f"{name} {options}", fail)

    assert status == 1
    assert "failed: no luck" in capsys.readouterr().out
    assert not any(goal["is_met"] for goal in record["goals"])
    assert all(row["samples"] == [] for row in record["rows"].values())


def test_start_really_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_make, "ROOT", tmp_path)
    out = tmp_path / "start.json"

    assert bench.main(["start", str(STORED), "--repeat", "1", "--json", str(out)]) == 0

    rows = json.loads(out.read_text())["rows"]
    assert all(row["status"] == "ok" for row in rows.values())
    assert all(row["samples"][0]["process_s"] > 0 for row in rows.values())


def test_all_runs_the_selection_and_returns_the_worst_status(monkeypatch, capsys):
    said = []
    main = bench.main

    def run_one(words):
        said.append(words)
        return int(words[0] == "cache")

    monkeypatch.setattr(bench, "main", run_one)

    assert main(["all", "a.json"]) == 1
    assert [words[0] for words in said] == [
        *("load", "memory", "analyze", "cache", "scale", "start")
    ]
    assert said[0] == ["load", "a.json", "--size", "200"]
    for words in said:
        assert bench._parser().parse_args(words).repeat >= 5
    assert "bench.py analyze --ranks 1 8 64" in capsys.readouterr().err


def test_jobs_that_communicate_are_simulated_and_matched(run, capsys):
    status, record = run(
        "across --ranks 8 4 --gathered 16 --layers 1 --repeat 2",
        lambda said: (len(list(Path(said[-1]).iterdir())) / 2, 3 * 10**8),
        stored=False,
    )

    assert status == 0
    assert {
        Path(said[-1]).name.rpartition("-")[0]: (
            len(list(Path(said[-1]).iterdir())),
            "--no-cache" in said,
        )
        for said in run.ran
    } == {"ddp-4x1x5": (4, True), "ddp-8x1x5": (8, True), "ddp-16x8x5": (16, False)}
    rows = {name: row["medians"] for name, row in record["rows"].items()}
    assert [row["process_s"] for row in rows.values()] == [2, 4, 8]
    assert rows["8 ranks"]["per_doubling"] == pytest.approx(2, rel=0.05)
    printed = capsys.readouterr().out
    assert "s of 8 ranks: 4.00 (at most 30: met)" in printed
    assert "8 ranks, all 3 processes at once, at most: 900.00 (at most 1000: met)" in printed
    assert "s of 16 ranks, from the cache: 8.00 (at most 60: met)" in printed


def test_a_job_that_cannot_be_simulated_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench_simulated, "ROOT", tmp_path)

    def broken(_):
        raise RunFailedError("no memory")

    monkeypatch.setattr(bench_simulated, "run_python", broken)

    assert bench.main(["across", "--ranks", "4", "--json", str(tmp_path / "out.json")]) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("cannot be simulated: no memory")
