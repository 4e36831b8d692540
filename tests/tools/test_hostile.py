"""Hostile files, very small: that they are what they say, and how they are measured."""

from __future__ import annotations

import gzip
import json
import resource
import sys
import zlib
from dataclasses import replace

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.seen import OF_COMMUNICATION, OF_WORK
from tools import hostile, hostile_child
from tools.hostile import Measured, measure
from tools.hostile_bomb import combined_crc, write_gzip, write_members, write_plain, write_zstd
from tools.hostile_parts import HEAD, INPUTS, KERNEL, TAIL, Hostile, repeated
from traceparse.engine import analyze

TINY = 1e-5
NOT_TO_INFLATE = ("zstd with a window of 2 GB", "zstd that claims 2^60 bytes")
GOOD = Hostile("good", ".json", repeated(write_plain, HEAD, b" ", KERNEL + TAIL, 10), 0, "")
EMPTY = Hostile("empty", ".json", repeated(write_plain, b"", b" ", b"", 10), 1, "blanks")


def inflated(path):
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
        return reader.read()
    return data


# -- the files


@given(parts=st.lists(st.binary(max_size=300), max_size=5))
def test_checksums_combine(parts):
    total = 0
    for part in parts:
        total = combined_crc(total, zlib.crc32(part), len(part))
    assert total == zlib.crc32(b"".join(parts))


@pytest.mark.parametrize("times", [1, 2, 7, 64])
@pytest.mark.parametrize(
    ("pack", "ending"),
    [(write_gzip, ".gz"), (write_members, ".gz"), (write_zstd, ".zst"), (write_plain, "")],
)
def test_bombs_inflate_to_what_they_claim(tmp_path, pack, ending, times):
    path = tmp_path / f"bomb{ending}"
    size = pack(path, b"head", b"block, block. ", times, b"tail")
    text = inflated(path)
    assert text == b"head" + b"block, block. " * times + b"tail"
    assert size == len(text)


def test_bombs_are_small_on_disk(tmp_path):
    path = tmp_path / "bomb.gz"
    write = repeated(write_gzip, b"", b" ", b"", 10**8)
    assert 0.99 * 10**8 < write(path, 1.0) <= 10**8
    assert path.stat().st_size < 10**8 / 900


def test_names_are_told_apart():
    names = [found.name for found in INPUTS]
    assert len(set(names)) == len(names) > 100


@pytest.mark.parametrize("found", INPUTS, ids=[found.name for found in INPUTS])
def test_every_file_can_be_made_small(tmp_path, found):
    path = tmp_path / f"rank0{found.ending}"
    size = found.write(path, TINY)
    if path.is_fifo():
        assert size == 0
    elif found.name in NOT_TO_INFLATE:
        with pytest.raises(zstandard.ZstdError):
            inflated(path)
    else:
        assert size == len(inflated(path)) > 0


def test_the_parts_make_a_trace_without_notes(tmp_path):
    path = tmp_path / "rank0.json"
    path.write_bytes(HEAD + KERNEL + b",\n" + KERNEL + TAIL)
    notes = {note.code for note in analyze(path, jobs=1).notes}
    assert notes - {"native_engine_missing"} - OF_WORK - OF_COMMUNICATION == {
        "no_complete_step",
    }


# -- the measuring


def test_a_child_says_how_it_ended(tmp_path):
    good = tmp_path / "rank0.json"
    GOOD.write(good, 1)
    found = hostile_child.measure(str(good), str(tmp_path / "out"))
    assert (found["status"], found["message"]) == (0, "")
    assert (tmp_path / "out" / "report.html").exists()
    bad = hostile_child.measure(str(tmp_path / "none.json"), str(tmp_path / "out"))
    assert bad["status"] == 1
    assert "no such file" in bad["message"]
    assert bad["peak_rss_bytes"] > 10**7


@pytest.mark.parametrize("case", [GOOD, EMPTY], ids=["good", "empty"])
def test_measuring_takes_a_fresh_process(tmp_path, case):
    found = measure(case, 1, tmp_path)
    assert found.faults == []
    assert found.status == str(case.status)
    assert 10**7 < found.peak_rss_bytes < 5 * 10**8
    assert 0 < found.seconds < 60
    assert list(tmp_path.glob("rank0*")) == []
    assert any(case.words in line for line in found.said)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise ValueError('a bug')", "crashed (1)"),
        ("import os; os.abort()", "died of signal 6"),
        ("import time; time.sleep(60)", "killed after 0.2 s"),
    ],
)
def test_whatever_befalls_the_child_is_a_fault(tmp_path, monkeypatch, code, status):
    script = tmp_path / "child.py"
    script.write_text(code)
    monkeypatch.setattr(hostile, "CHILD", script)
    patience = 0.2 if "sleep" in code else 30
    found = measure(GOOD, 1, tmp_path, patience_s=patience)
    assert found.status == status
    assert f"ended with {status}" in found.faults
    assert ("ValueError: a bug" in "".join(found.said)) == ("ValueError" in code)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"seconds": 61.0}, "over 60 s"),
        ({"peak_rss_bytes": 2 * 10**9}, "over 1000 MB"),
        ({"status": "2"}, "ended with 2"),
        ({"status": "0"}, "not status 1"),
        ({"said": ["something else"]}, "does not say 'blanks'"),
    ],
)
def test_faults_are_named(changes, fault):
    fine = Measured(EMPTY, 1, 10, 10, 1.0, 10**8, "1", ["nothing but blanks"])
    assert fine.faults == []
    assert fault in replace(fine, **changes).faults


def test_small_files_need_not_be_refused():
    small = Measured(EMPTY, 0.01, 10, 10, 1.0, 10**8, "0", [])
    assert small.faults == []


def test_the_table_has_a_row_for_each(monkeypatch, capsys):
    monkeypatch.setattr(hostile, "INPUTS", [GOOD, EMPTY])
    assert hostile.main(["--only", "empty", "--scale", "1"]) == 0
    printed = capsys.readouterr().out
    assert "good" not in printed
    assert printed.splitlines()[1].startswith("empty ")
    assert "nothing but blanks" in printed
    assert printed.splitlines()[-1] == "1 files, 0 with faults"


def test_a_fault_is_the_exit_status(monkeypatch, capsys):
    monkeypatch.setattr(hostile, "INPUTS", [replace(EMPTY, words="bomb")])
    assert hostile.main([]) == 1
    assert "FAULT: does not say 'bomb'" in capsys.readouterr().out


def test_the_files_can_be_named(capsys):
    assert hostile.main(["--list", "--only", "20 GB"]) == 0
    assert "gzip bomb, 20 GB: blanks" in capsys.readouterr().out


def test_the_child_writes_its_result(tmp_path, monkeypatch):
    path, result = tmp_path / "rank0.json", tmp_path / "result"
    EMPTY.write(path, 1)
    monkeypatch.setattr(sys, "argv", ["", str(path), "out", str(result)])
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    hostile_child.main()
    assert json.loads(result.read_text())["status"] == 1
