"""The benchmark of loading: what it makes of the samples, says, and leaves behind."""

from __future__ import annotations

import gzip
import json
import os

import pytest
import zstandard

from tools import bench, bench_facts, bench_load
from tools.bench_child import ENGINES, measure
from tools.bench_facts import BenchError, size_of, versions
from tools.bench_load import figures
from tools.bench_runs import Result
from tools.bench_table import Column, Figures, Goal, fixed, goals_text, table

EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 9},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 8, "dur": 3},
    {"ph": "X", "cat": "python_function", "name": "f", "pid": 1, "tid": 1, "ts": 5, "dur": 1},
]
TEXT = json.dumps({"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": EVENTS})


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    return path


@pytest.fixture
def only_json(monkeypatch):
    """Every engine but json.load is missing from this machine."""
    monkeypatch.setattr(bench_load, "is_installed", lambda engine: engine == "json")


def sample(load_s, **others):
    return {
        "load_s": load_s,
        "cpu_s": load_s / 2,
        "import_s": 0.5,
        "process_s": load_s + 1,
        "process_cpu_s": load_s,
        "peak_rss_bytes": 3e8,
        "imported_rss_bytes": 1e8,
        **others,
    }


def faked(times):
    return {
        name: Result(samples=[sample(load_s) for load_s in loads])
        for name, loads in times.items()
    }


# -- figures and table


def test_ratios_are_of_medians():
    rows = figures(
        faked({"traceparse": [1, 2, 90], "json": [4, 5, 6], "hta": [8, 20, 30]}), 10**8
    )

    row = rows["traceparse"]
    assert row["load_s"] == 2
    assert row["spread_ratio"] == 44.5
    assert row["bytes_per_s"] == 5e7
    assert row["times_hta"] == row["times_hta_cpu"] == 10
    assert row["times_json"] == 2.5
    assert row["times_hta_process"] == 7  # (20 + 1) / (2 + 1)
    assert row["rss_ratio"] == 3
    assert rows["hta"]["times_hta"] == 1
    assert rows["hta"]["times_json"] == 0.25


def test_without_a_reference_its_ratios_are_unknown():
    rows = figures(faked({"traceparse": [1], "json": [4]}), 10**8)

    assert rows["traceparse"]["times_hta"] is None
    assert rows["traceparse"]["times_json"] == 4


def test_table_names_every_row_and_lines_up():
    columns = [
        Column("load s", "load_s", fixed(3)),
        Column("MB", "bytes", fixed(0, scale=1e-6)),
    ]
    rows: dict[str, tuple[str, Figures]] = {
        "ours": ("ok", {"load_s": 0.5, "bytes": 2e9}),
        "json.load": ("ok", {"load_s": 2, "bytes": None}),
        "HTA": ("not installed", {}),
        "TraceLens": ("failed: out of luck", {}),
    }

    assert table("load", columns, rows).splitlines() == [
        "| load      |        load s |    MB |",
        "| --------- | ------------: | ----: |",
        "| ours      |         0.500 | 2,000 |",
        "| json.load |         2.000 |     - |",
        "| HTA       | not installed |       |",
        "| TraceLens |        failed |       |",
    ]


@pytest.mark.parametrize(
    ("value", "is_least", "said"),
    [
        (4, True, "speed: 4.00 (at least 4: met)"),
        (3.99, True, "speed: 3.99 (at least 4: NOT MET)"),
        (4, False, "speed: 4.00 (at most 4: met)"),
        (4.01, False, "speed: 4.01 (at most 4: NOT MET)"),
        (None, False, "speed: unknown (at most 4: NOT MET)"),
    ],
)
def test_goals_say_whether_they_are_met(value, is_least, said):
    assert goals_text([Goal("speed", value, 4, is_least=is_least)]) == said


# -- the command


@pytest.mark.usefixtures("only_json")
def test_load_prints_a_table_and_writes_all_samples(trace, tmp_path, capsys):
    out = tmp_path / "new" / "load.json"

    status = bench.main(["load", str(trace), "--repeat", "1", "--json", str(out)])

    assert status == 0
    printed = capsys.readouterr()
    assert "load: rank0.json.gz: 0.0 MB of JSON, 0.0 MB on disk, 4 events" in printed.out
    loaders = [name for name in ENGINES if not name.startswith("hta-")]
    assert printed.out.count("not installed") == 2 * (len(loaders) - 1)
    assert "Medians of 1 rounds after 1 of warm-up." in printed.out
    assert "against HTA's loader: unknown (at least 30: NOT MET)" in printed.out
    assert ".json.gz against .json" not in printed.out
    assert printed.err.endswith(f"wrote {out}\n")
    record = json.loads(out.read_text())
    assert record["file"]["uncompressed_bytes"] == len(TEXT)
    assert record["file"]["bytes"] == trace.stat().st_size
    assert record["file"]["events"] == 4
    assert record["machine"]["num_cpus"] >= 1
    assert record["versions"]["pyarrow"]
    assert record["rows"]["hta"]["status"] == "not installed"
    assert len(record["rows"]["json"]["samples"]) == 1
    assert record["rows"]["json"]["medians"]["times_json"] == 1
    assert record["goals"][1] == {
        "text": "native engine on one core against json.load",
        "value": None,
        "limit": 14,
        "is_least": True,
        "is_met": False,
    }


