"""How the benchmarks run what they time: one process each, in turns, and what it measures."""

from __future__ import annotations

import gzip
import json
import os
import sys

import pytest

from tools import bench_child
from tools.bench_child import ENGINES, Engine, measure, peak_rss_bytes
from tools.bench_runs import (
    Result,
    RunFailedError,
    import_seconds,
    run_child,
    run_python,
    take_turns,
)

TEXT = """{"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [
{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 9},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 8, "dur": 3},
{"ph": "X", "cat": "python_function", "name": "f", "pid": 1, "tid": 1, "ts": 5, "dur": 1}
]}"""
INSTANT = Engine("does nothing", (), lambda _: dict, lambda _: {})


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    return path


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
    for name in [name for name in sys.modules if name.partition(".")[0] == "hta"]:
        monkeypatch.delitem(sys.modules, name)  # the real one, of other tests
    config = "class ParserConfig:\n    get_default_cfg = staticmethod(lambda: 'default')\n"
    parser = (
        "def parse_trace_dataframe(path, cfg):\n    return {}, [path, cfg, 'third'], None\n"
    )
    files = {"hta/configs/parser_config": config, "hta/common/trace_parser": parser}
    stub(tmp_path, monkeypatch, {"hta/__init__": "", **files})
    load = ENGINES["hta"].prepare(str(trace))

    loaded = load()

    assert loaded[1][:2] == [str(trace), "default"]
    assert ENGINES["hta"].counts(loaded) == {"rows": 3}
    for name in [name for name in sys.modules if name.partition(".")[0] == "hta"]:
        del sys.modules[name]  # monkeypatch would bring it back


def stub(folder, monkeypatch, files):
    """Let modules of these texts be found, and forgotten afterwards."""
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        monkeypatch.delitem(sys.modules, name.replace("/", "."), raising=False)
    monkeypatch.syspath_prepend(str(folder))


def test_the_tensorboard_plugin_is_asked_for_one_profile(trace, tmp_path, monkeypatch):
    text = (
        "class RunProfileData:\n"
        "    @classmethod\n    def parse(cls, worker, span, path, cache):\n"
        "        found = cls()\n        found.events = [worker, span, path]\n"
        "        return found\n"
    )
    stub(tmp_path, monkeypatch, {"torch_tb_profiler/profiler/data": text})
    load = ENGINES["tensorboard"].prepare(str(trace))

    loaded = load()

    assert loaded.events[2] == str(trace)
    assert ENGINES["tensorboard"].counts(loaded) == {"rows": 3}
    for name in [name for name in sys.modules if name.startswith("torch_tb_profiler")]:
        del sys.modules[name]  # monkeypatch would bring it back


def test_orjson_is_given_the_bytes_inside(trace, tmp_path, monkeypatch):
    stub(tmp_path, monkeypatch, {"orjson": "import json\nloads = json.loads\n"})
    monkeypatch.delitem(sys.modules, "orjson", raising=False)

    found = measure(ENGINES["orjson"], str(trace))

    assert found["events"] == 4
    del sys.modules["orjson"]  # monkeypatch would bring it back


def test_one_core_is_one_of_those_there_are(trace, monkeypatch):
    held = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 5}, raising=False)
    monkeypatch.setattr(
        os, "sched_setaffinity", lambda who, cores: held.append((who, cores)), raising=False
    )

    assert measure(ENGINES["traceparse-core"], str(trace))["rows"] == 2
    assert held == [(0, {5})]


def test_peak_memory_grows_with_what_is_touched():
    before = peak_rss_bytes()
    held = bytearray(os.urandom(1)) * (before + 50_000_000)

    assert peak_rss_bytes() >= len(held)


def test_without_proc_the_peak_is_that_of_getrusage(monkeypatch):
    known = peak_rss_bytes()
    monkeypatch.setattr(bench_child, "_memory", dict)

    assert peak_rss_bytes() > known / 2
    assert "mapped_bytes" not in measure(INSTANT, "")


def test_the_msgspec_engine_is_timed_when_it_is_asked_for(trace, monkeypatch):
    monkeypatch.setenv("TRACEPARSE_ENGINE", "native")  # to be restored
    found = measure(ENGINES["traceparse-msgspec"], str(trace))
    assert os.environ["TRACEPARSE_ENGINE"] == "msgspec"
    assert found["rows"] == 2


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

    with pytest.raises(RunFailedError, match=r"^json\.decoder\.JSONDecodeError: Expecting"):
        run_child("json", bad)


def test_a_whole_process_is_timed_with_its_memory():
    found = run_python(["-c", "x = bytearray(200_000_000)\nsum(range(10**6))"])

    assert found["peak_rss_bytes"] > 2e8
    assert 0 < found["process_cpu_s"] <= found["process_s"] * 2


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit(3)", "exit status 3"),
        ("import os; os.abort()", "killed by signal 6"),
        ("raise SystemExit('no luck\\n \\n')", "no luck"),
    ],
)
def test_a_process_that_fails_says_why(code, said):
    with pytest.raises(RunFailedError) as failed:
        run_python(["-c", code])

    assert str(failed.value) == said


def test_this_checkout_is_what_gets_timed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traceparse.py").write_text("raise SystemExit(1)")

    run_python(["-c", "import traceparse, os; os.listdir(traceparse.__path__[0])"])


def test_imports_are_a_part_of_the_whole():
    words = ["-c", "import email.mime.text, time\ntime.perf_counter()"]

    less, more = import_seconds(["-c", "pass"]), import_seconds(words)

    assert 0 < less["process_s"] < more["process_s"]


def test_all_take_turns_in_rotating_order_and_warm_up_is_discarded():
    order = []

    def run(name):
        order.append(name)
        return {"load_s": float(len(order))}

    measures = {name: lambda name=name: run(name) for name in ("json", "hta", "analyze")}
    results = take_turns(measures, 2, say=lambda _: None)

    assert order == [
        *("analyze", "json", "hta"),
        *("json", "hta", "analyze"),
        *("hta", "analyze", "json"),
    ]
    assert [one["load_s"] for one in results["json"].samples] == [4, 9]


def test_what_fails_is_left_out_of_the_rest():
    calls = []

    def fail():
        calls.append("hta")
        raise RunFailedError("KeyError: 'ts'")

    measures = {"json": lambda: {"load_s": 1.0}, "hta": fail, "tracelens": None}
    results = take_turns(measures, 3, say=lambda _: None)

    assert calls == ["hta"]
    assert results["hta"] == Result("failed: KeyError: 'ts'", [])
    assert results["tracelens"] == Result("not installed", [])
    assert len(results["json"].samples) == 3
