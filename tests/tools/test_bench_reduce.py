"""The benchmark of what is done across ranks: what it times, and that it checks the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import bench, bench_reduce, bench_simulated, simulate
from tools.bench_reduce import exponent, rest_of
from tools.bench_runs import RunFailedError, run_python

MESH = ["mesh", "--ranks", "64", "--layers", "1", "--steps", "2", "--digests"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("digests")
    assert simulate.main([*MESH, "--out", str(made)]) == 0
    return made


def child(folder, answer):
    return run_python([str(bench_reduce._CHILD), str(folder), "64", str(answer)])


def test_it_times_all_and_checks_the_report(folder, tmp_path):
    sample = child(folder, tmp_path / "answer")
    found = json.loads((tmp_path / "answer").read_text())
    assert found["assemble_s"] >= found["measure_s"] >= found["what_if_s"] >= found["graph_s"]
    assert sample["peak_rss_bytes"] >= found["reduced_rss_bytes"] >= found["loaded_rss_bytes"]
    assert 0 < found["html_bytes"] < 5e6
    rest = rest_of(found)
    assert rest["replays_s"] == found["what_if_s"] - found["graph_s"]


def test_what_is_not_true_is_told(folder, tmp_path):
    truth = json.loads((folder / "truth.json").read_text())
    wrong = {
        "clocks are not found": {"offsets_ns": truth["offsets_ns"] | {"9": 1}},
        "stragglers are": {"copies": [0, 1, 2], "straggler": {"rank": 64, "cause": "none"}},
    }
    for said, change in wrong.items():
        other = tmp_path / said.split()[0]
        other.mkdir()
        for path in folder.glob("*.parquet"):
            (other / path.name).symlink_to(path)
        (other / "truth.json").write_text(json.dumps(truth | change))
        with pytest.raises(RunFailedError, match=said):
            child(other, tmp_path / "answer")


def test_growth_is_said_as_a_power_of_the_ranks(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench_simulated, "ROOT", tmp_path)

    def measured(words):
        if words[0].endswith("simulate.py"):
            folder = words[words.index("--out") + 1]
            (tmp_path / folder).mkdir(parents=True)
            return {}
        ranks = int(words[2])
        figures = {"assemble_s": ranks**1.5, "load_s": 1.0, "html_bytes": 6e6}
        Path(words[3]).write_text(json.dumps(figures))
        return {"process_s": 1.0, "process_cpu_s": 1.0, "peak_rss_bytes": 10**6 * ranks}

    for module in (bench_reduce, bench_simulated):
        monkeypatch.setattr(module, "run_python", measured)
    words = ["reduce", "--ranks", "1024", "64", "--json", str(tmp_path / "out.json")]
    assert bench.main(words) == 0
    record = json.loads((tmp_path / "out.json").read_text())
    rows = {name: row["medians"] for name, row in record["rows"].items()}
    assert rows["1,024 ranks"]["exponent"] == pytest.approx(1.5)
    printed = capsys.readouterr().out
    assert (
        "making the report, s: ranks^1.50, at last ranks^1.50; peak RSS: ranks^1.00" in printed
    )
    assert "MB of the page, 1,024 ranks: 6.00 (at most 5: NOT MET)" in printed
    assert "64 ranks: " not in printed.replace("1,024 ranks: ", "")


def test_what_is_unknown_has_no_exponent():
    assert exponent({"a": None, "ranks": 2}, {"a": 4.0, "ranks": 4}, "a") is None
    assert exponent({"a": 1.0, "ranks": 4}, {"a": 4.0, "ranks": 4}, "a") is None


def test_a_mesh_that_cannot_be_simulated_is_one_line(tmp_path, capsys):
    out = str(tmp_path / "out.json")
    assert bench.main(["reduce", "--ranks", "33", "--json", out]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("bench.py: mesh-33x8x3-")
