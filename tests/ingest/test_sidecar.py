"""Facts that stand beside a trace: read with it, and never in its way."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from tests.traces import job, kernel, write
from traceparse.engine import analyze
from traceparse.errors import NotATraceError
from traceparse.ingest import find, read_trace, read_traces


@pytest.fixture
def trace(tmp_path):
    inside = {"params": 7, "tokens_per_step": 3}
    return write(
        tmp_path / "rank0_trace.json",
        [kernel(1, 1)],
        distributedInfo=job(0),
        traceparse=inside,
    )


def beside(trace, told):
    path = trace.with_name("rank0_facts.json")
    path.write_bytes(told if isinstance(told, bytes) else json.dumps(told).encode())
    return path


def unreadable(trace):
    return [note.message for note in trace.notes if note.code == "facts_unreadable"]


def test_what_stands_beside_counts_before_what_is_inside(trace):
    beside(trace, {"rank": 0, "params": 9, "tokens_per_step": "odd", "compiled": None})
    found = read_trace(trace)
    assert found.header.facts == {"rank": 0, "params": 9, "tokens_per_step": 3}
    assert found.notes == ()


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_it_is_found_by_the_name_of_the_trace(trace, ending):
    beside(trace, {"params": 9})
    assert read_trace(trace.rename(f"{trace}{ending}")).header.facts["params"] == 9


def test_a_trace_of_another_name_has_none(trace):
    beside(trace, {"params": 9})
    assert read_trace(trace.rename(trace.with_name("rank0.json"))).header.facts["params"] == 7


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (b"", "it is no JSON object"),
        (b'{"params": 9', "it is no JSON object"),
        (b"[" * 1000_000, "it is no JSON object"),
        (b"[]", "it is no JSON object"),
        (b'{"params": ' + b"9" * 9999 + b"}", "it is no JSON object"),
        (b"\xff\xfe{}", "it is no text in UTF-8"),
        (b'{"a": "' + b"x" * (1 << 20) + b'"}', "it is larger than 1 MiB"),
        (b'{"rank": 3, "params": 9}', "it is of rank 3, and the trace of rank 0"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_cannot_be_read_is_said_and_the_trace_is_as_good(trace, told, why):
    alone = read_trace(trace)
    beside(trace, told)
    found = read_trace(trace)
    assert (found.header, found.tables) == (alone.header, alone.tables)
    assert unreadable(found) == [f"rank0_facts.json beside it is not used: {why}"]
    (note,) = found.notes
    assert (note.rank, note.file) == (0, str(trace))


def test_what_is_no_file_is_not_waited_for(trace):
    path = trace.with_name("rank0_facts.json")
    os.mkfifo(path)
    says = "rank0_facts.json beside it is not used: it is no regular file"
    assert unreadable(read_trace(trace)) == [says]
    path.unlink()
    path.mkdir()
    assert unreadable(read_trace(trace)) == [says]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_said(trace):
    beside(trace, {}).chmod(0)
    assert unreadable(read_trace(trace)) == [
        "rank0_facts.json beside it is not used: it cannot be read: Permission denied"
    ]


def test_of_several_traces_in_a_file_that_of_its_rank_has_it(trace):
    other = json.dumps(json.loads(trace.read_text()) | {"distributedInfo": job(1)})
    trace.write_text(trace.read_text() + other)
    beside(trace, {"rank": 1, "params": 9})
    first, second = read_traces(trace)
    assert [one.header.facts["params"] for one in (first, second)] == [7, 9]
    assert (len(unreadable(first)), unreadable(second)) == (1, [])


def test_it_is_no_trace_where_a_folder_is_searched(tmp_path, trace):
    facts = beside(trace, {"facts_version": 1, "traceparse_version": "0.1.0"})
    named = write(tmp_path / "job_trace.json", [kernel(1, 1)])
    (tmp_path / "job_facts.json").write_text("{}")
    other = write(tmp_path / "my_facts.json", [kernel(1, 1)])  # a trace by an odd name
    assert find([tmp_path]) == [named, other, trace]
    assert find([str(tmp_path / "*.json")]) == [named, other, trace]
    assert find([str(tmp_path / "rank0_f*.json")]) == [facts]
    trace.unlink()
    assert find([tmp_path]) == [named, other]
    with pytest.raises(NotATraceError) as refused:
        analyze(facts)
    assert str(refused.value) == (
        f"{facts}: this is what traceparse recorded of a job beside its trace, not a profiler "
        f"trace; give the trace file that torch.profiler exported"
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_report_of_a_folder_says_nothing_of_it(trace, tmp_path, jobs):
    shutil.copy(trace, tmp_path / "rank1_trace.json")
    without = {note.code for note in analyze(tmp_path, jobs=jobs).notes}
    beside(trace, {"rank": 0})
    assert {note.code for note in analyze(tmp_path, jobs=jobs).notes} == without


def test_groups_world_size_and_backend_fill_what_torch_did_not_say(trace):
    told = {"world_size": 8, "backend": "gloo", "groups": [{"name": "0", "ranks": "0-7"}]}
    beside(trace, told)
    header = read_trace(trace).header
    assert (header.world_size, header.backend) == (1, "nccl")
    assert header.groups == {"0": "0-7"}
    document = json.loads(trace.read_text()) | {"distributedInfo": {"rank": 0}}
    trace.write_text(json.dumps(document))
    header = read_trace(trace).header
    assert (header.world_size, header.backend) == (8, "gloo")
    groups = [{"pg_name": "0", "ranks": [0, 1]}]
    document["distributedInfo"]["pg_config"] = groups
    trace.write_text(json.dumps(document))
    assert read_trace(trace).header.groups == {"0": "0-1"}
