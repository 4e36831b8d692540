from __future__ import annotations

import json

import pytest

from tests.traces import document, kernel, launch, op, simple, step, write, write_rank
from traceparse.errors import InputError, Note
from traceparse.ingest import read_trace
from traceparse.rank import digest
from traceparse.run import assemble


def _assemble(*paths, **options):
    return assemble([digest(read_trace(path)) for path in paths], **options)


def _said(report, code: str) -> list[str]:
    return [note.message for note in report.notes if note.code == code]


def test_ranks_of_one_job(tmp_path):
    paths = [write_rank(tmp_path, rank, 3) for rank in (2, 0, 1)]
    report = _assemble(*paths)
    assert (report.run.world_size, report.run.backend) == (3, "nccl")
    assert (report.run.ranks, report.run.missing_ranks) == ((0, 1, 2), ())
    assert [device.rank for device in report.devices] == [0, 1, 2]
    assert [health.rank for health in report.files] == [0, 1, 2]
    assert not _said(report, "missing_ranks")


def test_missing_ranks_are_said_in_words(tmp_path):
    report = _assemble(write_rank(tmp_path, 1, 4))
    assert report.run.missing_ranks == (0, 2, 3)
    assert _said(report, "missing_ranks") == [
        "ranks 0, 2-3 missing: 1 of 4 ranks are accounted for"
    ]
    report = _assemble(
        write_rank(tmp_path, 1, 4), *(write_rank(tmp_path, n, 4) for n in (0, 3))
    )
    assert _said(report, "missing_ranks") == ["rank 2 missing: 3 of 4 ranks are accounted for"]


def test_a_rank_that_cannot_be_is_said(tmp_path):
    report = _assemble(write_rank(tmp_path, 5, 1))
    assert _said(report, "rank_beyond_world_size") == [
        "rank 5 cannot be in a job of world size 1"
    ]


def test_of_two_files_that_claim_a_rank_the_newer_counts(tmp_path):
    old, new = (tmp_path / "a").absolute(), (tmp_path / "b").absolute()
    for folder, start in ((old, 100), (new, 900)):
        folder.mkdir()
        write_rank(folder, 0, 1, start=start)
    old, new = old / "rank0.json", new / "rank0.json"
    for order in ((old, new), (new, old)):
        report = _assemble(*order)
        assert [device.window.start_ns % 1_000_000 for device in report.devices] == [900_000]
        assert [health.path for health in report.files] == [str(old), str(new)]
        assert _said(report, "duplicate_rank") == [
            f"2 traces say that they are rank 0 ({old}, {new}): only the newest whole one, "
            f"{new}, is used; give one job's folder at a time"
        ]


def test_a_torn_trace_never_counts_before_a_whole_one(tmp_path):
    whole = write_rank(tmp_path, 0, 1, start=100)
    torn = tmp_path / "rank0.json.tmp"
    events, header = simple(900, rank=0)
    torn.write_text(json.dumps(document(events, **header))[:-2])
    report = _assemble(whole, torn)
    assert [device.window.start_ns % 1_000_000 for device in report.devices] == [100_000]
    assert f"the newest whole one, {whole}, is used" in _said(report, "duplicate_rank")[0]


def test_two_captures_of_one_rank_are_said_to_be_that(tmp_path):
    for name, start in (("a", 100), ("b", 900)):
        events, header = simple(start, rank=0, trace_id=name)
        write(tmp_path / f"{name}.json", events, **header)
    report = _assemble(*tmp_path.iterdir())
    (said,) = _said(report, "repeated_capture")
    assert said.startswith("rank 0 was captured 2 times (")
    assert f"{tmp_path}/b.json, is used; capture with repeat=1" in said


def _of_process(folder, name: str, pid: int, start: int):
    return write(folder / f"{name}.json", [op(start, 10, pid=pid)])


