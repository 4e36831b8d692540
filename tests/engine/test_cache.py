from __future__ import annotations

import os
import shutil
import threading

import pytest

from tests.contract.places import HAND
from tests.traces import kernel, write
from traceparse.engine import analyze, cache, local
from traceparse.engine.cache import Cache
from traceparse.errors import InputError
from traceparse.ingest import read_traces
from traceparse.rank import digest


@pytest.fixture
def trace(tmp_path):
    return write(tmp_path / "rank0.json", [kernel(1, 1), kernel(3, 2, "x")])


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def digested(path):
    return [digest(trace) for trace in read_traces(path)]


def entries(folder):
    return sorted(folder.iterdir()) if folder.exists() else []


def refuse_to_read(monkeypatch):
    def refuse(*_args, **_others):
        raise AssertionError("a trace was read")

    monkeypatch.setattr(local, "read_traces", refuse)


def get(folder, path, rank=None):
    kept = Cache(folder)
    entry = kept.entry(path, rank)
    return entry and kept.get(entry, path)


def put(folder, path):
    kept = Cache(folder)
    entry = kept.entry(path, None)
    assert entry is not None
    kept.put(entry, path, digested(path))


def report(paths, folder, **options):
    found = analyze(paths, cache=folder, **options).to_dict()
    found.pop("argv", None)
    return found


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_second_time_no_trace_is_read(folder, monkeypatch, jobs):
    paths = sorted(HAND.rglob("py.json"))
    first = report(paths, folder, jobs=jobs)
    refuse_to_read(monkeypatch)
    assert report(paths, folder) == first
    assert len(entries(folder)) == len(paths)
    assert all(path.suffix == ".parquet" for path in entries(folder))


def test_what_is_kept_is_that_of_the_file_as_it_is(trace, folder):
    assert get(folder, trace) is None
    put(folder, trace)
    assert get(folder, trace) == digested(trace)
    assert get(folder, trace, 5) is None, "another rank was asked for"
    was = trace.stat()
    os.utime(trace, ns=(was.st_atime_ns, was.st_mtime_ns + 1))
    assert get(folder, trace) is None, "the file was written since"
    os.utime(trace, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert get(folder, trace) is not None
    text = trace.read_text()
    for other in (text.replace("gemm", "gemn"), text + " "):
        trace.write_text(other)
        os.utime(trace, ns=(was.st_atime_ns, was.st_mtime_ns))
        assert get(folder, trace) is None
    trace.unlink()
    assert get(folder, trace) is None


def test_what_the_header_says_is_kept(tmp_path, folder):
    header = {
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132}],
        "traceparse": {"params": 10**9, "num_threads": 4},
    }
    path = write(tmp_path / "rank0.json", [kernel(1, 1)], **header)
    put(folder, path)
    (found,) = get(folder, path)
    assert found.header == digested(path)[0].header
    assert found.header.devices == tuple(header["deviceProperties"])
    assert found.header.facts == header["traceparse"]


def test_facts_beside_a_trace_are_those_of_today(tmp_path, folder):
    """WHEN facts come, change, break or go THEN what was digested without them is not used."""
    path = write(tmp_path / "rank0_trace.json", [kernel(1, 1)])
    facts = path.with_name("rank0_facts.json")
    put(folder, path)
    for told in ('{"params": 7}', '{"params": 8}', '{"params": ', ""):
        facts.write_text(told)
        assert get(folder, path) is None
        put(folder, path)
        assert get(folder, path) == digested(path)
    facts.unlink()
    (found,) = get(folder, path)
    assert found.header.facts == {}


def test_other_code_makes_other_digests(trace, folder, monkeypatch):
    put(folder, trace)
    monkeypatch.setattr(cache, "code", lambda: b"changed")
    assert get(folder, trace) is None


