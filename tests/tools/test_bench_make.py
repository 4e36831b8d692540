"""Large traces that are made of small ones: valid, exact, and in the layout of their writer."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal

import pytest

from tests.contract.places import GLOO, HAND
from tools import bench, bench_make
from tools.bench_facts import BenchError
from tools.bench_make import body, gzipped, larger_job, larger_trace, write_job, write_trace
from tools.layouts import LAYOUTS, Num
from traceparse.ingest import read_trace

STORED = HAND / "two-devices" / "k-old.json"
LAYOUTS_WITH_HEADER = [name for name in LAYOUTS if name not in ("list", "leg")]


def source(path):
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return json.loads(text, parse_float=Num)


def trace_of(*events):
    return {"traceEvents": list(events)}


def event(name, ts, pid, **others):
    cat = others.pop("cat", "cpu_op")
    args = {"args": others.pop("args")} if "args" in others else {}
    times = {"ts": Num(ts), "dur": Num("2.500")}
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": pid,
        "tid": pid,
        **times,
        **others,
        **args,
    }


TRAINING = trace_of(
    {"ph": "M", "name": "process_name", "ts": Num("0.000"), "pid": 7, "args": {"name": "a"}},
    event("ProfilerStep#6", "100.000", 7, cat="user_annotation"),
    event("aten::mm", "100.001", 7, args={"External id": 3, "Ev Idx": 0}),
    event("launch", "101.000", 7, cat="cuda_runtime", args={"correlation": 40}),
    {
        "ph": "s",
        "id": 40,
        "pid": 7,
        "tid": 7,
        "ts": Num("101.000"),
        "cat": "ac2g",
        "name": "ac2g",
    },
    event("gemm", "102.000", 0, cat="kernel", args={"correlation": 40, "External id": 3}),
    event("memset", "103.000", 0, cat="gpu_memset", args={"correlation": 0, "stream": 7}),
)
SERVING = trace_of(
    event("f", "1712195495519689.047", 9, cat="python_function", args={"Python id": 2990}),
    event(
        "f", "1712195495519689.048", 9, cat="python_function", args={"Python parent id": 2990}
    ),
    event("aten::add", "1712195495519689.500", 9, args={"External id": 3, "Ev Idx": 8}),
    event("launch", "1712195495519690.000", 9, cat="cuda_runtime", args={"correlation": 12}),
)


def made_of(*sources, turns):
    """Return the events of so many turns of all sources."""
    texts = list(body(sources, size=1 << 20, layout="py"))[: turns * len(sources)]
    return json.loads(f"[{''.join(texts).lstrip(', ')}]", parse_float=Num)


def named(events, name):
    return [event for event in events if event["name"] == name]


def seen(events, name, key):
    return [event["args"][key] for event in named(events, name)]


@pytest.mark.parametrize("layout", LAYOUTS_WITH_HEADER)
def test_a_large_trace_repeats_a_small_one(tmp_path, layout):
    large = tmp_path / "large.json"
    once = len(LAYOUTS[layout](source(STORED)["traceEvents"], {}, {}))
    write_trace([source(STORED)], large, size=4 * once, layout=layout)
    one, many = json.loads(STORED.read_text()), json.loads(large.read_text())
    assert {k: v for k, v in one.items() if k != "traceEvents"} == {
        k: v for k, v in many.items() if k != "traceEvents"
    }
    assert large.stat().st_size >= 4 * once
    before, after = read_trace(STORED), read_trace(large)
    times = after.health.events // before.health.events
    assert times >= 4
    for name, rows in before.tables.items():
        assert after.tables[name].num_rows == times * rows.num_rows
    lasts = [end - start for start, end in zip(*spans(before), strict=True)]
    assert [end - start for start, end in zip(*spans(after), strict=True)] == times * lasts
    assert correlations(after) == times * correlations(before)
    assert after.health.repaired == {}


def spans(trace):
    events = trace.tables["device_events"]
    return events["start_ns"].to_pylist(), events["end_ns"].to_pylist()


def correlations(trace):
    return len(set(trace.tables["device_events"]["correlation"].to_pylist()))


def test_the_first_turn_is_the_source_as_it_was():
    assert made_of(TRAINING, turns=1) == TRAINING["traceEvents"]
    assert made_of(SERVING, turns=1) == SERVING["traceEvents"]


def test_ids_go_on_from_turn_to_turn_and_from_source_to_source():
    events = made_of(TRAINING, SERVING, turns=3)

    # a launch of one source follows that of the other: one number each, none left out
    assert seen(events, "launch", "correlation") == [40, 41, 42, 43, 44, 45]
    assert seen(events, "gemm", "correlation") == [40, 42, 44]
    assert [event["id"] for event in named(events, "ac2g")] == [40, 42, 44]
    assert seen(events, "aten::mm", "External id") == [3, 5, 7]
    assert seen(events, "aten::add", "External id") == [4, 6, 8]
    python = [event["args"] for event in named(events, "f")]
    assert python == [
        {key: 2990 + number} for number in range(3) for key in ("Python id", "Python parent id")
    ]


def test_what_is_no_id_stays():
    events = made_of(TRAINING, turns=2)

    assert seen(events, "memset", "correlation") == [0, 0]
    assert seen(events, "memset", "stream") == [7, 7]
    assert seen(events, "aten::mm", "Ev Idx") == [0, 0]
    assert [event["ts"] for event in named(events, "process_name")] == ["0.000", "0.000"]


def test_steps_are_numbered_on():
    events = made_of(SERVING, TRAINING, turns=3)

    steps = [event["name"] for event in events if "ProfilerStep" in event["name"]]
    assert steps == ["ProfilerStep#6", "ProfilerStep#7", "ProfilerStep#8"]


def test_times_go_on_to_the_nanosecond():
    events = made_of(TRAINING, SERVING, turns=2)

    # a turn of TRAINING lasts from 100.000 to 105.500, one of SERVING 3.453, a pause 1000
    assert [event["ts"] for event in named(events, "aten::mm")] == ["100.001", "2108.954"]
    first, _, second, _ = (event["ts"] for event in named(events, "f"))
    assert (first, second) == ("1105.500", "3114.453")
    assert {event["dur"] for event in events if "dur" in event} == {"2.500"}


def test_a_mix_is_of_one_process():
    events = made_of(TRAINING, SERVING, turns=1)

    assert {event["pid"] for event in events} == {0, 7}
    assert {event["tid"] for event in named(events, "aten::add")} == {7}


def test_less_than_a_turn_is_the_middle_of_each():
    many = [event("aten::mm", f"{100 + number}.000", 7) for number in range(1000)]
    name = {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "python"}}
    other = [event("aten::add", f"{5 + number}.000", 7) for number in range(1000)]

    text = "".join(body([trace_of(name, *many), trace_of(*other)], size=20_000, layout="py"))

    events = json.loads(f"[{text.lstrip(', ')}]", parse_float=Num)
    assert 18_000 < len(text) < 22_000
    assert named(events, "process_name") == [name]
    kept = [int(Decimal(event["ts"])) for event in named(events, "aten::mm")]
    assert kept[0] - 100 == pytest.approx(1099 - kept[-1], abs=1)
    assert kept == list(range(kept[0], kept[-1] + 1))
    assert len(named(events, "aten::add")) == len(kept)


def test_real_and_drawn_traces_become_one(tmp_path):
    path = tmp_path / "mix.json"
    captured, drawn = GLOO / "rank0_trace.json.gz", HAND / "three-streams" / "k-old.json"

    write_trace([source(captured), source(drawn)], path, size=12 * 10**6, layout="k-old")

    # the capture, the drawn one, and so on, until there are 12 MB: 5.6 MB and 5 kB a turn
    found, first, second = read_trace(path), read_trace(captured), read_trace(drawn)
    assert {name: rows.num_rows for name, rows in found.tables.items()} == {
        name: 3 * rows.num_rows + 2 * second.tables[name].num_rows
        for name, rows in first.tables.items()
    }
    assert found.health.repaired == {}
    assert found.health.skipped["flow"] == 3 * first.health.skipped["flow"]


def test_a_job_is_the_same_but_for_its_ranks(tmp_path):
    folder = tmp_path / "job"

    write_job([source(STORED)], folder, ranks=3, size=10_000, layout="k-old")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["job"]
    found = [json.loads((folder / f"rank{rank}_trace.json").read_text()) for rank in range(3)]
    assert [trace["distributedInfo"]["rank"] for trace in found] == [0, 1, 2]
    assert {trace["distributedInfo"]["world_size"] for trace in found} == {3}
    assert all("pg_config" not in trace["distributedInfo"] for trace in found)
    assert found[0]["traceEvents"] == found[2]["traceEvents"]


def test_a_trace_is_made_once_for_what_it_is_made_of(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_make, "ROOT", tmp_path)
    path = tmp_path / "rank0.json"
    path.write_bytes(STORED.read_bytes())
    made = larger_trace([path], 1, "k-new")
    assert made.parent == tmp_path / "bench-out" / "traces"
    assert made.name.startswith("rank0-k-new-")
    assert made.name.endswith("-1MB.json")
    assert made.stat().st_size > 10**6
    made.write_text("kept")
    assert larger_trace([path], 1, "k-new").read_text() == "kept"

    path.write_text(path.read_text() + "\n")

    assert larger_trace([path], 1, "k-new") != made


def test_a_job_is_made_in_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_make, "ROOT", tmp_path)

    folder = larger_job([STORED], 2, 1)

    assert folder.name.endswith("-2x1MB")
    assert sorted(path.name for path in folder.iterdir()) == [
        "rank0_trace.json",
        "rank1_trace.json",
    ]


def test_what_is_no_trace_is_said_in_one_line(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(bench_make, "ROOT", tmp_path)
    bad = tmp_path / "bad.json"
    bad.write_text("[")

    assert bench.main(["start", str(bad)]) == 1

    assert capfd.readouterr().err.splitlines()[1:] == [
        "bench.py: bad: no traces to make larger ones of: json.decoder.JSONDecodeError: "
        "Expecting value: line 1 column 2 (char 1)"
    ]


def test_a_missing_trace_is_said_in_one_line(capsys):
    assert bench.main(["start", "no.json"]) == 1
    assert capsys.readouterr().err == (
        "bench.py: no.json: cannot be read: No such file or directory; give another PATH\n"
    )


def test_packing_keeps_the_bytes(tmp_path):
    plain = tmp_path / "a.json"
    plain.write_bytes(b"{} " * 10**6)

    packed = gzipped(plain)

    assert packed == tmp_path / "a.json.gz"
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.json.gz"]


def test_no_such_layout():
    with pytest.raises(BenchError, match="no such layout: k-odd; there are k-2021, k-old"):
        larger_trace([STORED], 1, "k-odd")
