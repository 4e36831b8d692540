"""Of several captures of a job one counts, the same on all ranks; as other tools leave them."""

from __future__ import annotations

import json

import pytest

from tests.traces import document, job, kernel, launch, step
from traceparse.engine import analyze
from traceparse.errors import InputError


def trace(path, rank, *, at=100, steps=(), world_size=2, torn=False, named=True, **header):
    """Write a rank's trace: a kernel of 5 us a step, or one without steps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [] if steps else [kernel(at, 5)]
    for place, number in enumerate(steps):
        start = at + 20 * place
        events += [step(number, start, 15), launch(start + 1, correlation=number)]
        events += [kernel(start + 4, 5, correlation=number)]
    if named:
        header["distributedInfo"] = job(rank, world_size)
    text = json.dumps(document(events, trace_id=f"{path}", **header))
    path.write_text(text[:-2] if torn else text)
    return path


def said(report, *codes):
    return [note.message for note in report.notes if note.code in codes]


def used(report):
    """Which steps, and where no step is marked which start, of each rank count."""
    return {
        one.rank: [cut.step for cut in one.steps if cut.step is not None]
        or one.window.start_ns // 1000 % 10**6
        for one in report.devices
    }


def titan(folder, iteration, rank, **options):
    at, numbers = 100 * iteration, range(iteration - 2, iteration)
    path = folder / f"iteration_{iteration}" / f"rank{rank}_trace.json"
    return trace(path, rank, at=at, steps=numbers, **options)


def test_of_several_iterations_the_newest_is_taken_of_all_ranks(tmp_path):
    for iteration in (10, 20, 30):
        for rank in (0, 1):
            titan(tmp_path / "profile_trace", iteration, rank)
    report = analyze(tmp_path)
    assert used(report) == {0: [28, 29], 1: [28, 29]}
    assert said(report, "repeated_capture", "duplicate_rank", "missing_ranks") == [
        "there are traces of 3 captures (iteration_10, iteration_20, iteration_30): only "
        "iteration_30 is used, the newest that is whole on the most ranks (2 of 2); to see "
        "another one, give its files"
    ]
    assert used(analyze(tmp_path / "profile_trace" / "iteration_10")) == {0: [8, 9], 1: [8, 9]}


@pytest.mark.parametrize("how", ["torn", "missing"])
def test_iterations_of_different_ranks_are_never_mixed(tmp_path, how):
    """GIVEN the newest iteration, torn or missing on one rank THEN the one before counts."""
    for iteration in (10, 20, 30):
        titan(tmp_path, iteration, 0)
        if (iteration, how) != (30, "missing"):
            titan(tmp_path, iteration, 1, torn=iteration == 30)
    report = analyze(tmp_path)
    assert used(report) == {0: [18, 19], 1: [18, 19]}
    (message,) = said(report, "repeated_capture", "missing_ranks")
    assert "only iteration_20 is used, the newest that is whole on the most ranks (2 of 2)" in (
        message
    )


def test_a_rank_that_is_not_in_the_capture_is_left_out_and_said(tmp_path):
    for rank in (0, 1):
        titan(tmp_path, 20, rank, world_size=3)
    titan(tmp_path, 10, 2, world_size=3)
    report = analyze(tmp_path)
    assert used(report) == {0: [18, 19], 1: [18, 19]}
    assert said(report, "repeated_capture", "missing_ranks") == [
        "rank 2 missing: 2 of 3 ranks are accounted for",
        "there are traces of 2 captures (iteration_10, iteration_20): only iteration_20 is "
        "used, the newest that is whole on the most ranks (2 of 3); rank 2 is not in it, and "
        "is left out; to see another one, give its files",
    ]


def test_many_iterations_are_not_all_named(tmp_path):
    for iteration in range(10, 70, 10):
        titan(tmp_path, iteration, 0, world_size=1)
    (message,) = said(analyze(tmp_path), "repeated_capture")
    assert "6 captures (iteration_10, iteration_20, iteration_30, iteration_40 and 2 more)" in (
        message
    )


def test_the_steps_asked_for_choose_the_capture(tmp_path):
    for iteration in (10, 20):
        for rank in (0, 1):
            titan(tmp_path, iteration, rank)
    report = analyze(tmp_path, steps=range(9, 10))
    assert used(report) == {0: [9], 1: [9]}
    (message,) = said(report, "repeated_capture")
    assert "iteration_10 is used, the newest with the steps asked for that is" in message
    with pytest.raises(InputError, match="no trace has step 12: they have 18-19"):
        analyze(tmp_path, steps=[12])


def test_ranks_of_one_iteration_may_be_in_several_folders(tmp_path):
    for rank in (0, 1):
        for iteration in (10, 20):
            titan(tmp_path / f"node{rank}", iteration, rank)
    assert used(analyze(tmp_path)) == {0: [18, 19], 1: [18, 19]}


def test_ranks_of_one_capture_each_in_its_own_kind_of_folder(tmp_path):
    titan(tmp_path, 20, 0)
    trace(tmp_path / "rank1_trace.json", 1, steps=(18, 19))
    report = analyze(tmp_path)
    assert (set(used(report)), said(report, "repeated_capture")) == ({0, 1}, [])


def tensorboard(folder, worker, time, *args, **options):
    return trace(folder / f"{worker}.{time}.pt.trace.json", *args, **options)


def test_repeats_in_one_folder_are_told_apart_by_their_steps(tmp_path):
    """GIVEN TensorBoard's names, which have no rank WHEN rank 1 lacks the last repeat."""
    for rank, pid in ((0, 77), (1, 78)):
        for time, first in ((1000, 2), (2000, 12), (3000, 22)):
            if (rank, first) != (1, 22):
                numbers = range(first, first + 2)
                tensorboard(tmp_path, f"host_{pid}", time, rank, at=time, steps=numbers)
    report = analyze(tmp_path)
    assert used(report) == {0: [12, 13], 1: [12, 13]}
    assert said(report, "repeated_capture", "duplicate_rank") == [
        "there are traces of 3 captures (steps 2-3, steps 12-13, steps 22-23): only steps "
        "12-13 is used, the newest that is whole on the most ranks (2 of 2); to see another "
        "one, give its files"
    ]


