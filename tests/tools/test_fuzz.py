"""The fuzzer: what it changes, what it demands, what it keeps, how it ends."""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from dataclasses import replace
from functools import partial

import pytest
import zstandard

from tests.contract.places import HAND
from tools import fuzz, fuzz_check, fuzz_child
from tools.damage import KINDS
from tools.fuzz_check import Broken, Outcome, Plan, check, plan_of
from tools.fuzz_child import Job, Session, TooSlow, time_limit
from tools.fuzz_mutate import MOST_BYTES, ON_BYTES, ON_JSON, Mutator, read_seeds, text_of
from tools.fuzz_stats import Stats
from traceparse import ordered
from traceparse.engine import analyze
from traceparse.errors import InputError, Note, UsageError
from traceparse.ingest import source, trace
from traceparse.report import terminal

TRACE = (HAND / "two-devices" / "k-old.json").read_bytes()
PLAIN = Plan(
    name="trace.json",
    engine="msgspec",
    block=1 << 20,
    raw_block=1 << 18,
    compare=True,
    strict=False,
    all_tables=True,
    with_good_file=False,
    rank=None,
    steps=None,
    width=80,
    encoding="utf-8",
)


# -- mutations


@pytest.mark.parametrize("change", [*ON_BYTES, *ON_JSON])
def test_every_change_takes_any_text_and_changes_some(change):
    outcomes = {change(TRACE, random.Random(seed), b"[1]") for seed in range(20)}
    assert len(outcomes) > 1
    for text in (b"", b"{", b'{"a": 1}', b"\xff\x00"):
        for seed in range(20):
            assert isinstance(change(text, random.Random(seed), b""), bytes)


def test_a_seed_repeats_a_mutation():
    mutator = Mutator([TRACE, gzip.compress(TRACE)])
    first, again = (
        [mutator.mutate(TRACE, random.Random(seed)) for seed in range(40)] for _ in range(2)
    )
    assert first == again
    assert len(set(first)) > 30


def test_mutations_stay_short():
    long = b'{"a": 1}' * MOST_BYTES
    mutator = Mutator([long])
    for seed in range(20):
        text, _ = text_of(mutator.mutate(long, random.Random(seed)), 10 * MOST_BYTES)
        assert len(text) <= 3 * MOST_BYTES  # two files, one after another


def test_compressed_files_are_changed_inside():
    packed = zstandard.ZstdCompressor().compress(TRACE)
    mutated = [Mutator([TRACE]).mutate(packed, random.Random(seed)) for seed in range(60)]
    kinds = {text_of(data)[1] for data in mutated}
    assert kinds == {"plain", "gzip", "zstd"}
    assert any(text_of(data)[0].startswith(TRACE[:200]) for data in mutated)


@pytest.mark.parametrize("data", [b"\x1f\x8b", b"\x1f\x8bxx", b"\x28\xb5\x2f\xfdxxxxxxx", b""])
def test_what_does_not_inflate_is_taken_as_it_is(data):
    assert text_of(data) in ((data, "plain"), (b"", "gzip"), (b"", "zstd"))


def test_seeds_are_shortened_in_the_middle(tmp_path):
    events = [{"ph": "X", "cat": "kernel", "name": f"k{n}", "ts": n} for n in range(5000)]
    whole = json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "t"})
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "long.json.gz").write_bytes(gzip.compress(whole.encode()))
    (tmp_path / "short").write_bytes(b"x")
    long, short = sorted(read_seeds([tmp_path]), key=len, reverse=True)
    assert short == b"x"
    shortened = json.loads(long)
    assert 100 < len(shortened["traceEvents"]) < 1000
    assert shortened["traceName"] == "t"


# -- what is demanded


def test_a_trace_and_a_refusal_pass(tmp_path):
    assert check(TRACE, tmp_path, PLAIN).kind == "result"
    assert check(b"", tmp_path, PLAIN).kind == "EmptyTraceError"
    assert list(tmp_path.iterdir()) == []


def test_features_tell_what_happened(tmp_path):
    torn = TRACE.replace(b'"name": "', b'"name": "a "b" ', 1)
    known = check(TRACE, tmp_path, PLAIN).feature
    assert check(torn, tmp_path, PLAIN).feature != known
    assert check(TRACE.replace(b"gemm", b"mmeg"), tmp_path, PLAIN).feature == known


