"""What is no trace, or half of one: one line that says file, what and what to do."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys

import pytest

from tests.contract.places import GLOO, HAND

WHOLE = HAND / "steps-end-with-host" / "k-new.json"
TRUNCATED_AT = 5000
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c"
    "626001000000ffff03000006000557bfabd40000000049454e44ae426082"
)
EXECUTION_TRACE = {
    "schema": "1.1.1-chakra.0.0.4",
    "pid": 7,
    "time": "2026-01-01 00:00:00",
    "start_ts": 1,
    "nodes": [{"id": 1, "name": "[pytorch|profiler|execution_trace|thread]", "attrs": []}],
}
SNAPSHOT: dict[str, object] = {"segments": [], "device_traces": [[]], "allocator_settings": {}}
METADATA_ONLY = {
    "schemaVersion": 1,
    "traceEvents": [
        {
            "ph": "M",
            "name": "process_name",
            "pid": 1,
            "tid": 0,
            "ts": 1,
            "args": {"name": "python"},
        },
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 2},
    ],
}
# file name, its bytes, words that the one line must have besides the name of the file
NOT_TRACES = [
    ("empty.json", b"", ["empty"]),
    ("execution_trace.json", json.dumps(EXECUTION_TRACE).encode(), ["execution trace"]),
    ("timeline.json", b"[[1, 2, 3], [[0, 64], [0, 0], [64, 64]]]", ["memory timeline"]),
    (
        "timeline.raw.json.gz",
        gzip.compress(b"[[-1, 0, 512, 0], [12, 1, 512, 1], [40, 3, 512, 1]]"),
        ["memory timeline"],
    ),
    ("snapshot.pickle", pickle.dumps(SNAPSHOT), ["memory snapshot", "pickle"]),
    ("snapshot.json", json.dumps(SNAPSHOT).encode(), ["memory snapshot"]),
    ("picture.json", PNG, ["PNG"]),
    ("metadata.json", json.dumps(METADATA_ONLY).encode(), ["no duration events"]),
]
ADVICE = ("give ", "capture again", "check that", "copy the file again")


def refusal(result):
    """Return the one line that a refusal prints."""
    status, output, errors = result
    (line,) = errors.splitlines()
    assert (status, output) == (1, "")
    assert "Traceback" not in line
    return line


def assert_refused(result, name, words):
    line = refusal(result)
    assert name in line
    assert [word for word in words if word not in line] == []
    assert any(advice in line for advice in ADVICE), line


@pytest.mark.parametrize(
    ("name", "content", "words"), NOT_TRACES, ids=[name for name, *_ in NOT_TRACES]
)
def test_what_is_no_trace_is_named(traceparse, tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    out = tmp_path / "out"
    assert_refused(traceparse("analyze", path, "--out", out), str(path), words)
    assert not out.exists()
    assert_refused(traceparse("analyze", path, "--json"), str(path), words)


def test_missing_path(traceparse, tmp_path):
    path = tmp_path / "nowhere.json"
    out = tmp_path / "out"
    line = refusal(traceparse("analyze", path, "--out", out))
    assert str(path) in line
    assert "no such file" in line
    assert not out.exists()


def test_a_glob_without_match(traceparse, tmp_path):
    line = refusal(traceparse("analyze", tmp_path / "rank*.json"))
    assert "rank*.json" in line


def test_empty_folder(traceparse, tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    line = refusal(traceparse("analyze", folder, "--out", tmp_path / "out"))
    assert str(folder) in line
    assert "no trace" in line
    assert not (tmp_path / "out").exists()


def test_folder_of_other_json(traceparse, tmp_path):
    folder = tmp_path / "configs"
    (folder / "deeper").mkdir(parents=True)
    (folder / "package.json").write_text('{"name": "x", "version": "1"}')
    (folder / "deeper" / "rows.json").write_text("[1, 2, 3]")
    line = refusal(traceparse("analyze", folder, "--out", tmp_path / "out"))
    assert str(folder) in line
    assert "no trace" in line
    assert not (tmp_path / "out").exists()


TRUNCATED = {
    "trace.json": WHOLE.read_bytes()[:TRUNCATED_AT],
    "trace.json.gz": gzip.compress(WHOLE.read_bytes(), mtime=0)[:900],
}


@pytest.mark.parametrize("name", TRUNCATED)
def test_what_a_truncated_file_holds_is_read(traceparse, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(TRUNCATED[name])
    status, output, errors = traceparse("analyze", path, "--json")
    assert status == 0
    report = json.loads(output)
    (file,) = report["files"]
    assert file["truncated"] is True
    assert 0 < file["events"] < 30
    (note,) = [note for note in report["notes"] if note["code"] == "truncated"]
    assert note["file"] == str(path)
    assert "breaks off" in note["message"]
    assert "Traceback" not in errors

    status, output, errors = traceparse("analyze", path)
    assert status == 0
    assert output
    assert "breaks off" in errors


@pytest.mark.parametrize("name", TRUNCATED)
def test_strict_refuses_a_truncated_file(traceparse, tmp_path, name):
    path, out = tmp_path / name, tmp_path / "out"
    path.write_bytes(TRUNCATED[name])
    line = refusal(traceparse("analyze", path, "--strict", "--out", out))
    assert str(path) in line
    assert "breaks off" in line
    assert "without --strict" in line
    assert not out.exists()


@pytest.mark.parametrize("length", [1, 2, 30, 100, 300])
def test_a_file_truncated_before_any_event(traceparse, tmp_path, length):
    path = tmp_path / "trace.json"
    path.write_bytes(WHOLE.read_bytes()[:length])
    line = refusal(traceparse("analyze", path))
    assert str(path) in line


def test_one_bad_file_among_good_ones_is_a_note(traceparse, tmp_path):
    for trace in GLOO.glob("rank*.json.gz"):
        (tmp_path / trace.name).write_bytes(trace.read_bytes())
    bad = tmp_path / "rank2_trace.json.gz"
    bad.write_bytes(b"")
    status, output, _ = traceparse("analyze", tmp_path, "--json")
    assert status == 0
    report = json.loads(output)
    assert report["run"]["ranks"] == [0, 1]
    assert [note["file"] for note in report["notes"] if "empty" in note["message"]] == [
        str(bad)
    ]
    line = refusal(traceparse("analyze", tmp_path, "--strict"))
    assert bad.name in line


def test_nothing_half_written(traceparse, tmp_path):
    out = tmp_path / "out"
    status, _, errors = traceparse("analyze", WHOLE, "--out", out)
    assert status == 0
    assert json.loads((out / "report.json").read_text())["schema_version"] == 1
    names = {path.name for path in out.iterdir()}
    assert {"report.html", "report.json", "report.md", "tables"} <= names
    assert not [name for name in names if name.startswith(".")]
    assert "Traceback" not in errors


@pytest.mark.parametrize("name", ["picture.json", "empty.json", "timeline.json"])
def test_the_installed_program_says_the_same(tmp_path, name):
    content = {name: content for name, content, _ in NOT_TRACES}[name]
    path = tmp_path / name
    path.write_bytes(content)
    command = [sys.executable, "-m", "traceparse", "analyze", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    words = {name: words for name, _, words in NOT_TRACES}[name]
    assert_refused((ended.returncode, ended.stdout, ended.stderr), str(path), words)
