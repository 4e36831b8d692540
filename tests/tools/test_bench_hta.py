from __future__ import annotations

import json

import pytest

from tests.traces import kernel, launch, op, step, write
from tools import bench
from tools.bench_load import load


@pytest.mark.slow
def test_both_ways_give_the_same_rows(tmp_path, capsys):
    pytest.importorskip("hta")
    events = [step(1, 90, 100), op(95, 20), launch(100, correlation=5)]
    path = write(tmp_path / "t.json", [*events, kernel(110, 20, correlation=5)])
    record = tmp_path / "hta.json"
    status = bench.main(["hta", str(path), "--repeat", "1", "--json", str(record)])
    rows = json.loads(record.read_text())["rows"]
    assert status == 0, capsys.readouterr().out
    assert {name: row["medians"]["rows"] for name, row in rows.items()} == {
        "hta-bridge": 4,
        "hta-frames": 4,
        "hta-analysis": 4,
    }
    assert rows["hta-analysis"]["medians"]["times_hta"] == 1
    assert all(row["medians"]["times_hta"] > 0 for row in rows.values())


def test_without_hta_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tools.bench_hta.is_installed", lambda _: False)
    path = write(tmp_path / "t.json", [op(10, 5)])
    assert bench.main(["hta", str(path), "--json", str(tmp_path / "hta.json")]) == 1
    assert "pip install 'traceparse[hta]'" in capsys.readouterr().err


def test_loading_is_timed_without_them(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.bench_load.is_installed", lambda _: False)
    outcome = load(write(tmp_path / "t.json", [op(10, 5)]), repeat=1)
    assert "hta" in outcome.results
    assert not [name for name in outcome.results if name.startswith("hta-")]
