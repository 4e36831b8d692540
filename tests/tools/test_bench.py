"""The benchmark harness: what it runs, what it makes of the samples, what it leaves behind."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from subprocess import CalledProcessError

import pytest
import zstandard

from tests.contract.places import HAND
from tools import bench, bench_child, bench_facts, bench_job, bench_load, bench_make, bench_runs
from tools.bench_child import ENGINES, Engine, measure, peak_rss_bytes
from tools.bench_facts import BenchError, default_trace, size_of, versions
from tools.bench_job import run_command
from tools.bench_make import make_trace
from tools.bench_runs import EngineFailedError, Plan, Result, run_child, time_engines
from tools.bench_table import Goal, figures, goals_text, table
from tools.layouts import LAYOUTS, Num
from traceparse.ingest import read_trace

EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 9},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 8, "dur": 3},
    {"ph": "X", "cat": "python_function", "name": "f", "pid": 1, "tid": 1, "ts": 5, "dur": 1},
]
TEXT = json.dumps({"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": EVENTS})
INSTANT = Engine("does nothing", (), lambda _: dict, lambda _: {})


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    return path


@pytest.fixture
def only_json(monkeypatch):
    """Every engine but json.load is missing from this machine."""
    monkeypatch.setattr(bench_runs, "is_installed", lambda engine: engine == "json")


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
        name: Result(name, samples=[sample(load_s) for load_s in loads])
        for name, loads in times.items()
    }


# -- the child


@pytest.mark.parametrize(
    ("engine", "rows"), [("traceparse", 2), ("traceparse-all", 3), ("json", 4)]
)
def test_child_counts_what_it_loaded(trace, engine, rows):
    found = measure(ENGINES[engine], str(trace))

    assert (found["rows"], found["events"]) == (rows, 4)
    assert found["load_s"] > 0
    assert found["peak_rss_bytes"] >= found["imported_rss_bytes"] > 1_000_000
    assert found["peak_rss_bytes"] > found.get("mapped_bytes", 0)


def test_child_runs_the_whole_command(trace, capsys):
    found = measure(ENGINES["analyze"], str(trace))

    assert json.loads(capsys.readouterr().out)["run"]["ranks"] == [0]
    assert "rows" not in found


def test_hta_is_called_with_its_default_configuration(trace, tmp_path, monkeypatch):
    for folder in ("hta/common", "hta/configs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "hta/configs/parser_config.py").write_text(
        "class ParserConfig:\n    get_default_cfg = staticmethod(lambda: 'default')\n"
    )
    (tmp_path / "hta/common/trace_parser.py").write_text(
        "def parse_trace_dataframe(path, cfg):\n    return {}, [path, cfg, 'third'], None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    load = ENGINES["hta"].prepare(str(trace))

    loaded = load()

    assert loaded[1][:2] == [str(trace), "default"]
    assert ENGINES["hta"].counts(loaded) == {"rows": 3}
    for name in [name for name in sys.modules if name.partition(".")[0] == "hta"]:
        monkeypatch.delitem(sys.modules, name)


def test_peak_memory_grows_with_what_is_touched():
    before = peak_rss_bytes()
    held = bytearray(os.urandom(1)) * (before + 50_000_000)

    assert peak_rss_bytes() >= len(held)


def test_without_proc_the_peak_is_that_of_getrusage(monkeypatch):
    known = peak_rss_bytes()
    monkeypatch.setattr(bench_child, "_memory", dict)

    assert peak_rss_bytes() > known / 2
    assert "mapped_bytes" not in measure(INSTANT, "")


# -- the harness


def test_run_child_adds_the_whole_process(trace):
    found = run_child("json", trace)

    assert found["events"] == 4
    assert found["process_s"] > found["load_s"]
    assert found["process_cpu_s"] > 0


def test_peak_memory_of_a_child_is_its_own(trace):
    held = b"x" * 200_000_000  # what ru_maxrss of the child would not be below

    assert run_child("json", trace)["peak_rss_bytes"] < len(held)


def test_run_child_says_in_one_line_why_it_failed(tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents": [')

    with pytest.raises(EngineFailedError, match=r"^json\.decoder\.JSONDecodeError: Expecting"):
        run_child("json", bad)


def test_engines_take_turns_in_rotating_order_and_warm_up_is_discarded(trace, monkeypatch):
    monkeypatch.setattr(bench_runs, "is_installed", lambda _: True)
    order = []

    def run(engine, _):
        order.append(engine)
        return sample(len(order))

    plan = Plan(trace, ("json", "hta", "analyze"), repeat=2, warm_up=1)
    results = time_engines(plan, run=run, say=lambda _: None)

    assert order == [
        *("analyze", "json", "hta"),
        *("json", "hta", "analyze"),
        *("hta", "analyze", "json"),
    ]
    assert [one["load_s"] for one in results["json"].samples] == [4, 9]


def test_an_engine_that_fails_is_left_out_of_the_rest(trace, monkeypatch):
    monkeypatch.setattr(bench_runs, "is_installed", lambda _: True)
    calls = []

    def run(engine, _):
        calls.append(engine)
        if engine == "hta":
            raise EngineFailedError("KeyError: 'ts'")
        return sample(1)

    results = time_engines(Plan(trace, ("json", "hta"), repeat=3), run=run, say=lambda _: None)

    assert calls.count("hta") == 1
    assert results["hta"].status == "failed: KeyError: 'ts'"
    assert results["hta"].samples == []
    assert len(results["json"].samples) == 3


# -- figures and table


def test_ratios_are_of_medians():
    rows = figures(
        faked({"traceparse": [1, 2, 90], "json": [4, 5, 6], "hta": [8, 20, 30]}), 10**8
    )

    row = rows["traceparse"]
    assert row["load_s"] == 2
    assert row["load_spread_ratio"] == 44.5
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


def test_table_names_every_engine_and_lines_up():
    results = faked({"traceparse": [0.5], "json": [2]})
    results["hta"] = Result("hta", "not installed")
    results["analyze"] = Result("analyze", "failed: out of luck")

    lines = table(results, figures(results, 10**8)).splitlines()

    assert len({len(line) for line in lines}) == 1
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head, _, ours, _, hta, analyze = cells
    shown = dict(zip(head, ours, strict=True))
    assert shown["load s"] == "0.500"
    assert shown["MB/s"] == "200"
    assert shown["x json.load"] == "4.0"
    assert shown["x HTA"] == "-"
    assert shown["peak RSS MB"] == "300"
    assert shown["RSS / size"] == "3.00"
    assert hta[:2] == ["HTA parse_trace_dataframe", "not installed"]
    assert analyze[:2] == ["traceparse analyze", "failed"]


@pytest.mark.parametrize(
    ("value", "is_least", "said"),
    [
        (4, True, "speed: 4.00 (at least 4: met)"),
        (3.99, True, "speed: 3.99 (at least 4: NOT MET)"),
        (3.99, False, "speed: 3.99 (below 4: met)"),
        (4, False, "speed: 4.00 (below 4: NOT MET)"),
        (None, False, "speed: unknown (below 4: NOT MET)"),
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
    assert "rank0.json.gz: 0.0 MB of JSON, 0.0 MB on disk, 4 events" in printed.out
    assert printed.out.count("not installed") == 2 * (len(ENGINES) - 1)
    assert "Medians of 1 rounds after 1 of warm-up." in printed.out
    assert "in the page cache" in printed.out
    assert printed.err.endswith(f"wrote {out}\n")
    record = json.loads(out.read_text())
    assert record["file"]["uncompressed_bytes"] == len(TEXT)
    assert record["file"]["bytes"] == trace.stat().st_size
    assert record["file"]["events"] == 4
    assert record["machine"]["num_cpus"] >= 1
    assert record["versions"]["pyarrow"]
    assert record["engines"]["hta"]["status"] == "not installed"
    assert len(record["engines"]["json"]["samples"]) == 1
    assert record["engines"]["json"]["medians"]["times_json"] == 1


@pytest.mark.usefixtures("only_json")
def test_a_failed_engine_makes_the_status_1(tmp_path, capsys):
    bad = tmp_path / "bad.json"
    bad.write_text("[")

    assert bench.main(["load", str(bad), "--json", str(tmp_path / "load.json")]) == 1
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


def test_without_traces_it_asks_for_a_path(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TRACEPARSE_SHARED_TRACES", str(tmp_path))

    assert bench.main(["load"]) == 1
    assert capsys.readouterr().err == (
        f"bench.py: {tmp_path}: no traces there to choose from; give the PATH of a trace, or "
        "set TRACEPARSE_SHARED_TRACES to a folder of them\n"
    )


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


def test_default_trace_is_the_largest_when_uncompressed(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEPARSE_SHARED_TRACES", str(tmp_path))
    (tmp_path / "oracle").mkdir()
    (tmp_path / "job").mkdir()
    (tmp_path / "small.json").write_bytes(os.urandom(2000))
    (tmp_path / "job" / "large.json.gz").write_bytes(gzip.compress(b" " * 5000))
    (tmp_path / "oracle" / "large.json").write_bytes(b" " * 9000)
    (tmp_path / "LICENSES.md").write_bytes(b" " * 9000)

    assert default_trace() == tmp_path / "job" / "large.json.gz"


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
    times = {"traceparse": [0.5], "traceparse-msgspec": [2], "analyze": [1], "json": [5]}
    rows = figures(faked({**times, "hta": [9]}), 10**8)

    goals = bench_load.load_goals(rows)

    assert [(goal.value, goal.is_met) for goal in goals] == [
        (18, False),
        (10, False),
        (4.5, False),
        (9, True),
        (5, True),
        (3, False),
    ]


def test_the_msgspec_engine_is_timed_when_it_is_asked_for(trace, monkeypatch):
    monkeypatch.setenv("TRACEPARSE_ENGINE", "native")  # to be restored
    found = measure(ENGINES["traceparse-msgspec"], str(trace))
    assert os.environ["TRACEPARSE_ENGINE"] == "msgspec"
    assert found["rows"] == 2


# -- large traces


STORED = HAND / "two-devices" / "k-old.json"


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("list", "leg")])
def test_a_large_trace_repeats_a_small_one(tmp_path, layout):
    source = json.loads(STORED.read_text(), parse_float=Num)
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    make_trace(source, small, size=1, layout=layout)
    make_trace(source, large, size=5 * small.stat().st_size, layout=layout)
    one, many = json.loads(small.read_text()), json.loads(large.read_text())
    assert {k: v for k, v in one.items() if k != "traceEvents"} == {
        k: v for k, v in many.items() if k != "traceEvents"
    }
    before, after = read_trace(STORED), read_trace(large)
    times = after.health.events // before.health.events
    assert times >= 4
    for name, rows in before.tables.items():
        assert after.tables[name].num_rows == times * rows.num_rows
    events = after.tables["device_events"]
    lasts = [end - start for start, end in zip(*spans(before), strict=True)]
    assert [end - start for start, end in zip(*spans(after), strict=True)] == times * lasts
    assert len(set(events["correlation"].to_pylist())) == times * len(
        set(before.tables["device_events"]["correlation"].to_pylist())
    )
    assert after.health.repaired == {}


def spans(trace):
    events = trace.tables["device_events"]
    return events["start_ns"].to_pylist(), events["end_ns"].to_pylist()


def test_a_large_trace_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_make, "ROOT", tmp_path)
    made = bench_make.larger_trace(STORED, 1, "k-new")
    assert made == tmp_path / "bench-out" / "traces" / "k-old-k-new-1MB.json"
    assert made.stat().st_size > 10**6
    made.write_text("kept")
    assert bench_make.larger_trace(STORED, 1, "k-new").read_text() == "kept"


def test_no_such_layout():
    with pytest.raises(BenchError, match="no such layout: k-odd; there are k-2021, k-old"):
        bench_make.larger_trace(STORED, 1, "k-odd")


# -- the whole command


def test_a_command_is_timed_with_its_memory():
    run = run_command(["-c", "x = bytearray(200_000_000)\nsum(range(10**6))"])
    assert run.peak_bytes > 2e8
    assert 0 < run.cpu_s <= run.wall_s * 2
    with pytest.raises(CalledProcessError):
        run_command(["-c", "raise SystemExit(3)"])


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """Let no command run; keep the words of each."""
    ran = []

    def run(words):
        ran.append(list(words))
        return bench_job.Run(len(ran), 1.0, 10**6 * len(ran))

    monkeypatch.setattr(bench_make, "ROOT", tmp_path)
    monkeypatch.setattr(bench_job, "run_command", run)
    return ran


def test_a_job_is_analyzed_in_all_ways(commands, tmp_path, capsys):
    out = tmp_path / "job.json"
    words = ["job", str(STORED), "--files", "3", "--size", "1", "--repeat", "2"]
    assert bench.main([*words, "--json", str(out)]) == 0
    assert len(commands) == 3 * 7
    first = commands[:7]
    assert [words[-2:] for words in first[:2]] == [["--jobs", "1"], ["--jobs", "2"]]
    assert ["--no-cache" in words for words in first[:5]] == [True, True, False, False, True]
    folder = Path(first[0][3])
    assert sorted(path.name for path in folder.iterdir()) == [
        f"rank{rank}_trace.json" for rank in range(3)
    ]
    rows = json.loads(out.read_text())["rows"]
    assert rows["--jobs 1"] == {"wall_s": 11.5, "cpu_s": 1.0, "peak_bytes": 11.5e6}
    printed = capsys.readouterr().out
    assert "| --jobs 1        |  11.50 |  1.00 |      12 |" in printed
    assert "2 processes against 1: 0.92 (at least 1.8: NOT MET)" in printed


def test_the_cache_is_empty_the_first_time(monkeypatch, tmp_path):
    seen = []

    def run(words):
        if "--cache" in words:
            folder = Path(words[-1])
            seen.append(folder.exists())
            folder.mkdir(exist_ok=True)
        return bench_job.Run(1, 1, 1)

    monkeypatch.setattr(bench_make, "ROOT", tmp_path)
    monkeypatch.setattr(bench_job, "run_command", run)
    bench_job.job(STORED, files=1, megabytes=1, repeat=2)
    assert seen == [False, True] * 3


def test_memory_is_that_of_each_size(commands, tmp_path, capsys):
    words = ["memory", str(STORED), "--sizes", "2", "1", "--repeat", "1"]
    assert bench.main([*words, "--json", str(tmp_path / "memory.json")]) == 0
    names = [Path(words[3]).name for words in commands]
    assert names == ["k-old-k-old-1MB.json", "k-old-k-old-2MB.json"] * 2
    printed = capsys.readouterr().out
    assert "peak MB of the largest: 4.00 (below 500: met)" in printed
    assert "... against the smallest: 1.33 (below 1.1: NOT MET)" in printed


@pytest.mark.usefixtures("commands")
def test_a_command_that_fails_is_said(monkeypatch, tmp_path, capsys):
    def fail(words):
        raise CalledProcessError(7, words)

    monkeypatch.setattr(bench_job, "run_command", fail)
    words = ["memory", str(STORED), "--sizes", "1", "--json", str(tmp_path / "m.json")]
    assert bench.main(words) == 1
    assert "returned non-zero exit status 7" in capsys.readouterr().err
    assert not (tmp_path / "m.json").exists()