@pytest.mark.usefixtures("only_json")
def test_a_failed_engine_makes_the_status_1(tmp_path, capsys):
    bad = tmp_path / "bad.json"
    bad.write_text("[")

    words = ["load", str(bad), "--engines", "json"]
    assert bench.main([*words, "--json", str(tmp_path / "load.json")]) == 1
    assert "json.load: failed: json.decoder.JSONDecodeError" in capsys.readouterr().out


def test_failing_to_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "load.json"
    path.write_text("before")

    with pytest.raises(TypeError):
        bench.write_json({"a": object()}, path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        bench.write_json({}, tmp_path / "folder")

    assert path.read_text() == "before"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "load.json"]


def test_a_plain_file_is_loaded_packed_as_well(tmp_path, capsys):
    plain, out = tmp_path / "rank0.json", tmp_path / "out.json"
    plain.write_text(TEXT)
    words = ["load", str(plain), "--engines", "traceparse", "json", "--repeat", "1"]

    assert bench.main([*words, "--json", str(out)]) == 0

    rows = json.loads(out.read_text())["rows"]
    assert list(rows) == ["traceparse", "json", "traceparse-gz"]
    assert gzip.decompress((tmp_path / "rank0.json.gz").read_bytes()).decode() == TEXT
    assert rows["traceparse-gz"]["samples"][0]["events"] == 4
    assert ".json.gz against .json, load s: " in capsys.readouterr().out


def test_a_missing_path_is_said_in_one_line(tmp_path, capsys):
    assert bench.main(["load", str(tmp_path / "no.json")]) == 1
    assert capsys.readouterr().err == (
        f"bench.py: {tmp_path / 'no.json'}: cannot be read: No such file or directory; "
        "give another PATH\n"
    )


@pytest.mark.parametrize("repeat", ["0", "-1", "x"])
def test_repeat_is_at_least_one(repeat, capsys):
    with pytest.raises(SystemExit) as stopped:
        bench.main(["load", "--repeat", repeat])

    assert stopped.value.code == 2
    assert "argument --repeat" in capsys.readouterr().err


def test_by_default_traces_are_made_of_shared_ones_or_of_stored_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEPARSE_SHARED_TRACES", str(tmp_path))
    stored = bench_facts.default_traces()
    assert all(path.is_relative_to(bench_facts.ROOT / "fixtures") for path in stored)
    assert all(path.exists() for path in stored)

    for name in bench_facts._SHARED:
        (tmp_path / name).touch()

    assert [path.parent for path in bench_facts.default_traces()] == 3 * [tmp_path]


@pytest.mark.parametrize(
    "packed",
    [
        TEXT.encode(),
        gzip.compress(TEXT.encode()),
        gzip.compress(TEXT[:50].encode()) + gzip.compress(TEXT[50:].encode()),
        zstandard.compress(TEXT.encode()),
    ],
    ids=["plain", "gzip", "members", "zstd"],
)
def test_size_is_of_what_is_inside(tmp_path, packed):
    path = tmp_path / "trace"
    path.write_bytes(packed)

    assert size_of(path) == len(TEXT)
    assert measure(ENGINES["json"], str(path))["events"] == 4


def test_a_damaged_file_is_no_file_to_time(tmp_path):
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(os.urandom(5000))[:2000])

    with pytest.raises(
        BenchError, match=r"cut\.json\.gz: cannot be read: Compressed file ended"
    ):
        size_of(path)


def test_versions_name_only_what_is_installed(monkeypatch):
    monkeypatch.setattr(bench_facts, "_PACKAGES", ("pytest", "no-such-package"))

    assert versions().keys() - {"commit"} == {"pytest"}


def test_goals_are_those_of_loading_and_of_the_whole_command():
    times = {"traceparse": [0.5], "traceparse-core": [0.4], "traceparse-gz": [0.6]}
    others = {"traceparse-msgspec": [2], "analyze": [1], "json": [5], "orjson": [4]}
    rows = figures(faked({**times, **others, "hta": [12], "tracelens": [5]}), 10**8)

    goals = bench_load.load_goals(rows)

    assert [(goal.value, goal.is_met) for goal in goals] == [
        (pytest.approx(30), True),
        (12.5, False),
        (12.5, True),
        (10, True),
        (6, True),
        (12, True),
        (6.5, True),  # (12 + 1) / (1 + 1)
        (3, True),
        (1.2, False),
    ]


def test_goals_of_what_was_not_timed_are_not_there():
    rows = figures(faked({"traceparse-core": [0.5], "json": [5]}), 10**8)

    assert bench_load.load_goals(rows) == [
        Goal("native engine on one core against json.load", 10, 14, is_least=True)
    ]