def test_the_code_is_all_that_a_digest_depends_on(tmp_path, monkeypatch):
    known = cache.code.__wrapped__()
    shutil.copytree(cache._PACKAGE, tmp_path / "traceparse", dirs_exist_ok=True)
    monkeypatch.setattr(cache, "_PACKAGE", tmp_path / "traceparse")
    assert cache.code.__wrapped__() == known
    for name in ("ingest/_scanner.c", "rank/steps.py", "data/kernels.toml", "intervals.py"):
        path = tmp_path / "traceparse" / name
        path.write_text(path.read_text() + "\n")
        changed = cache.code.__wrapped__()
        assert changed != known
        known = changed


def test_the_source_is_the_same_however_it_was_built(tmp_path, monkeypatch):
    """GIVEN two builds WHEN a worker compares them THEN only what was written tells."""

    def told(file, content):
        monkeypatch.setattr(cache, "_PACKAGE", tmp_path)
        for room in cache._ROOMS:
            (tmp_path / room).mkdir(exist_ok=True)
        (tmp_path / "ingest" / file).write_text(content)
        return cache.source.__wrapped__(), cache.code.__wrapped__()

    source, code = told("_scanner.abi3.so", "built here")
    built_there, code_there = told("_scanner.abi3.so", "built there")
    assert (built_there, code_there != code) == (source, True)
    assert told("_scanner.c", "other formulas")[0] != source


def test_a_file_that_was_moved_is_known_by_its_content(tmp_path, trace, folder):
    text = trace.read_text()
    trace.write_text(text + text)  # two documents: the second one is named PATH#2
    put(folder, trace)
    moved = tmp_path / "elsewhere" / trace.name
    moved.parent.mkdir()
    shutil.copy2(trace, moved)
    found = get(folder, moved)
    assert found is not None
    assert found == digested(moved)
    assert [one.health.path for one in found] == [str(moved), f"{moved}#2"]
    assert {note.file for one in found for note in one.notes} >= {str(moved), f"{moved}#2"}
    other = shutil.copy2(trace, tmp_path / "rank7.json")
    assert get(folder, other) is None, "its name says another rank"


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"rubbish" * 99, None])
def test_damaged_entries_are_made_anew(trace, folder, damage):
    first = report([trace], folder)
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert report([trace], folder) == first
    assert entries(folder) == [entry]
    assert get(folder, trace) == digested(trace)


def test_a_folder_in_the_place_of_an_entry_is_said(trace, folder):
    report([trace], folder)
    (entry,) = entries(folder)
    entry.unlink()
    entry.mkdir()
    found = report([trace], folder)
    assert [note["code"] for note in found["notes"] if "cache" in note["code"]] == [
        "cache_not_written"
    ]
    assert entries(folder) == [entry], "nothing half-written stays"


def test_a_folder_that_cannot_be_made_is_said(trace):
    found = report([trace], trace / "inside a file")
    (message,) = (n["message"] for n in found["notes"] if n["code"] == "cache_not_written")
    assert message == (
        f"{trace / 'inside a file'}: Not a directory: what was digested is not kept, and will "
        f"be read again; give --cache another folder, or --no-cache"
    )


def test_a_file_that_changes_while_it_is_read_is_kept_as_what_it_was(
    trace, folder, monkeypatch
):
    before, text = digested(trace), trace.read_text()

    def change(path, **options):
        found = read_traces(path, **options)
        trace.write_text(text.replace("gemm", "nccl"))
        return found

    monkeypatch.setattr(local, "read_traces", change)
    report([trace], folder)
    assert len(entries(folder)) == 1
    assert get(folder, trace) is None
    assert digested(trace) != before


def test_what_is_refused_is_not_kept(tmp_path, folder):
    path = tmp_path / "other.json"
    path.write_text('{"a": 1}')
    for _ in range(2):
        with pytest.raises(InputError, match="without traceEvents"):
            report([path], folder)
    assert entries(folder) == []


def test_several_at_a_time(trace, folder):
    reports = []
    threads = [
        threading.Thread(target=lambda: reports.append(report([trace], folder)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 4
    assert all(one == reports[0] for one in reports)
    assert len(entries(folder)) == 1
