"""What capture recorded beside traces, from files to every report."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from tests.traces import job, kernel, launch, op, step, write
from traceparse.engine import analyze
from traceparse.engine.pipeline import REFUSED
from traceparse.report import html, json_text, terminal

FLOP = "model_flop_per_rank_step"
NAME = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@pytest.fixture
def folder(tmp_path):
    """Two of four ranks, three steps; no trace tells which ranks are in their group."""
    names = {"Collective name": "allreduce", "dtype": "Float", "Process Group Name": "dp"}
    numbers = {"In msg nelems": 4, "Out msg nelems": 4, "Group size": 3}
    for rank in (0, 1):
        events = []
        for number in range(3):
            at = 100 * (number + 1)
            events += [step(number, at, 90), op(at + 1, 5)]
            events += [launch(at + 2, correlation=2 * number + 1)]
            events += [launch(at + 7, correlation=2 * number + 2)]
            events += [kernel(at + 9, 40, correlation=2 * number + 1)]
            events += [kernel(at + 60, 9, NAME, correlation=2 * number + 2, **names, **numbers)]
        write(
            tmp_path / f"rank{rank}_trace.json",
            events,
            distributedInfo=job(rank, 4),
            with_stack=1,
            traceparse={"torch_version": "2.13.0", "num_threads": 4},
        )
    return tmp_path


def record(folder, **facts):
    for rank in (0, 1):
        told = {"facts_version": 1, "rank": rank, **facts}
        (folder / f"rank{rank}_facts.json").write_text(json.dumps(told))


def texts(report):
    file = io.StringIO()
    terminal.render(report, Console(file=file, width=200))
    return file.getvalue(), html.render(report), json_text.render(report)


def test_every_report_says_what_was_recorded_and_what_it_cost(folder):
    record(folder, capture_overhead_ratio=0.12, num_params=1_200_000, compiled=True)
    report = analyze(folder)
    words = "torch 2.13.0, 1.2 M parameters, compiled"
    cost = "profiled steps were 12.0% slower than unprofiled ones"
    for text in texts(report)[:2]:
        assert f"Recorded by capture: {words}" in text
        assert f"Cost of capture: {cost}" in text
        assert "rofiling slowed the steps by 12.0%" in text  # on the page with a capital
        assert "witch off stacks, which slow every operator, and record fewer ranks" in text
    found = json.loads(texts(report)[2])["run"]["facts"]
    assert (found["num_params"], found["num_threads"]) == (1_200_000, 4)
    assert found["capture_overhead_ratio"] == 0.12


def test_what_ranks_counted_is_what_the_model_needs(folder):
    record(folder, **{FLOP: 10**9})
    use = analyze(folder, peak={"fp32": 1e14}).utilization
    assert use is not None
    # the two steps that are complete, on both ranks
    assert (use["mfu_source"], use["model_flop"]) == ("counted", 4 * 10**9)


def test_recorded_groups_tell_who_is_in_a_collective(folder):
    def ranks():
        return [row["ranks"] for row in analyze(folder).to_dict()["collectives"]]

    alone = ranks()
    record(folder, groups=[{"name": "dp", "ranks": "0-1,3", "description": "data parallel"}])
    assert (alone, ranks()) == ([[0, 1]], [[0, 1, 3]])


def test_a_damaged_sidecar_changes_nothing_but_a_note(folder):
    before = analyze(folder).to_dict()
    (folder / "rank1_facts.json").write_text("{")
    after = analyze(folder).to_dict()
    (note,) = (note for note in after["notes"] if note not in before["notes"])
    assert note == {
        "code": "facts_unreadable",
        "message": "rank1_facts.json beside it is not used: it is no JSON object",
        "rank": 1,
        "file": str(folder / "rank1_trace.json"),
    }
    after["notes"].remove(note)
    assert after == before
    assert note["code"] not in REFUSED  # --strict is about the traces


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_changes_beside_a_trace_is_seen_through_the_cache(folder, tmp_path, jobs):
    for params in (7, 8):
        record(folder, num_params=params)
        facts = analyze(folder, jobs=jobs, cache=tmp_path / "cache").run.facts
        assert facts is not None
        assert facts["num_params"] == params