def test_captures_of_one_process_one_after_the_other_are_one_rank(tmp_path):
    paths = [_of_process(tmp_path, "a", 77, 100), _of_process(tmp_path, "b", 77, 900)]
    report = _assemble(*paths)
    assert [device.window.start_ns % 1_000_000 for device in report.devices] == [900_000]
    (said,) = _said(report, "repeated_capture")
    assert said.startswith("process 77 was captured 2 times")


def test_processes_of_one_number_side_by_side_are_two_ranks(tmp_path):
    paths = [_of_process(tmp_path, "a", 77, 100), _of_process(tmp_path, "b", 77, 105)]
    assert len(_assemble(*paths).devices) == 2
    paths = [_of_process(tmp_path, "a", 77, 100), _of_process(tmp_path, "b", 78, 900)]
    assert len(_assemble(*paths).devices) == 2


def test_files_of_unknown_rank_all_count(tmp_path):
    paths = [write(tmp_path / f"{name}.json", [kernel(1, 1)]) for name in "ab"]
    report = _assemble(*paths)
    assert [device.rank for device in report.devices] == [None, None]
    assert (report.run.ranks, report.run.world_size, report.run.missing_ranks) == (
        (),
        None,
        None,
    )
    assert _said(report, "world_size_unknown") == [
        "no trace says its world size, so missing ranks cannot be told"
    ]
    assert _said(report, "backend_unknown") == ["no trace says its backend"]


def test_traces_that_disagree_are_said(tmp_path):
    report = _assemble(write_rank(tmp_path, 0, 2), write_rank(tmp_path, 1, 4))
    assert (report.run.world_size, report.run.missing_ranks) == (None, None)
    assert _said(report, "world_size_disagrees") == [
        "the traces disagree on their world size (2, 4): are they of one job?"
    ]


def test_notes_of_files_that_failed_come_first(tmp_path):
    note = Note("not_a_trace", "a picture", file="x.json")
    report = _assemble(write_rank(tmp_path, 0, 1), notes=[note])
    assert report.notes[0] == note


def test_what_one_rank_alone_does_not_tell_has_a_note(tmp_path):
    report = _assemble(write_rank(tmp_path, 0, 1))
    plain = report.to_dict()
    assert plain["scaling_loss"] is None
    assert plain["clock"]["aligned"] is False
    (said,) = _said(report, "communication_unsplit")
    assert said == (
        "waiting and transfer cannot be told apart, so there is no loss to communication: it "
        "takes traces of two ranks at least that communicate with each other"
    )


def test_where_nothing_communicates_nothing_is_lost_to_it(tmp_path):
    report = _assemble(write(tmp_path / "rank0.json", [kernel(1, 1)]))
    assert (report.collectives, report.clock, report.scaling_loss) == ((), None, None)
    (said,) = _said(report, "no_communication")
    assert said.startswith("no collective or point-to-point call was recorded")


def _stepped(tmp_path):
    events = []
    for number in range(1, 5):
        start = 100 * number
        events += [step(number, start, 90), launch(start + 1, correlation=number)]
        events += [kernel(start + 10, 20, correlation=number)]
    return write(tmp_path / "rank0.json", events)


def test_only_the_steps_asked_for(tmp_path):
    report = _assemble(_stepped(tmp_path), steps=range(2, 4))
    assert [step.step for step in report.devices[0].steps] == [2, 3]
    assert report.summary.num_device_steps == 2


def test_steps_that_no_trace_has_are_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"no trace has step 7-8: they have 1-4; change --steps"
    ):
        _assemble(_stepped(tmp_path), steps=range(7, 9))
    with pytest.raises(InputError, match=r"has step 7: they have no step markers"):
        _assemble(write_rank(tmp_path, 0, 1), steps=range(7, 8))


def test_a_note_names_a_few_files_only(tmp_path):
    for name in "abcdef":
        events, header = simple(ord(name), rank=0)
        write(tmp_path / f"{name}.json", events, **header)
    (said,) = _said(_assemble(*sorted(tmp_path.iterdir())), "duplicate_rank")
    assert f"({tmp_path}/a.json, {tmp_path}/b.json, " in said
    assert f"{tmp_path}/d.json and 2 more)" in said
