"""Jobs whose traces do not belong together, or not quite: what remains is right, and said."""

from __future__ import annotations

import json
import re
import shutil

import pytest

import traceparse
from tests.simulated import made

WHOLE = ("fsdp", 4, 1)


@pytest.fixture
def job(tmp_path):
    made(*WHOLE).place(tmp_path)
    (tmp_path / "truth.json").unlink()
    return tmp_path


def traces(folder):
    return sorted(folder.glob("rank*"))


def analyzed(folder):
    report = traceparse.analyze(folder, accelerator="h100-sxm").to_dict()
    return report, {note["code"]: note["message"] for note in report["notes"]}


def truth(name):
    return pytest.approx(made(*WHOLE).truth["scaling_loss"][name])


def test_one_rank_only(job):
    for path in traces(job)[1:]:
        path.unlink()
    report, said = analyzed(job)
    assert report["scaling_loss"] is None
    assert report["clock"]["offsets_ns"] == {"0": 0}
    assert {row["transfer_ns"] for row in report["collectives"]} == {None}
    assert all(row["exposed_ns"] >= 0 for row in report["collectives"])
    assert "it takes traces of two ranks at least" in said["communication_unsplit"]


def test_ranks_of_different_jobs(job, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    made("ddp", 4, 2).place(other)
    for path in traces(other)[2:]:
        shutil.copy(path, job / path.name)
    report, said = analyzed(job)
    assert report["scaling_loss"] is None
    assert report["clock"]["aligned"] is False
    assert said["communication_unsplit"].endswith(
        "are the traces of one job, and of the same time?"
    )
    assert "not seen on all ranks of the group" in said["collectives_unmatched"]


def test_two_ranks_swapped(tmp_path):
    """Where groups differ, they tell: pairs of tensor parallelism here."""
    made("tp_pp", 4, 0).place(tmp_path)
    (tmp_path / "truth.json").unlink()
    first, _, third, _ = traces(tmp_path)
    one, other = first.read_text(), third.read_text()
    first.write_text(re.sub(r'"rank": 2\b', '"rank": 0', other, count=1))
    third.write_text(re.sub(r'"rank": 0\b', '"rank": 2', one, count=1))
    _, said = analyzed(tmp_path)
    assert said["rank_not_in_group"] == (
        "traces of rank 0, 2 have collectives of process groups that do not have that rank: "
        "are files of different ranks swapped?"
    )


def test_a_rank_twice(job):
    shutil.copy(traces(job)[1], job / "rank1_copy.json")
    report, said = analyzed(job)
    assert "2 traces say that they are rank 1" in said["duplicate_rank"]
    assert report["scaling_loss"]["exposed_wait_ratio"] == truth("exposed_wait_ratio")


def test_a_rank_missing(job):
    traces(job)[2].unlink()
    report, said = analyzed(job)
    assert report["clock"]["offsets_ns"].keys() == {"0", "1", "3"}
    assert re.fullmatch(
        r"[0-9]+ collectives with ranks that have no file: the last to come may be one of "
        r"these, so transfer is an upper bound, and waiting a lower one",
        said["transfer_upper_bound"],
    )
    assert {row["matched_ranks"] for row in report["collectives"]} == {3}


def test_captures_of_different_steps(job):
    path = traces(job)[3]
    later = re.sub(
        r"ProfilerStep#([0-9]+)",
        lambda found: f"ProfilerStep#{int(found[1]) + 100}",
        path.read_text(),
    )
    path.write_text(later)
    report, said = analyzed(job)
    assert report["summary"]["basis"] == "all_steps"
    assert "no step is complete on every rank" in said["no_complete_step"]
    assert report["clock"]["aligned"]


def test_a_collective_that_one_rank_never_finished(job):
    path = traces(job)[1]
    document = json.loads(path.read_text())
    events = document["traceEvents"]
    calls = [one for one in events if one.get("cat") == "kernel" and "nccl" in one["name"]]
    events.remove(max(calls, key=lambda one: one["ts"]))
    path.write_text(json.dumps(document))
    report, said = analyzed(job)
    assert said["collectives_unmatched"].startswith("1 collective not seen on all ranks")
    assert report["clock"]["residual_ns"] == 0
    # it is in the last step, which is open-ended and no part of what is summed
    assert report["scaling_loss"]["exposed_wait_ratio"] == truth("exposed_wait_ratio")


def test_clocks_hours_apart(job):
    path = traces(job)[2]
    hours = 5 * 3_600 * 10**9
    path.write_text(
        re.sub(
            r'"baseTimeNanoseconds": ([0-9]+)',
            lambda found: f'"baseTimeNanoseconds": {int(found[1]) + hours}',
            path.read_text(),
        )
    )
    report, said = analyzed(job)
    assert report["clock"]["offsets_ns"]["2"] == hours
    assert said["clocks_apart"] == (
        "clocks of 1 rank are over a second off, the most that of rank 2, by 18,000 s: across "
        "ranks they are aligned, times of each rank are its own"
    )
    for name in ("exposed_wait_ratio", "exposed_transfer_ratio", "parallel_efficiency"):
        assert report["scaling_loss"][name] == truth(name)