@pytest.mark.parametrize(
    "name",
    [
        "rank{rank}.{time}.pt.trace.json.gz",
        "dp0_pp0_tp{rank}_dcp0_ep{rank}_rank{rank}.{time}.pt.trace.json.gz",
        "host_{pid}.{time}.pt.trace.json.gz",
    ],
)
def test_captures_of_a_server_are_told_apart_by_time(tmp_path, name):
    """vLLM marks no steps; rank 1 was stopped before its second trace was whole."""
    for rank, pid in ((0, 77), (1, 78)):
        for time in (1000, 2000):
            path = tmp_path / name.format(rank=rank, pid=pid, time=time)
            trace(path, rank, at=time, torn=(rank, time) == (1, 2000))
    report = analyze(tmp_path)
    assert used(report) == {0: 1000, 1: 1000}
    first, second = said(report, "repeated_capture")
    assert first.startswith("rank 0 was captured 2 times (")
    assert " is used, the newest that is whole on all ranks; capture with repeat=1" in first
    assert "only the newest whole one, " in second


def test_clocks_further_apart_than_captures_tell_nothing(tmp_path):
    for rank, ahead in ((0, 0), (1, 50_000)):
        for time in (1000, 2000):
            trace(tmp_path / f"rank{rank}.{time}.pt.trace.json", rank, at=time + ahead)
    report = analyze(tmp_path)
    assert used(report) == {0: 2000, 1: 52_000}
    assert len(said(report, "repeated_capture")) == 2


def test_a_vllm_server_of_two_ranks(tmp_path):
    for rank in (0, 1):
        trace(tmp_path / f"rank{rank}.17198538841.pt.trace.json.gz", rank, named=False)
    report = analyze(tmp_path)
    assert (report.run.ranks, said(report, "repeated_capture")) == ((0, 1), [])


def test_a_folder_of_accelerate(tmp_path):
    """It names the file by the process's index, and writes each name once."""
    for rank in (0, 1):
        trace(tmp_path / f"profile_{rank}.json", rank, named=False)
    report = analyze(tmp_path)
    assert report.run.ranks == (0, 1)
    assert said(report, "rank_from_file_name") == [
        f"rank {rank} is read off the file name" for rank in (0, 1)
    ]


def test_what_the_trace_says_counts_before_any_name(tmp_path):
    trace(tmp_path / "profile_7.json", 1)
    assert analyze(tmp_path).run.ranks == (1,)


def test_repeats_that_capture_writes_have_facts_of_their_own(tmp_path):
    for first in (10, 20):
        folder = tmp_path / f"iteration_{first}"
        trace(folder / "rank0_trace.json", 0, at=100 * first, steps=(first,), world_size=1)
        (folder / "rank0_facts.json").write_text(json.dumps({"steps": [first, first]}))
    report = analyze(tmp_path)
    assert report.run.facts is not None
    assert (used(report), report.run.facts["steps"]) == ({0: [20]}, [20, 20])


def test_steps_past_belief_are_not_counted_through(tmp_path):
    for at, first in ((100, 1), (900, 10**15)):
        steps = (first, first + 10**14)
        trace(tmp_path / f"{at}.json", 0, at=at, steps=steps, world_size=1)
    (message,) = said(analyze(tmp_path), "repeated_capture")
    assert f"steps {10**15}-{10**15 + 10**14} is used" in message
