from __future__ import annotations

import gzip
import json

import pytest

import traceparse
from tests.contract.seen import OF_COMMUNICATION, OF_WORK
from tests.traces import document, kernel, op, write, write_rank
from traceparse.engine import analyze, read
from traceparse.errors import InputError, NotATraceError, StrictError, UsageError


def _codes(report) -> set[str]:
    usual = {"no_step_markers", "native_engine_missing"}
    return {note.code for note in report.notes} - usual - OF_WORK - OF_COMMUNICATION


def test_the_public_names_lead_here():
    assert traceparse.analyze is analyze
    assert traceparse.read is read
    assert set(traceparse.__all__) < set(dir(traceparse))
    for name in traceparse.__all__:
        assert getattr(traceparse, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'anything'"):
        _ = traceparse.anything


def test_one_bad_file_among_good_ones_is_a_note(tmp_path):
    write_rank(tmp_path, 0, 1)
    (tmp_path / "a.json").write_text('{"other": 1}')
    (tmp_path / "b.json").write_bytes(b"")
    for found in (analyze(tmp_path), read(tmp_path)):
        said = {note.code: note for note in found.notes}
        assert said["not_a_trace"].file == str(tmp_path / "a.json")
        assert said["not_a_trace"].message.startswith("this is JSON without traceEvents")
        assert said["file_unusable"].message.startswith("the file is empty")


def test_all_files_bad_is_an_error_of_one_line(tmp_path):
    (tmp_path / "a.json").write_text('{"other": 1}')
    with pytest.raises(NotATraceError, match=r"a\.json: this is JSON without"):
        analyze(tmp_path)
    (tmp_path / "b.json").write_text("[]")
    for function in (analyze, read):
        with pytest.raises(
            InputError, match=r"no trace among the 2 files; the first one: .*a\.json"
        ):
            function(tmp_path)


def test_strict_refuses_what_is_not_whole(tmp_path):
    path = write_rank(tmp_path, 0, 2)
    assert "missing_ranks" in _codes(analyze(path))
    with pytest.raises(StrictError) as caught:
        analyze(path, strict=True)
    assert str(caught.value) == (
        "rank 1 missing: 1 of 2 ranks are accounted for; "
        "without --strict what is there would be used"
    )


def test_strict_names_the_file_and_how_many_more(tmp_path):
    text = json.dumps(document([kernel(1, 1), kernel(0, 1), kernel(2, 1)]))
    path = tmp_path / "rank0.json"
    path.write_bytes(gzip.compress(text.encode())[:-4])
    with pytest.raises(
        StrictError, match=r"rank0\.json: its compressed data.*\(and 1 more\); w"
    ):
        analyze(path, strict=True)


def test_strict_accepts_a_whole_job_and_json_that_is_no_trace(tmp_path):
    for rank in range(2):
        write_rank(tmp_path, rank, 2)
    (tmp_path / "report.json").write_text('{"schema_version": 1, "generator": {}}')
    assert _codes(analyze(tmp_path, strict=True)) == {
        "not_a_trace",
        "device_events_unlinked",
        "time_resolution_us",
    }


def test_a_given_rank_is_for_one_file(tmp_path):
    path = write(tmp_path / "t.json", [op(1, 1)])
    assert analyze(path, rank=3).run.ranks == (3,)
    write(tmp_path / "u.json", [op(1, 1)])
    with pytest.raises(
        UsageError, match="--rank 3 names the rank of one file, but there are 2"
    ):
        analyze(tmp_path, rank=3)


def test_no_path_at_all():
    with pytest.raises(UsageError, match="no trace given"):
        analyze([])