def test_plans_follow_from_the_bytes():
    plans = [plan_of(bytes([number])) for number in range(200)]
    assert plans == [plan_of(bytes([number])) for number in range(200)]
    assert {plan.strict for plan in plans} == {False, True}
    assert len({plan.name for plan in plans}) > 5
    assert max(len(data) / plan_of(data).block for data in (TRACE, TRACE * 9)) <= 400


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (InputError("two lines\nof text, and long enough"), "not one line"),
        (InputError("an escape \x1b[31m in a long enough text"), "not one line"),
        (InputError("short"), "says nothing"),
        (InputError("endless " * 1000), "never ends"),
        (UsageError("the words on the command line are wrong"), "exit status 2"),
    ],
)
def test_refusals_must_be_well_said(tmp_path, monkeypatch, error, says):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(fuzz_check, "analyze", refuse)
    with pytest.raises(Broken, match=says):
        check(TRACE, tmp_path, PLAIN)


def test_warnings_escape(tmp_path, monkeypatch):
    def warn(*_, **__):
        warnings.warn("divided by zero", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(fuzz_check, "analyze", warn)
    with pytest.raises(RuntimeWarning):
        check(TRACE, tmp_path, PLAIN)
    assert list(tmp_path.iterdir()) == []


def test_notes_must_end(tmp_path, monkeypatch):
    def with_note(*args, **kwargs):
        report = analyze(*args, **kwargs)
        return replace(report, notes=(*report.notes, Note("odd", "endless " * 1000)))

    monkeypatch.setattr(fuzz_check, "analyze", with_note)
    with pytest.raises(Broken, match="a note never ends: endless"):
        check(TRACE, tmp_path, PLAIN)


@pytest.mark.parametrize(
    ("renderer", "text", "says"),
    [
        ("html", "<SCRIPT>alert(1)</SCRIPT>", "a script"),
        ("json_text", '{"a": NaN}', "NaN is no JSON"),
        ("json_text", "{}", "something else"),
        ("json_text", '"\N{EN DASH}"', "more than ASCII"),
    ],
)
def test_renderings_must_be_sound(tmp_path, monkeypatch, renderer, text, says):
    monkeypatch.setattr(getattr(fuzz_check, renderer), "render", lambda _: text)
    with pytest.raises(Broken, match=says):
        check(TRACE, tmp_path, PLAIN)


def test_terminals_must_be_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(terminal, "render", lambda _, console: console.file.write("\x1b[2J\n"))
    with pytest.raises(Broken, match="invisible"):
        check(TRACE, tmp_path, PLAIN)


def test_sums_must_add_up(tmp_path, monkeypatch):
    def off_by_one(*args, **kwargs):
        report = analyze(*args, **kwargs)
        window = report.devices[0].window
        object.__setattr__(window, "idle_ns", window.idle_ns + 1)
        return report

    monkeypatch.setattr(fuzz_check, "analyze", off_by_one)
    with pytest.raises(Broken, match="parts add up, busy"):
        check(TRACE, tmp_path, PLAIN)


def test_blocks_must_make_no_difference(tmp_path, monkeypatch):
    small = replace(PLAIN, block=256)
    torn = TRACE.replace(b"},\n  {", b"}{", 1).replace(b'"ph"', b'"ph', 1)
    assert check(TRACE, tmp_path, small).kind == "result"
    assert check(torn, tmp_path, small).kind == "result"

    def differs(*args, **kwargs):
        report = analyze(*args, **kwargs)
        return replace(report, notes=(Note("size", f"{source._RAW_BLOCK}"),))

    monkeypatch.setattr(fuzz_check, "analyze", differs)
    with pytest.raises(Broken, match="raw blocks of 7 make a difference"):
        check(TRACE, tmp_path, replace(PLAIN, raw_block=7))
    monkeypatch.setattr(
        fuzz_check,
        "analyze",
        lambda *a, **k: replace(
            analyze(*a, **k), notes=(Note("n", os.environ.get("TRACEPARSE_ENGINE", "")),)
        ),
    )
    with pytest.raises(Broken, match="the engines differ"):
        check(TRACE, tmp_path, small)
    monkeypatch.setattr(
        fuzz_check,
        "analyze",
        lambda *a, **k: replace(analyze(*a, **k), notes=(Note("n", f"{ordered._RUN}"),)),
    )
    with pytest.raises(Broken, match="little memory makes a difference"):
        check(TRACE, tmp_path, small)
    calls = iter(range(100))
    monkeypatch.setattr(
        fuzz_check,
        "analyze",
        lambda *a, **k: replace(analyze(*a, **k), notes=(Note("n", f"{next(calls)}"),)),
    )
    with pytest.raises(Broken, match="blocks of 256 make a difference"):
        check(TRACE, tmp_path, small)


# -- a session


@pytest.fixture
def job(tmp_path, monkeypatch):
    # the process of the whole suite is larger than a fuzzing one may be: not the matter here
    monkeypatch.setattr(fuzz_child, "peak_rss_bytes", lambda: 10**8)
    return Job(
        work=str(tmp_path / "work"),
        findings=str(tmp_path / "findings"),
        seeds=[],
        corpus=None,
        seconds=60,
        seed=1,
        limit_s=0.05,
        engine="random",
    )


def fine(_data, _folder):
    return Outcome("result", frozenset({"a"}))


def raises(error):
    def fail(*_, **__):
        raise error

    return fail


def test_sessions_tell_what_is_new(job):
    session = Session(job, fine)
    assert session.try_one(b"1")
    assert not session.try_one(b"2")
    assert (session.stats.tried, session.stats.kinds["result"]) == (2, 2)
    assert not session.is_over


def test_sessions_keep_the_shortest_of_each_escape(job, tmp_path):
    session = Session(job, raises(ValueError("odd\ud800")))
    for data in (b"long", b"longer", b"short"[:2]):
        assert not session.try_one(data)
    (found, story) = sorted((tmp_path / "findings").iterdir())
    assert found.read_bytes() == b"sh"
    assert "ValueError: odd\\ud800" in story.read_text()
    assert session.stats.escapes == {found.stem: 3}
    assert found.stem.startswith("ValueError-fail-")


def test_escapes_are_named_by_where_they_come_from(job, tmp_path, monkeypatch):
    job = replace(job, limit_s=60.0)  # it is not about time, and the first analysis is slow
    monkeypatch.setattr(fuzz_check, "analyze", raises(InputError("short")))
    Session(job, partial(check, plan=PLAIN)).try_one(TRACE)
    monkeypatch.setattr(trace, "FileHealth", lambda **_: 1 // 0)
    Session(job, partial(check, plan=PLAIN)).try_one(TRACE)
    names = {path.stem.rpartition("-")[0] for path in (tmp_path / "findings").iterdir()}
    assert names == {"Broken-check_refusal", "ZeroDivisionError-trace"}


def test_sessions_stop_what_is_too_slow(job, tmp_path):
    def forever(_data, _folder):
        while True:
            try:
                time.sleep(0)
            except Exception:  # noqa: BLE001 - as careless code would
                continue

    Session(job, forever).try_one(b"x")
    assert [path.name for path in (tmp_path / "findings").glob("TooSlow-*.bin")]


def test_memory_is_watched(job, tmp_path, monkeypatch):
    ended: list[int] = []
    monkeypatch.setattr(fuzz_child, "peak_rss_bytes", lambda: 2 * 10**9)
    monkeypatch.setattr(os, "_exit", ended.append)
    Session(job, fine).try_one(b"big")
    assert ended == [fuzz_child.OVER_MEMORY]
    assert (tmp_path / "findings" / "memory.bin").read_bytes() == b"big"
    assert Stats.read(tmp_path / "work" / "stats.json").escapes == {"memory": 1}


def test_the_time_limit_is_lifted():
    with time_limit(0.02):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with pytest.raises(TooSlow), time_limit(0.001):
        while True:
            pass


# -- counts


def test_counts_add_up(tmp_path):
    one = Stats(tried=2, features=3, slowest_s=1.5, peak_rss_bytes=10)
    one.kinds["result"] += 2
    one.write(tmp_path / "stats.json")
    two = Stats(tried=1, slowest_s=0.5)
    two.escapes["ValueError-x-1"] += 1
    both = Stats.read(tmp_path / "stats.json").add(two)
    assert (both.tried, both.features, both.slowest_s) == (3, 3, 1.5)
    assert both.line(2).startswith("2 s: 3 mutations (2/s), 2 results, 0 refusals, 3 beh")
    assert "ESCAPED ValueError-x-1: 1 times" in both.table()
    assert Stats.read(tmp_path / "none") == Stats()


# -- the whole tool


def child(tmp_path, monkeypatch, code):
    """Let a script take the place of the fuzzing process."""
    script = tmp_path / "child.py"
    script.write_text(f"import json, os, sys, time\njob = json.loads(sys.argv[1])\n{code}")
    monkeypatch.setattr(fuzz, "CHILD", script)
    monkeypatch.setattr(fuzz, "KINDS", KINDS[:2])
    return ["--seconds", "0.6", "--jobs", "1", "--out", str(tmp_path / "out")]


DIES = """
os.makedirs(job["work"] + "/input", exist_ok=True)
open(job["work"] + "/input/trace.json", "w").write("deadly")
open(job["work"] + "/stats.json", "w").write(
    '{"tried": 5, "kinds": {"result": 4}, "escapes": {}, "features": 1,'
    ' "slowest_s": 0.1, "peak_rss_bytes": 1}')
print("last words", flush=True)
os.abort()
"""


def test_what_kills_the_process_is_kept(tmp_path, monkeypatch, capsys):
    assert fuzz.main(child(tmp_path, monkeypatch, DIES)) == 1
    (found,) = (tmp_path / "out").glob("died--6-*.bin")
    assert found.read_text() == "deadly"
    assert "last words" in found.with_suffix(".txt").read_text()
    printed = capsys.readouterr().out
    assert "5 mutations" in printed
    assert "1 fuzzing processes died" in printed


def test_what_hangs_the_process_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "_HUNG_AFTER_S", 0.0)
    hangs = DIES.replace("os.abort()", "time.sleep(60)")
    assert fuzz.main(child(tmp_path, monkeypatch, hangs)) == 1
    assert len(list((tmp_path / "out").glob("died--9-*.bin"))) == 1


def test_a_process_that_cannot_begin_is_no_success(tmp_path, monkeypatch, capsys):
    assert fuzz.main(child(tmp_path, monkeypatch, "sys.exit('no such module')")) == 1
    printed, said = capsys.readouterr()
    assert "nothing was tried" in printed
    assert "no such module" in said


def test_an_interrupt_ends_it(tmp_path, monkeypatch):
    arguments = child(tmp_path, monkeypatch, DIES.replace("os.abort()", "time.sleep(60)"))
    begun = time.monotonic()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(fuzz, "list", interrupt, raising=False)
    with pytest.raises(KeyboardInterrupt):
        fuzz.main([*arguments, "--seconds", "30"])
    assert time.monotonic() - begun < 20
    assert not (tmp_path / "out").exists()


def test_fuzzing_for_a_moment_finds_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fuzz, "KINDS", KINDS[:2])
    out = tmp_path / "out"
    arguments = ["--engine", "random", "--seconds", "2.5", "--seed", "1", "--jobs", "2"]
    assert fuzz.main([*arguments, "--out", str(out)]) == 0
    assert not out.exists()
    assert " 0 escapes, peak " in capsys.readouterr().out


def test_replay_shows_what_came_of_a_file(tmp_path, monkeypatch, capsys):
    path = tmp_path / "found.bin"
    path.write_bytes(TRACE)
    assert fuzz.main(["--replay", str(path)]) == 0
    assert " s: InputError: no trace has step" in capsys.readouterr().out
    monkeypatch.setattr(fuzz_check, "check", raises(ZeroDivisionError()))
    assert fuzz.main(["--replay", str(path)]) == 1
    assert "ESCAPED\nTraceback" in capsys.readouterr().out


def test_the_process_takes_its_job_as_json(monkeypatch, job):
    ran: list[Job] = []
    monkeypatch.setattr(fuzz_child, "_run_random", ran.append)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    text = json.dumps({name: getattr(job, name) for name in job.__slots__})
    monkeypatch.setattr(sys, "argv", ["fuzz_child.py", text])
    fuzz_child.main()
    assert ran == [replace(job, seeds=[])]
